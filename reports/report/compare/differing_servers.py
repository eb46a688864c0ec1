"""Operations by the server that answers, where several do on both sides: one slow broker among three is a difference of
its own. In: two sources; out: rows, what differs most first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.tables.queries import UNAWAITED_MS
from wirewitness.reports.base.questions.confidence import count_range, least_factor
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.report.compare.differing_operations import BLUR_MS, pairs
from wirewitness.reports.report.compare.quantiles import QUANTILES, quantile_factor, quantiles_of

Row = Mapping[str, Any]
_KEYS = ("protocol", "operation", "server_address", "server_port")
_NAMED = "coalesce(operation, 'not decoded')"
_ASKED = f"""
    select protocol, {_NAMED} as operation, server_address, server_port, status, {UNAWAITED_MS} as ms
    from exchanges where direction is distinct from 'server_to_client' and server_address is not null"""
_SERVERS = f"""
    with asked as ({_ASKED}),
    times as ({quantiles_of("select * from asked", _KEYS, "ms")}),
    counts as (
        select {", ".join(_KEYS)}, count(*) as exchanges, count(*) filter (status = 'error') as errors
        from asked group by all)
    select counts.*, times.* exclude ({", ".join(_KEYS)})
    from counts left join times on times.protocol is not distinct from counts.protocol
         and times.operation = counts.operation and times.server_address = counts.server_address
         and times.server_port is not distinct from counts.server_port"""


def servers_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, operation, server, server_address, server_port; exchanges, errors, p50_ms, p99_ms of both; p50, p99 and
    wrong (least factors, the last of the shares of errors), differs.

    Only servers that answer the operation on both sides, and operations that several of them do.
    """
    both = {key: sides for key, sides in pairs(a, b, _SERVERS, _KEYS).items() if all(sides)}
    several: dict[tuple[Any, Any], int] = {}
    for key in both:
        several[key[:2]] = several.get(key[:2], 0) + 1
    made = [_row(key, sides) for key, sides in both.items() if several[key[:2]] > 1]
    return sorted(made, key=lambda row: (-row["differs"], row["operation"], row["server"]))


def _row(key: tuple[Any, ...], sides: tuple[Row, Row]) -> dict[str, Any]:
    protocol, operation, address, port = key
    row: dict[str, Any] = {
        "protocol": protocol, "operation": operation, "server": f"{address}:{port}" if port is not None else address,
        "server_address": address, "server_port": port,
    }  # fmt: skip
    for side, told in zip("ab", sides, strict=True):
        row |= {f"exchanges_{side}": told["exchanges"], f"errors_{side}": told["errors"]}
        row |= {f"{name}_ms_{side}": told[f"{name}_ms"] for name in QUANTILES}
    factors = {name: quantile_factor(sides, name, "ms", BLUR_MS) for name in QUANTILES}
    shares = [count_range(told["errors"]).over(told["exchanges"]) for told in sides]
    factors["wrong"] = least_factor(shares[0], shares[1])
    return row | factors | {"differs": max(factors.values())}
