"""Rules to expectations. In: TOML. Out: expectations in the order of the file, or a RulesError that names the entry.

[[expect]]
name = "consumers commit in order"
no_findings = ["KAF103"]
about.group = "payments"

[[expect]]
name = "fetches are answered soon"
table = "exchanges"
where = "operation = 'Fetch'"
p99_latency_ms = "<= 700"
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.base.bounded import beginning, excerpt
from wirewitness.analyser.base.severity import SEVERITIES
from wirewitness.analyser.tables.queries import quoted
from wirewitness.analyser.tables.renamed import RENAMED_TABLES, column_note, table_note
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.app.expect.bound import check_about, check_condition, check_query
from wirewitness.app.expect.comparison import comparison
from wirewitness.app.expect.errors import RulesError
from wirewitness.app.expect.kinds import Expectation, Measure, Measured, NoFindings, OfQuery, Order, Rows
from wirewitness.app.shared.names import near_names
from wirewitness.app.shared.small_files import NoSuchText, small_text, toml_of

MOST_BYTES = 1 << 20
MOST_EXPECTATIONS = 1000
_MOST_LETTERS = 20_000
_MOST_LISTED = 200
TABLE = "expect"
_NEEDS = re.compile(r"(\w+)(?:\s+where\s+(.*))?", re.IGNORECASE | re.DOTALL)
_PERCENTILE = re.compile(r"p(\d{1,2}(?:_\d)?)")
# What stands before the name of a column -> SQL.
_AGGREGATES = {
    "max": "max({})", "min": "min({})", "mean": "avg({})", "median": "median({})", "sum": "sum({})",
    "distinct": "count(DISTINCT {})",
}  # fmt: skip
_NUMBERS = ("int64", "float64")
_COMMON = ("name", "about", "needs")
# What means something beside one of the kinds.
_BESIDE = ("where", "severity", "rows", "per", "count")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the file. where: how messages name it; default: its name, where it has none."""

    where: str
    source: str
    values: Mapping[str, Any]
    default: str

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value.strip() or len(value) > _MOST_LETTERS:
            if value == default == "":
                return ""
            raise RulesError(f"{self.where}: {key} must be a text of at most {_MOST_LETTERS:,} letters")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text; empty where the key is not there."""
        value = self.values.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or len(listed) > _MOST_LISTED or not all(isinstance(v, str) for v in listed):
            raise RulesError(f"{self.where}: {key} must be a list of texts")
        return tuple(listed)

    def common(self) -> dict[str, Any]:
        """What every kind of expectation has."""
        about = self.values.get("about", {})
        if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
            raise RulesError(f'{self.where}: about must be a table of texts, such as about.group = "payments"')
        needs = tuple(self._needed(text) for text in self.texts("needs"))
        return {"name": self.text("name", self.default), "source": self.source, "about": about, "needs": needs}

    def _needed(self, text: str) -> Rows:
        found = _NEEDS.fullmatch(text.strip())
        if found is None:
            given = excerpt(repr(text))
            raise RulesError(f'{self.where}: needs must be "TABLE" or "TABLE where CONDITION", not {given}')
        table = self.table(found[1])
        if found[2]:
            check_condition(found[2], table, f"{self.where}: needs")
        return Rows(table, found[2] or "")

    def table(self, name: str) -> str:
        if name.lower() in RENAMED_TABLES:
            raise RulesError(f"{self.where}: {table_note(name.lower())}")
        if name.lower() not in ALL_TABLES:
            raise RulesError(
                f"{self.where}: unknown table {name!r}{near_names(name, ALL_TABLES)}",
                f"known: {', '.join(ALL_TABLES)}",
            )
        return name.lower()

    def selected(self, more: tuple[str, ...] = ()) -> Rows:
        """The rows of `table` and `where`."""
        table, where = self.table(self.text("table")), self.text("where", "")
        if where:
            check_condition(where, table, f"{self.where}: where")
        self.only("table", "where", "per", *more)
        return Rows(table, where)

    def columns(self, key: str, table: str) -> tuple[str, ...]:
        names = self.texts(key)
        for name in names:
            self.column(name, table)
        return names

    def column(self, name: str, table: str) -> str:
        known = ALL_TABLES[table].column_names()
        if name not in known:
            now = column_note(name, [table])
            if now is not None:
                raise RulesError(f"{self.where}: {now}")
            raise RulesError(
                f"{self.where}: {table} has no column {name!r}{near_names(name, known)}", f"known: {', '.join(known)}"
            )
        return name

    def only(self, *keys: str) -> None:
        """RulesError for a key that means nothing beside the others."""
        allowed = (*_COMMON, *keys)
        unknown = next((key for key in self.values if key not in allowed), None)
        if unknown is not None:
            raise RulesError(
                f"{self.where}: {unknown!r} means nothing here{near_names(unknown, allowed)}",
                f"known here: {', '.join(allowed)}",
            )


def read_rules(path: str) -> list[Expectation]:
    """The expectations of a file. RulesError where it is not there, too large, no TOML, or an entry is wrong."""
    try:
        return expectations_of(path, os.path.basename(path), small_text(path, MOST_BYTES))
    except NoSuchText as error:
        raise RulesError(f"{path}: {error}") from error


def expectations_of(path: str, source: str, text: str) -> list[Expectation]:
    """The expectations of a text. source: what people call it."""
    try:
        told = toml_of(text)
    except NoSuchText as error:
        raise RulesError(f"{path}: {error}") from error
    listed = told.pop(TABLE, None)
    if told:
        raise RulesError(f"{path}: {next(iter(told))!r} means nothing here; expectations begin with [[{TABLE}]]")
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise RulesError(f"{path}: there is no expectation in it; each begins with [[{TABLE}]]")
    if len(listed) > MOST_EXPECTATIONS:
        raise RulesError(f"{path}: {len(listed):,} expectations, more than {MOST_EXPECTATIONS:,}")
    entries = [_entry(path, source, number, one) for number, one in enumerate(listed, 1)]
    found = [_expectation(entry) for entry in entries]
    first: dict[str, int] = {}
    for number, (entry, one) in enumerate(zip(entries, found, strict=True), 1):
        if first.setdefault(one.name, number) != number:
            raise RulesError(
                f"{entry.where}: expectation {first[one.name]} has that name, too; reports know them by it"
            )
    return found


def _entry(path: str, source: str, number: int, values: Mapping[str, Any]) -> _Entry:
    name = values.get("name")
    called = f" ({beginning(name, 60)!r})" if isinstance(name, str) else ""
    said = " ".join(str(values.get("sql", f"expectation {number}")).split())
    return _Entry(f"{path}: expectation {number}{called}", source, values, beginning(said, 60))


def _expectation(entry: _Entry) -> Expectation:
    kinds = [key for key in _KINDS if key in entry.values]
    if "order" in kinds and "table" in kinds:
        kinds.remove("table")
    if len(kinds) != 1:
        raise _no_kind(entry, kinds)
    expectation = _KINDS[kinds[0]](entry)
    check_about(expectation, entry.where)
    return expectation


def _no_kind(entry: _Entry, kinds: list[str]) -> RulesError:
    """Of an entry that has none of the kinds, or several; a key that means nothing, as one misspelt, is named."""
    if kinds:
        said = f"has {' and '.join(kinds)}, which are expectations each"
        return RulesError(f"{entry.where} {said}: write one of {', '.join(_KINDS)}")
    unknown = next((key for key in entry.values if key not in (*_COMMON, *_BESIDE)), None)
    of_it = "" if unknown is None else f" ({unknown!r} means nothing here{near_names(unknown, (*_KINDS, *_COMMON))})"
    return RulesError(f"{entry.where} says nothing to check{of_it}: write one of {', '.join(_KINDS)}")


def _no_findings(entry: _Entry) -> Expectation:
    entry.only("no_findings", "severity", "where")
    listed = entry.values["no_findings"]
    rules = () if listed is True else tuple(_rule(entry, name) for name in entry.texts("no_findings"))
    if not rules and listed is not True:
        raise RulesError(f"{entry.where}: no_findings names no rule; true is all of them")
    severity, where = entry.text("severity", "info"), entry.text("where", "")
    if severity not in SEVERITIES:
        raise RulesError(f"{entry.where}: severity must be one of {', '.join(SEVERITIES)}, not {severity!r}")
    if where:
        check_condition(where, "findings", f"{entry.where}: where")
    common = entry.common()
    common["needs"] = common["needs"] or _read_by(rules)
    return NoFindings(**common, rules=rules, severity=severity, where=where)


def _rule(entry: _Entry, name: str) -> str:
    names = {rule.name: code for code, rule in RULES.items()}
    code = names.get(name.lower(), name.upper())
    if code not in RULES:
        raise RulesError(f"{entry.where}: unknown rule {name!r}{near_names(name, (*RULES, *names))}")
    return code


def _read_by(rules: tuple[str, ...]) -> tuple[Rows, ...]:
    """Where nothing is said: a row of what one of the rules looks at, of its protocol's tables where there are some."""
    read = [table for rule in rules for table in RULES[rule].reads] or ["exchanges"]
    own = [table for table in read if ALL_TABLES[table].protocol is not None]
    return tuple(Rows(table) for table in dict.fromkeys(own or read))


