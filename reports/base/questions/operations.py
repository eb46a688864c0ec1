"""Operations and clients in numbers. In: an analysis; out: one value per operation and one per client."""

from __future__ import annotations

from dataclasses import dataclass

from wirewitness.analyser.tables.queries import UNAWAITED_MS
from wirewitness.reports.base.questions.failures import IS_UNANSWERED
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.questions.workloads import OWNERS, is_anybody_named

_OPERATIONS = f"""
    select protocol, operation, count(*) as exchanges,
           count(*) filter (status = 'error') as errors,
           count(*) filter ({IS_UNANSWERED}) as unanswered,
           count(*) filter (status = 'orphan') as orphans,
           count(*) filter (awaitable) as waiting,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms,
           max({UNAWAITED_MS}) as max_ms
    from exchanges group by protocol, operation order by exchanges desc, protocol, operation"""

_ERRORS = """
    select protocol, operation, coalesce(error_name, error_code::varchar) as error, count(*) as exchanges
    from exchanges where error_code <> 0
    group by all order by exchanges desc, error"""

_CLIENTS = f"""
    select client_address, client_id, protocol, count(distinct flow_id) as flows, count(*) as exchanges,
           count(*) filter (status = 'error' or {IS_UNANSWERED}) as errors,
           epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns, {{owner}} as owner
    from exchanges group by client_address, client_id, protocol
    order by exchanges desc, client_address, client_id limit {{limit}}"""

_CLIENT_COUNT = """
    select count(*) as clients from (select distinct client_address, client_id, protocol from exchanges)"""


@dataclass(frozen=True, slots=True)
class Operation:
    """Exchanges of one operation. waiting: those whose request asks the server to wait; latencies leave them out.

    unanswered: got no answer although one was due (`failures.py`). Latencies in ms, None when none was answered.
    error_names: name -> exchanges.
    """

    protocol: str | None
    operation: str | None
    exchanges: int
    errors: int
    unanswered: int
    orphans: int
    waiting: int
    median_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    error_names: dict[str, int]


@dataclass(frozen=True, slots=True)
class Client:
    """What one client id of one address did. errors: answers with an error, and requests that are `unanswered`.

    `*_ns` are Unix times of its first and last exchange. owner: process, pod or host in words; None where nobody says.
    """

    client_address: str | None
    client_id: str | None
    protocol: str | None
    flows: int
    exchanges: int
    errors: int
    first_ns: int
    last_ns: int
    owner: str | None = None


def operations(source: Source) -> list[Operation]:
    """Operations, most frequent first."""
    errors: dict[tuple[str | None, str | None], dict[str, int]] = {}
    for row in rows(source, _ERRORS):
        errors.setdefault((row["protocol"], row["operation"]), {})[row["error"]] = row["exchanges"]
    return [
        Operation(**row, error_names=errors.get((row["protocol"], row["operation"]), {}))
        for row in rows(source, _OPERATIONS)
    ]


def clients(source: Source, limit: int) -> list[Client]:
    """The busiest clients, at most `limit`: client ids are whatever was sent, there may be millions."""
    owner = OWNERS if is_anybody_named(source) else "NULL::VARCHAR"
    return [Client(**row) for row in rows(source, _CLIENTS.format(limit=int(limit), owner=owner))]


def client_count(source: Source) -> int:
    """How many clients there are."""
    return int(rows(source, _CLIENT_COUNT)[0]["clients"])
