"""Expectations over an analysis. In: expectations, an open analysis. Out: of each whether it holds, and the evidence.

States: `ok`; `FAILED`; `nothing`: what it is about does not occur, so nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.tables.queries import QueryError, QueryTooLarge, name_list, quoted
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.app.expect.errors import RulesError
from wirewitness.app.expect.evidence import Found, evidence_of, rows_of
from wirewitness.app.expect.kinds import Expectation, Measured, NoFindings, OfQuery, Order, Rows, column_of
from wirewitness.reports.base.questions.causes import Finding, findings
from wirewitness.reports.base.questions.review_subject import subject_pairs
from wirewitness.reports.base.questions.reviews import matches

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis

State = Literal["ok", "FAILED", "nothing"]
OK: State = "ok"
FAILED: State = "FAILED"
NOTHING: State = "nothing"
_MORE_NAMES = {"group": "group_id", "client": "client_id", "address": "client_address"}
_OUT = "out_of_order"
# Rules about what a capture lacks: bytes, a direction, ends of packets, packets.
_LACKS = ("CAP101", "CAP102", "CAP103", "CAP105")

# What says of rows what they must not be; `IS NOT` leaves nothing out.
_DENIES = re.compile(r"(?i)\bnot\b|<>|!=")
_IS_NOT = re.compile(r"(?i)\bis\s+not\b")

Kind = TypeVar("Kind", bound=Expectation)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an expectation. said: a sentence. findings, rows: the evidence of one that failed. warnings: what
    its conditions leave out, though whoever wrote them may not know."""

    expectation: Expectation
    state: State
    said: str
    findings: Sequence[Finding] = ()
    rows: Sequence[Found] = field(default=())
    warnings: Sequence[str] = ()


def listed(names: Sequence[str]) -> str:
    """All of them: what a contract is about is not shortened."""
    return names_text(names, len(names))


def tables_of(expectations: Iterable[Expectation]) -> tuple[str, ...]:
    """Tables to read for these expectations."""
    from wirewitness.analyser.analysis.all_rules import tables_needed

    every = list(expectations)
    needed = [rows.table for one in every for rows in one.needs]
    for one in every:
        if isinstance(one, Measured | Order):
            needed.append(one.rows.table)
        if isinstance(one, OfQuery):
            needed += one.tables
    if "findings" in needed or any(isinstance(one, NoFindings) for one in every):
        needed += ["findings", *sorted(tables_needed())]
    # Where rows of evidence have their packets from.
    return tuple(dict.fromkeys([*needed, "exchanges", "messages", "flows"]))


def check_all(analysis: Analysis, expectations: Sequence[Expectation]) -> list[Outcome]:
    """The outcome of each. RulesError for a query that cannot be computed, QueryTooLarge for one of too many rows."""
    found = cache(lambda: findings(analysis))
    return [_checked(analysis, one, found) for one in expectations]


def doubts(analysis: Analysis) -> list[str]:
    """Sentences about what the capture lacks, where rules were asked, and about faults of wirewitness itself: what
    holds may not hold there."""
    failed = [f"{fault}." for fault in analysis.faults]
    if "findings" not in analysis.tables():
        return failed
    return failed + [finding.sentence for finding in findings(analysis) if finding.code in _LACKS]


def _checked(analysis: Analysis, one: Expectation, found: Callable[[], list[Finding]]) -> Outcome:
    try:
        if isinstance(one, NoFindings):
            outcome = _no_findings(analysis, one, found())
        else:
            outcome = _CHECKS[type(one)](analysis, one)
        return replace(outcome, warnings=_left_out(analysis, one))
    except QueryTooLarge:
        raise
    except QueryError as error:
        raise RulesError(f"{one.source}: {one.name!r} cannot be computed: {error}") from error


