"""What differs between two sources: two times of a capture, or two captures. In: sources; out: rows, differences first.

Numbers stand in pairs, `_a` and `_b`. Rates are of the time that each source selects, so that unequal times compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from analyser.registry.queries import UNAWAITED_MS
from analyser.severity import severity_rank
from reports.questions.causes import findings
from reports.questions.source import Source, rows
from reports.questions.timelines import selected_span_ns

_OPERATIONS = f"""
    select protocol, coalesce(operation, 'not decoded') as operation, count(*) as exchanges,
           count(*) filter (status = 'error') as errors, quantile_cont({UNAWAITED_MS}, 0.5) as p50_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms
    from exchanges group by all"""
_ERRORS = """
    select protocol, coalesce(operation, 'not decoded') as operation,
           coalesce(error_name, error_code::varchar, 'not told') as error, count(*) as exchanges
    from exchanges where status = 'error' group by all"""
_CLIENTS = """
    select protocol, client_id, client_address, coalesce(operation, 'not decoded') as operation,
           string_agg(distinct version, ', ' order by version) as versions
    from exchanges group by all"""
_THERE, _AWAY = "there", "not there"
# What is that rare is no difference of latency or rate.
_FEW = 5


def operations_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, operation, changed; exchanges, per_second, errors, p50_ms, p99_ms of both.

    changed: the greatest factor between them.
    """
    made = []
    for key, (left, right) in _pairs(a, b, _OPERATIONS, ("protocol", "operation")).items():
        pair = {}
        for name in ("exchanges", "errors", "p50_ms", "p99_ms"):
            pair[f"{name}_a"], pair[f"{name}_b"] = left.get(name), right.get(name)
        for side, told, source in (("a", left, a), ("b", right, b)):
            pair[f"per_second_{side}"] = told.get("exchanges", 0) / _seconds(source)
            pair[f"errors_{side}"] = told.get("errors", 0)
            pair[f"exchanges_{side}"] = told.get("exchanges", 0)
        made.append({"protocol": key[0], "operation": key[1], **pair, "changed": _changed(pair)})
    return sorted(made, key=lambda row: (-row["changed"], -row["exchanges_a"] - row["exchanges_b"], row["operation"]))


def errors_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, operation, error, exchanges of both; what is there on one side only comes first."""
    made = [
        {"protocol": key[0], "operation": key[1], "error": key[2], "exchanges_a": left.get("exchanges", 0),
         "exchanges_b": right.get("exchanges", 0)}
        for key, (left, right) in _pairs(a, b, _ERRORS, ("protocol", "operation", "error")).items()
    ]  # fmt: skip
    return sorted(made, key=lambda row: (row["exchanges_a"] > 0 and row["exchanges_b"] > 0,
                                         -abs(row["exchanges_a"] - row["exchanges_b"]), row["error"]))  # fmt: skip


def clients_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, client_id, client_address, before, after of clients that came, went or ask for another version.

    before, after: whether it is there, or the operations that both sides have with the versions that differ.
    """
    left, right = _operations_of_clients(a), _operations_of_clients(b)
    made = []
    for key in sorted({*left, *right}, key=lambda one: tuple(str(part) for part in one)):
        old, new = left.get(key), right.get(key)
        if old is None or new is None:
            told = (_AWAY if old is None else _THERE, _AWAY if new is None else _THERE)
        else:
            differ = [name for name in old if name in new and old[name] != new[name]]
            told = (_listed(old, differ), _listed(new, differ))
        if told[0]:
            made.append({"protocol": key[0], "client_id": key[1], "client_address": key[2], "before": told[0],
                         "after": told[1]})  # fmt: skip
    return made


def _operations_of_clients(source: Source) -> dict[tuple[Any, ...], dict[str, str]]:
    """Versions by operation of each client."""
    found: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows(source, _CLIENTS):
        key = row["protocol"], row["client_id"], row["client_address"]
        found.setdefault(key, {})[row["operation"]] = row["versions"] or ""
    return found


def _listed(versions: Mapping[str, str], names: Sequence[str]) -> str:
    return "; ".join(f"{name} {versions[name]}".rstrip() for name in sorted(names))


def findings_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """code, name, severity, findings of both; what is found on one side only comes first, then the worst."""
    told: dict[tuple[str, str, str], Counter[str]] = {}
    for side, source in (("a", a), ("b", b)):
        for one in findings(source):
            told.setdefault((one.code, one.name, one.severity), Counter())[side] += 1
    made = [
        {"code": key[0], "name": key[1], "severity": key[2], "findings_a": counts["a"], "findings_b": counts["b"]}
        for key, counts in told.items()
    ]
    return sorted(made, key=lambda row: (row["findings_a"] > 0 and row["findings_b"] > 0,
                                         -severity_rank(row["severity"]), row["code"]))  # fmt: skip


def _pairs(
    a: Source, b: Source, query: str, names: Sequence[str]
) -> dict[tuple[Any, ...], tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Rows of both sides by what names them; an empty row where one side has none."""
    left, right = ({tuple(row[name] for name in names): row for row in rows(source, query)} for source in (a, b))
    return {one: (left.get(one, {}), right.get(one, {})) for one in {**left, **right}}


def _seconds(source: Source) -> float:
    span = selected_span_ns(source)
    return max((span[1] - span[0]) / 1e9, 1e-3) if span is not None else 1.0


def _changed(pair: Mapping[str, Any]) -> float:
    """The greatest factor between both sides, of latencies and rates of errors; infinite where one side has none."""
    counts = pair["exchanges_a"], pair["exchanges_b"]
    if min(counts) == 0:
        return float("inf") if max(counts) >= _FEW else 1.0
    shares = [(pair[f"errors_{side}"] + 1) / (count + 1) for side, count in zip("ab", counts, strict=True)]
    factors: list[float] = [max(shares) / min(shares)]
    if min(counts) >= _FEW:
        timed = ((pair[f"{name}_a"], pair[f"{name}_b"]) for name in ("p50_ms", "p99_ms"))
        factors += [max(both) / max(min(both), 1e-3) for both in timed if None not in both]
    return max(factors)