def _measured(entry: _Entry) -> Expectation:
    table = entry.table(entry.text("table"))
    measures = tuple(
        found for key, value in entry.values.items() if (found := _measure(entry, key, value, table)) is not None
    )
    rows, per = entry.selected(("count", *(m.name for m in measures))), entry.columns("per", table)
    if not measures:
        raise RulesError(
            f"{entry.where}: nothing to compare: write count, or max, min, mean, median, sum, distinct or p99 with a "
            'column, such as p99_latency_ms = "<= 700"'
        )
    for measure in measures:
        check_query(f'SELECT {measure.sql}::DOUBLE FROM "{table}"', f"{entry.where}: {measure.name}", table)
    return Measured(**entry.common(), rows=rows, per=per, measures=measures)


def _measure(entry: _Entry, key: str, value: object, table: str) -> Measure | None:
    """None for a key that names no number."""
    if key == "count":
        return Measure(key, "count(*)", None, comparison(value, f"{entry.where}: {key}"))
    long = re.match(r"p\d\d_\d(?=_)", key)  # p99_9_latency_ms
    begin, column = (long[0], key[long.end() + 1 :]) if long else key.partition("_")[::2]
    percentile = _PERCENTILE.fullmatch(begin)
    if not column or (percentile is None and begin not in _AGGREGATES):
        return None
    name = quoted(entry.column(column, table))
    kind = next(known.kind for known in ALL_TABLES[table].columns if known.name == column)
    if kind not in _NUMBERS and begin != "distinct":
        raise RulesError(
            f"{entry.where}: {key}: {column} of {table} is no number but {kind}; distinct_{column} counts it"
        )
    if percentile is not None:
        sql = f"quantile_cont({name}, {float(percentile[1].replace('_', '.')) / 100:.4f})"
    else:
        sql = _AGGREGATES[begin].format(name)
    return Measure(key, sql, column, comparison(value, f"{entry.where}: {key}"))