def _left_out(analysis: Analysis, one: Expectation) -> list[str]:
    """A line for each condition that is neither true nor false in some rows, and so leaves them out.

    Only of conditions that say what must not be: that null is not equal to something surprises nobody, but neither is
    it unequal, or `not` anything.
    """
    lines = []
    for name, rows in _conditions(one):
        if not rows.where or not _DENIES.search(_IS_NOT.sub("", rows.where)):
            continue
        among = Rows(rows.table).conditions(one.about, _columns(rows.table))
        left_out = f"count(*) FILTER (({rows.where}\n) IS NULL) AS left_out"
        sql = f"SELECT count(*) AS rows_seen, {left_out} FROM {quoted(rows.table)} WHERE {among}"
        (told,) = rows_of(analysis, sql)
        if told["left_out"]:
            lines.append(
                f"`{name}` is neither true nor false in {told['left_out']:,} of {count(told['rows_seen'], 'row')} of "
                f"{rows.table}, where a column is null: they are left out. IS NOT TRUE, IS DISTINCT FROM and coalesce "
                "say what is meant of them."
            )
    return lines


def _conditions(one: Expectation) -> Iterator[tuple[str, Rows]]:
    """The conditions of an expectation with what they are called."""
    if isinstance(one, Measured | Order):
        yield "where", one.rows
    if isinstance(one, Order):
        yield from (("order", Rows(one.rows.table, step)) for step in one.steps)
    if isinstance(one, NoFindings) and one.where:
        yield "where", Rows("findings", one.where)
    yield from (("needs", rows) for rows in one.needs)


def _no_findings(analysis: Analysis, one: NoFindings, found: Sequence[Finding]) -> Outcome:
    wanted = [finding for finding in found if _is_meant(one, finding)]
    if one.where:
        chosen = rows_of(analysis, f"SELECT finding_id FROM findings WHERE ({one.where}\n)")
        ids = {row["finding_id"] for row in chosen}
        wanted = [finding for finding in wanted if finding.finding_id in ids]
    if wanted:
        codes = listed(list(dict.fromkeys(finding.code for finding in wanted)))
        return Outcome(one, FAILED, f"{count(len(wanted), 'finding')} of {codes}", findings=wanted)
    broken = sorted({failure.code for failure in analysis.failures if not one.rules or failure.code in one.rules})
    if broken:
        return Outcome(one, FAILED, f"{listed(broken)} could not evaluate all of it, so nobody knows")
    lacking = _lacking(analysis, one) or _untold(one, found)
    if lacking:
        return Outcome(one, NOTHING, lacking)
    return Outcome(one, OK, f"no finding of {listed(one.rules)}" if one.rules else "no finding")


def _untold(one: NoFindings, found: Sequence[Finding]) -> str:
    """Of findings that there are, what they never say, so that none could be about it; empty where there is no such
    thing."""
    of_rules = [finding for finding in found if _is_meant(replace(one, about={}), finding)]
    untold = [name for name in one.about if not any(_has(*_values(each), name, "*") for each in of_rules)]
    if not of_rules or not untold:
        return ""
    codes = listed(list(dict.fromkeys(finding.code for finding in of_rules)))
    return f"findings of {codes} are there, and say no {listed(untold)}"


def _is_meant(one: NoFindings, finding: Finding) -> bool:
    if one.rules and finding.code not in one.rules:
        return False
    if severity_rank(finding.severity) < severity_rank(one.severity):
        return False
    return all(_has(*_values(finding), name, wanted) for name, wanted in one.about.items())


def _values(finding: Finding) -> tuple[Mapping[str, str], Finding]:
    """What its numbers and its subject say, beside the finding itself."""
    subject = {name: str(value) for name, value in finding.numbers.items() if isinstance(value, str | int)}
    return subject | dict(subject_pairs(finding.subject)), finding


def _has(subject: Mapping[str, str], finding: Finding, name: str, wanted: str) -> bool:
    """Its subject, its numbers or a client that it names has such a value."""
    names = (name, _MORE_NAMES.get(name, name))
    clients = [client.get(key) for client in finding.everybody for key in names]
    values = [*(subject.get(key) for key in names), *clients]
    return any(matches(str(value), wanted) for value in values if value is not None)


