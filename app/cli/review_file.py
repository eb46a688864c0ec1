"""The file of a review: what somebody has looked at. In: a path. Out: a `Review`, or one line on what is wrong.

The file is TOML, to be edited and merged by people; `accepting.py` adds to it. An entry:

    [[reviewed]]
    rule = "KAF103"
    subject.group = "payments-ledger"
    subject.topic = "payments"
    note = "sarama 1.43.2, update planned"
    by = "anna"
    date = 2026-11-27
    severity = "critical"
    measure = "steps_back"
    size = 31
    places = ["payments-2", "payments-4"]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from wirewitness.app.shared.failure import CallerError
from wirewitness.app.shared.local_files import is_elsewhere
from wirewitness.app.shared.names import near_names
from wirewitness.app.shared.small_files import NoSuchText, small_text, toml_of

if TYPE_CHECKING:
    from wirewitness.reports.base.questions.reviews import Entry, Review

OPTION = "--review"
TABLE = "reviewed"
MOST_BYTES = 4 << 20
MOST_ENTRIES = 10_000
_MOST_LETTERS = 4096
_MOST_LISTED = 10_000


def read_review(path: str) -> Review:
    """The entries of a file. CallerError where it is not there, too large, no TOML, or an entry is wrong."""
    from wirewitness.reports.base.questions.reviews import Review

    return Review(tuple(entries_of(path, text_of(path))), os.path.basename(path))


def text_of(path: str) -> str:
    """The text of a file that is not too large. CallerError otherwise."""
    try:
        return small_text(path, MOST_BYTES)
    except NoSuchText as error:
        hints = [] if os.path.exists(path) or is_elsewhere(path) else ["--accept RULE_OR_ID --note TEXT begins one"]
        raise CallerError(f"{OPTION} {path}: {error}", *hints) from error


def entries_of(path: str, text: str) -> list[Entry]:
    """The entries of a text. CallerError as `read_review`."""
    try:
        told = toml_of(text)
    except NoSuchText as error:
        raise CallerError(f"{OPTION} {path}: {error}") from error
    listed = told.pop(TABLE, [])
    if told:
        raise CallerError(f"{OPTION} {path}: {next(iter(told))!r} means nothing here; entries begin with [[{TABLE}]]")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise CallerError(f"{OPTION} {path}: {TABLE} is not a list of tables; entries begin with [[{TABLE}]]")
    if len(listed) > MOST_ENTRIES:
        raise CallerError(f"{OPTION} {path}: {len(listed):,} entries, more than {MOST_ENTRIES:,}")
    return [_entry(f"{OPTION} {path}: entry {number}", values) for number, values in enumerate(listed, 1)]


def _entry(where: str, values: Mapping[str, Any]) -> Entry:
    from wirewitness.reports.base.questions.reviews import Entry

    unknown = next((key for key in values if key not in _KEYS), None)
    if unknown is not None:
        raise CallerError(f"{where}: unknown key {unknown!r}{near_names(unknown, _KEYS)}", f"known: {', '.join(_KEYS)}")
    missing = next((key for key in _NEEDED if key not in values), None)
    if missing is not None:
        raise CallerError(f"{where}: {missing} is missing")
    checked = {key: check(values[key], f"{where}: {key}") for key, check in _KEYS.items() if key in values}
    return Entry(**{"note": "", "by": "", "subject": {}, "measure": "", "size": 0, "severity": "info", **checked})


def _rule(value: Any, where: str) -> str:
    from wirewitness.analyser.analysis.all_rules import RULES

    text = _text(value, where)
    names = {rule.name: code for code, rule in RULES.items()}
    code = names.get(text.lower(), text.upper())
    if code not in RULES:
        raise CallerError(f"{where}: unknown rule {text!r}{near_names(text, (*RULES, *names))}")
    return code


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > _MOST_LETTERS:
        raise CallerError(f"{where} must be a text of at most {_MOST_LETTERS} letters, not {_kind(value)}")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_LISTED:
        raise CallerError(f"{where} must be a list of texts, not {_kind(value)}")
    return tuple(_text(one, where) for one in value)


def _subject(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise CallerError(f'{where} must be a table such as subject.group = "payments", not {_kind(value)}')
    return {name: _text(one, f"{where}.{name}") for name, one in value.items()}


def _day(value: Any, where: str) -> date:
    if isinstance(value, datetime):
        return value.date()
    if not isinstance(value, date):
        raise CallerError(f"{where} must be a date such as 2026-11-27, without quotes, not {_kind(value)}")
    return value


def _size(value: Any, where: str) -> int | float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < 2**63:
        raise CallerError(f"{where} must be a number from 0 on, not {_kind(value)}")
    return float(value) if isinstance(value, float) else int(value)


def _severity(value: Any, where: str) -> str:
    from wirewitness.analyser.base.severity import SEVERITIES

    if value not in SEVERITIES:
        raise CallerError(f"{where} must be one of {', '.join(SEVERITIES)}, not {_kind(value)}")
    return str(value)


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    short = isinstance(value, str | int | float) and len(str(value)[:60]) < 40
    return repr(value) if short else names.get(type(value), "a time or a date")


_KEYS: Mapping[str, Callable[[Any, str], Any]] = {
    "rule": _rule,
    "subject": _subject,
    "who": _texts,
    "note": _text,
    "by": _text,
    "date": _day,
    "severity": _severity,
    "measure": _text,
    "size": _size,
    "places": _texts,
}
_NEEDED = ("rule", "note", "date", "severity")