def _query(entry: _Entry) -> Expectation:
    entry.only("sql", "rows")
    sql = entry.text("sql").strip().rstrip(";")
    wanted = comparison(entry.values.get("rows", 0), f"{entry.where}: rows")
    bound = check_query(sql, f"{entry.where}: sql")
    check_query(f"SELECT * FROM ({sql}\n)", f"{entry.where}: sql")
    return OfQuery(**entry.common(), sql=sql, tables=bound.tables, columns=bound.columns, wanted=wanted)


def _order(entry: _Entry) -> Expectation:
    rows = entry.selected(("order",))
    if "ts" not in ALL_TABLES[rows.table].column_names():
        raise RulesError(f"{entry.where}: rows of {rows.table} have no time (ts), so there is no order to check")
    steps = entry.texts("order")
    if len(steps) < 2:
        raise RulesError(f"{entry.where}: order needs two conditions or more, the earlier one first")
    for step in steps:
        check_condition(step, rows.table, f"{entry.where}: order")
    return Order(**entry.common(), rows=rows, steps=steps, per=entry.columns("per", rows.table))


_KINDS: Mapping[str, Callable[[_Entry], Expectation]] = {
    "no_findings": _no_findings,
    "table": _measured,
    "sql": _query,
    "order": _order,
}


# Contracts that come along. In: a name. Out: the expectations of its file in `ready/`.

_SUFFIX = ".toml"


class Ready(NamedTuple):
    """A contract: its name, the line that its file begins with, and its TOML."""

    name: str
    line: str
    text: str


def ready_contracts() -> dict[str, Ready]:
    """All of them by name."""
    found = {}
    for file in sorted(files("wirewitness.app.expect").joinpath("ready").iterdir(), key=lambda file: file.name):
        if file.name.endswith(_SUFFIX):
            text, name = file.read_text(encoding="utf-8"), file.name.removesuffix(_SUFFIX)
            found[name] = Ready(name, text.partition("\n")[0].removeprefix("#").strip(), text)
    return found


def ready_contract(name: str) -> list[Expectation]:
    """The expectations of one. RulesError for a name that none has."""
    known = ready_contracts()
    if name not in known:
        raise RulesError(
            f"{name}: neither a file nor a contract that comes along{near_names(name, known)}",
            f"known: {', '.join(known)}",
        )
    return expectations_of(name, name, known[name].text)