def _measured(analysis: Analysis, one: Measured) -> Outcome:
    table, per = one.rows.table, name_list(one.per)
    where = one.rows.conditions(one.about, _columns(table))
    numbers = ", ".join(f"{measure.sql}::DOUBLE AS {quoted(measure.name)}" for measure in one.measures)
    told = f"SELECT {per}{', ' if per else ''}count(*) AS rows_seen, {numbers} FROM {quoted(table)} WHERE {where}"
    told += f" GROUP BY {per}" if per else ""
    breaks = " OR ".join(f"NOT {quoted(m.name)} {m.wanted.sql}" for m in one.measures)
    judged = f"SELECT *, coalesce({breaks}, false) AS is_broken FROM ({told})"
    (whole,) = rows_of(
        analysis,
        f"SELECT coalesce(sum(rows_seen), 0) AS rows_seen, count(*) AS groups, count(*) FILTER (is_broken) AS broken, "
        f"{', '.join(f'count({quoted(m.name)}) AS {quoted(m.name)}' for m in one.measures)} FROM ({judged})",
    )
    if whole["broken"] and (whole["rows_seen"] or one.counts_alone):
        shown = rows_of(analysis, f"SELECT * EXCLUDE (is_broken) FROM ({judged}) WHERE is_broken ORDER BY ALL", 100)
        return _over(analysis, one, where, whole, shown)
    lacking = _lacking(analysis, one)
    if lacking:
        return Outcome(one, NOTHING, lacking)
    if not whole["rows_seen"] and not (one.counts_alone and not one.per):
        return Outcome(one, NOTHING, f"no row of {table}{_narrowed(one.rows.where, one.about)}")
    unmeasured = [m for m in one.measures if m.column is not None and not whole[m.name]]
    if unmeasured:
        return Outcome(one, NOTHING, f"{unmeasured[0].column} is not known in any row")
    rows = count(int(whole["rows_seen"]), "row")
    if one.per:
        return Outcome(one, OK, f"{rows}, {count(whole['groups'], 'group')} of {listed(one.per)}")
    (values,) = rows_of(analysis, told)
    return Outcome(
        one, OK, "; ".join(_said(measure.name, values[measure.name], measure.wanted) for measure in one.measures)
    )


def _said(name: str, value: float, wanted: Any) -> str:
    return f"{name} {value:,.6g} {wanted.operator} {wanted.number_text}"


def _over(
    analysis: Analysis, one: Measured, where: str, whole: Mapping[str, Any], shown: Sequence[Mapping[str, Any]]
) -> Outcome:
    """Of those that break it: the numbers, and rows with the worst values of the first."""
    first = shown[0]
    broken = [m for m in one.measures if first[m.name] is not None and not m.wanted.holds(first[m.name])]
    of = [f"{name} {first[name]}" for name in one.per]
    said = f"{', '.join(of)}: " if of else ""
    said += "; ".join(
        f"{m.name} is {first[m.name]:,.6g}, not {m.wanted.operator} {m.wanted.number_text}" for m in broken
    )
    more = f"; likewise {count(whole['broken'] - 1, 'other group')}" if whole["broken"] > 1 else ""
    chosen = " AND ".join([where, *(_equal(name, first[name]) for name in one.per)])
    worst = next((m for m in broken if m.column is not None), None)
    order = (
        ""
        if worst is None
        else f"{quoted(str(worst.column))} {'DESC' if worst.wanted.wants_less else 'ASC'} NULLS LAST"
    )
    shown_columns = (*one.per, *(str(m.column) for m in broken if m.column is not None))
    rows = evidence_of(analysis, one.rows.table, chosen, order, shown_columns)
    return Outcome(one, FAILED, f"{said} ({count(int(first['rows_seen']), 'row')}){more}", rows=rows)


def _equal(name: str, value: Any) -> str:
    from wirewitness.analyser.tables.queries import literal

    return f"{quoted(name)} IS NULL" if value is None else f"{quoted(name)}::VARCHAR = {literal(str(value))}"


