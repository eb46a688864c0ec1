"""Operations and errors of two sources side by side, what differs most first. In: two sources; out: rows.

Numbers stand in pairs, `_a` and `_b`; `differs` is the least factor between both sides (see `confidence.py`), 1 where
they are alike. Rates are of the time that each source selects, so that unequal times compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.tables.queries import UNAWAITED_MS
from wirewitness.reports.base.questions.confidence import Range, count_range, least_factor
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.questions.timelines import selected_span_ns
from wirewitness.reports.report.compare.quantiles import QUANTILES, quantile_factor, quantiles_of

Row = Mapping[str, Any]
# Half a millisecond more or less is what machines that have something else to do make of an answer.
BLUR_MS = 0.5
# What stands for an error where a response was due and none came.
NO_RESPONSE = "no response"


_TIMED = f"""
    select protocol, coalesce(operation, 'not decoded') as operation, {UNAWAITED_MS} as ms from exchanges"""
_OPERATIONS = f"""
    with times as ({quantiles_of(_TIMED, ("protocol", "operation"), "ms")}),
    counts as (
        select protocol, coalesce(operation, 'not decoded') as operation, count(*) as exchanges
        from exchanges group by protocol, coalesce(operation, 'not decoded'))
    select counts.*, times.* exclude (protocol, operation)
    from counts left join times on times.protocol is not distinct from counts.protocol
         and times.operation = counts.operation"""
_ERRORS = f"""
    select protocol, coalesce(operation, 'not decoded') as operation,
           case when status = 'unanswered' then '{NO_RESPONSE}'
                else coalesce(error_name, error_code::varchar, 'not told') end as error, count(*) as exchanges
    from exchanges where status = 'error' or (status = 'unanswered' and answer_due) group by all"""
_ASKED = """
    select protocol, coalesce(operation, 'not decoded') as operation, count(*) as exchanges
    from exchanges group by all"""


def operations_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, operation; exchanges, per_second, p50_ms, p99_ms of both; p50, p99, rate (least factors), differs."""
    seconds = (seconds_of(a), seconds_of(b))
    made = []
    for key, sides in pairs(a, b, _OPERATIONS, ("protocol", "operation")).items():
        row: dict[str, Any] = {"protocol": key[0], "operation": key[1]}
        for side, told, length_s in zip("ab", sides, seconds, strict=True):
            exchanges = told.get("exchanges", 0)
            row |= {f"exchanges_{side}": exchanges, f"per_second_{side}": exchanges / length_s}
            row |= {f"{name}_ms_{side}": told.get(f"{name}_ms") for name in QUANTILES}
        for name in QUANTILES:
            row[name] = quantile_factor(sides, name, "ms", BLUR_MS)
        rates = [count_range(told.get("exchanges", 0)).over(s) for told, s in zip(sides, seconds, strict=True)]
        row["rate"] = least_factor(rates[0], rates[1])
        row["differs"] = max(row[name] for name in (*QUANTILES, "rate"))
        made.append(row)
    return sorted(made, key=lambda one: (-one["differs"], -one["exchanges_a"] - one["exchanges_b"], one["operation"]))


def errors_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, operation, error (`NO_RESPONSE` is one, too); exchanges with it and of (all exchanges of the operation)
    of both; differs.

    The factor is that of the shares: twice the errors of twice the exchanges are no difference.
    """
    asked = pairs(a, b, _ASKED, ("protocol", "operation"))
    made = []
    for key, sides in pairs(a, b, _ERRORS, ("protocol", "operation", "error")).items():
        row: dict[str, Any] = {"protocol": key[0], "operation": key[1], "error": key[2]}
        ranges = []
        for side, told, whole in zip("ab", sides, asked[key[:2]], strict=True):
            failed, of = told.get("exchanges", 0), whole.get("exchanges", 0)
            row |= {f"exchanges_{side}": failed, f"of_{side}": of}
            ranges.append(count_range(failed).over(max(of, 1)) if of else Range(0.0, 1.0))
        row["differs"] = least_factor(ranges[0], ranges[1]) if row["of_a"] and row["of_b"] else _alone(row)
        made.append(row)
    return sorted(made, key=lambda one: (-one["differs"], -abs(one["exchanges_a"] - one["exchanges_b"]), one["error"]))


def _alone(row: Row) -> float:
    """Errors of what only one side asks for: by their number."""
    return least_factor(count_range(row["exchanges_a"]), count_range(row["exchanges_b"]))


def pairs(a: Source, b: Source, query: str, names: Sequence[str]) -> dict[tuple[Any, ...], tuple[Row, Row]]:
    """Rows of both sides by what names them; an empty row where one side has none."""
    left, right = ({tuple(row[name] for name in names): row for row in rows(source, query)} for source in (a, b))
    return {one: (left.get(one, {}), right.get(one, {})) for one in {**left, **right}}


def seconds_of(source: Source) -> float:
    """How long the selected time is, at least a ms."""
    span = selected_span_ns(source)
    return max((span[1] - span[0]) / 1e9, 1e-3) if span is not None else 1.0
