"""Findings that somebody has looked at now. In: what to accept, and findings. Out: entries, and the file with them."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirewitness.app.cli.output import check_output, whole_file
from wirewitness.app.cli.review_file import OPTION, TABLE, entries_of, read_review, text_of
from wirewitness.app.shared.failure import CallerError, say
from wirewitness.app.shared.names import near_names

if TYPE_CHECKING:
    from wirewitness.reports.base.questions.causes import Finding
    from wirewitness.reports.base.questions.reviews import Entry, Review, Trouble

# Entries into the file of a review. In: its text and new entries. Out: the text with them, all else as it was.
#
# Entries stand in the order of rule and subject, so that two people who add some at the same time rarely write at the
# same place, and comments stay where they are.

_HEAD = """\
# Acknowledged findings: wirewitness collapses them until they grow.
# Change it as you like: `*` in a value stands for any text, and a pair of the subject that is left out is not compared.
"""
_BEGIN = re.compile(rf"^\[\[ *{TABLE} *\]\][^\n]*$", re.MULTILINE)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def with_entries(path: str, text: str, added: Sequence[Entry]) -> str:
    """The text with these entries, each in the place of an entry that has its key, else where it sorts.

    CallerError where the file is written so that nothing can be added to it by itself.
    """
    head, blocks = _blocks(text)
    entries = entries_of(path, text)
    if len(blocks) != len(entries):
        raise CallerError(f"{OPTION} {path}: nothing can be added to it: its entries do not all begin with [[{TABLE}]]")
    placed = [(entry.key, block) for entry, block in zip(entries, blocks, strict=True)]
    for entry in added:
        same = next((n for n, (key, _) in enumerate(placed) if key == entry.key), None)
        if same is not None:
            placed[same] = (entry.key, _comments(placed[same][1]) + block_of(entry))
            continue
        after = next((n for n, (key, _) in enumerate(placed) if key > entry.key), len(placed))
        placed.insert(after, (entry.key, block_of(entry)))
    told = "\n".join([(head or _HEAD).rstrip("\n") + "\n", *(block.rstrip("\n") + "\n" for _, block in placed)])
    if sorted(one.key for one in entries_of(path, told)) != sorted(key for key, _ in placed):
        raise CallerError(f"{OPTION} {path}: nothing can be added to it: write its entries as wirewitness does")
    return told


def block_of(entry: Entry) -> str:
    """An entry as the file has it."""
    subject = [(f"subject.{_key(name)}", _value(value)) for name, value in entry.subject.items()]
    lines = [
        ("rule", _value(entry.rule)),
        *subject,
        *([("who", _list(entry.who))] if entry.who else []),
        ("note", _value(entry.note)),
        ("by", _value(entry.by)),
        ("date", entry.date.isoformat()),
        ("severity", _value(entry.severity)),
        ("measure", _value(entry.measure)),
        ("size", str(entry.size)),
        *([("places", _list(entry.places))] if entry.places else []),
    ]
    return "\n".join([f"[[{TABLE}]]", *(f"{name} = {value}" for name, value in lines)]) + "\n"


def _blocks(text: str) -> tuple[str, list[str]]:
    """What stands before the first entry, and the entries, each with the comments right above it."""
    begins = [_with_comments(text, found.start()) for found in _BEGIN.finditer(text)]
    if not begins:
        return text, []
    return text[: begins[0]], [text[a:b] for a, b in zip(begins, [*begins[1:], len(text)], strict=True)]


def _with_comments(text: str, begin: int) -> int:
    """Where the comments begin that stand right above this place, without an empty line between."""
    while begin:
        line = text.rfind("\n", 0, begin - 1) + 1
        if not text[line:begin].startswith("#"):
            break
        begin = line
    return begin


def _comments(block: str) -> str:
    """Lines of an entry that are comments only, above the new one."""
    return "".join(f"{line}\n" for line in block.splitlines() if line.startswith("#"))


def _list(values: Sequence[str]) -> str:
    """On one line while it is short, else a line for each value: so that merges see single values."""
    line = f"[{', '.join(map(_value, values))}]"
    return line if len(line) <= 100 else "[\n" + "".join(f"    {_value(value)},\n" for value in values) + "]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(text: str) -> str:
    """A basic string of TOML: what nobody sees is spelled out."""
    return "".join(_spelled(json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)))


def _spelled(quoted: str) -> Iterator[str]:
    for letter in quoted:
        number = ord(letter)
        yield letter if letter.isprintable() else f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


EVERYTHING = "all"
_MOST_LETTERS = 1000
_ID = re.compile(r"[0-9a-f]{16}")


def review_of(path: str | None, accepted: Sequence[str], note: str | None, captures: Sequence[str]) -> Review:
    """The review of a file, before captures are read. CallerError or a usage error for what does not go together.

    A file that is not there yet is empty where something is accepted.
    """
    from wirewitness.reports.base.questions.reviews import NO_REVIEW, Review

    if accepted and path is None:
        raise click.UsageError("--accept needs --review FILE: where it is written")
    if accepted and not (note or "").strip():
        raise click.UsageError("--accept needs --note TEXT: what whoever reads the file next should know")
    if note is not None and not accepted:
        raise click.UsageError("--note is for --accept RULE_OR_ID")
    if len(note or "") > _MOST_LETTERS:
        raise click.UsageError(f"--note has {len(note or ''):,} letters; at most {_MOST_LETTERS:,} are kept")
    if path is None:
        return NO_REVIEW
    if not accepted:
        return read_review(path)
    check_output(path, captures, OPTION)
    for name in accepted:
        _check_rule(name)
    return read_review(path) if os.path.exists(path) else Review((), os.path.basename(path))


def accept(
    path: str, review: Review, found: Sequence[Finding], accepted: Sequence[str], note: str, by: str | None
) -> Review:
    """The review with entries for what is accepted, written to its file. CallerError for an id that no finding has."""
    from wirewitness.reports.base.questions.reviews import Review, entry_of, troubles

    chosen: dict[int, Trouble] = {}
    every = list(enumerate(troubles(found)))
    for name in accepted:
        chosen |= dict(_named(name, every, found))
    today = datetime.now(UTC).date()
    entries = [entry_of(trouble, note.strip(), by or _user(), today) for trouble in chosen.values()]
    if not entries:
        say(f"note: nothing to accept: no finding of {', '.join(accepted)} in this capture")
        return review
    text = with_entries(path, text_of(path) if os.path.exists(path) else "", entries)
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise CallerError(f"{OPTION} {path}: {error.strerror}") from error
    say(f"note: {len(entries)} {'entry' if len(entries) == 1 else 'entries'} written to {path}")
    return Review(read_review(path).entries, Path(path).name)


def _named(name: str, every: Sequence[tuple[int, Trouble]], found: Sequence[Finding]) -> Iterable[tuple[int, Trouble]]:
    """What a name accepts: all, those of a rule, or of a finding; of the first finding of an incident all of it."""
    if name.lower() == EVERYTHING:
        return every
    if not _ID.fullmatch(name.lower()):
        code = _check_rule(name)
        return [(number, trouble) for number, trouble in every if trouble.rule == code]
    wanted = name.lower()
    ids = {finding.finding_id for finding in found if wanted in (finding.finding_id, finding.incident_id)}
    if not ids:
        raise CallerError(f"--accept {name}: no finding here has this id", "ids are in the last line of each finding")
    return [(number, trouble) for number, trouble in every if any(one.finding_id in ids for one in trouble.findings)]


def _check_rule(name: str) -> str:
    """The code of a rule. CallerError for what is neither a rule nor an id."""
    if name.lower() == EVERYTHING or _ID.fullmatch(name.lower()):
        return name
    from wirewitness.analyser.analysis.all_rules import RULES

    names = {rule.name: code for code, rule in RULES.items()}
    code = names.get(name.lower(), name.upper())
    if code not in RULES:
        raise CallerError(
            f"--accept {name}: neither a rule, nor the id of a finding, nor {EVERYTHING}"
            f"{near_names(name, (*RULES, *names))}"
        )
    return code


def _user() -> str:
    """Who runs this, and not root for whom."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""