def _of_query(analysis: Analysis, one: OfQuery) -> Outcome:
    where = one.conditions()
    (whole,) = rows_of(analysis, f"SELECT count(*) AS n FROM ({one.sql}\n) WHERE {where}")
    holds = one.wanted.holds(whole["n"])
    said = f"{count(whole['n'], 'row')}, {'' if holds else 'not '}{one.wanted.operator} {one.wanted.number_text}"
    if not holds:
        # In the order that the query gives, else in one that is the same each time.
        order = "" if re.search(r"\border\s+by\b", one.sql, re.IGNORECASE) else "ALL"
        return Outcome(one, FAILED, said, rows=evidence_of(analysis, f"({one.sql}\n)", where, order, None))
    lacking = _lacking(analysis, one)
    if not lacking and not one.needs and one.tables and not any(_any(analysis, Rows(table)) for table in one.tables):
        lacking = f"no row of {listed(one.tables)}"
    return Outcome(one, NOTHING, lacking) if lacking else Outcome(one, OK, said)


def _order(analysis: Analysis, one: Order) -> Outcome:
    table = quoted(one.rows.table)
    where = one.rows.conditions(one.about, _columns(one.rows.table))
    over = f" PARTITION BY {name_list(one.per)}" if one.per else ""
    checked = 0
    for earlier, later in zip(one.steps, one.steps[1:], strict=False):
        (seen,) = rows_of(analysis, f"SELECT count(*) AS n FROM {table} WHERE {where} AND ({later}\n)")
        checked += seen["n"]
        marked = (
            f"SELECT *, NOT coalesce(bool_or(({earlier}\n)) OVER ({over.strip()} ORDER BY ts "
            f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), false) AND ({later}\n) AS {_OUT} "
            f"FROM {table} WHERE {where}"
        )
        (broken,) = rows_of(analysis, f"SELECT count(*) AS n FROM ({marked}) WHERE {_OUT}")
        if broken["n"]:
            said = f"{count(broken['n'], 'row')} with {later} and none with {earlier} before"
            said += f" of the same {listed(one.per)}" if one.per else ""
            rows = evidence_of(analysis, f"({marked})", _OUT, "ts", (*one.per, "ts"), one.rows.table)
            return Outcome(one, FAILED, said, rows=rows)
    lacking = _lacking(analysis, one) or (
        "" if checked else f"no row of {one.rows.table} with {' or '.join(one.steps[1:])}"
    )
    return Outcome(one, NOTHING, lacking) if lacking else Outcome(one, OK, f"{count(checked, 'row')} in order")


_CHECKS: Mapping[type[Expectation], Callable[[Analysis, Any], Outcome]] = {
    Measured: _measured,
    OfQuery: _of_query,
    Order: _order,
}


def _lacking(analysis: Analysis, one: Expectation) -> str:
    """Why there is nothing to check; empty where there is something."""
    # Rows of a table that does not know what it is about say nothing of whether that occurs.
    knowing = [rows for rows in one.needs if all(column_of(name, _columns(rows.table)) for name in one.about)]
    needs = knowing or one.needs
    if not needs or any(_any(analysis, rows, one.about) for rows in needs):
        return ""
    named = [f"{rows.table}{_narrowed(rows.where, one.about)}" for rows in needs]
    return f"no row of {listed(named)}"


def _columns(table: str) -> Sequence[str]:
    return ALL_TABLES[table].column_names()


def _any(analysis: Analysis, rows: Rows, about: Mapping[str, str] | None = None) -> bool:
    where = rows.conditions(about or {}, _columns(rows.table))
    return bool(rows_of(analysis, f"SELECT 1 AS one FROM {quoted(rows.table)} WHERE {where}", 1))


def _narrowed(where: str, about: Mapping[str, str]) -> str:
    parts = [*([" ".join(where.split())] if where else []), *(f"{name} {value}" for name, value in about.items())]
    return f" with {', '.join(parts)}" if parts else ""
