"""Operations and errors in numbers: SELECTs for tables. Latencies leave out requests that wait by design.

Who is named beside a number is the client with most of it, with how many of all are its own.
"""

from __future__ import annotations

from wirewitness.analyser.tables.queries import UNAWAITED_MS, literal
from wirewitness.reports.base.questions.failures import IS_UNANSWERED

# What stands for an operation or an error without a name.
NOT_DECODED, NOT_TOLD = "not decoded", "not told"
_WHO = "struct_pack(client_id, client_address)"
_FIRST_BY = "row({0}, client_address, client_id)"


def _most_by(count: str) -> str:
    """SQL over rows of clients: the client with the highest count, and `291 of 294`; null where there is none."""
    most = f"max({count}) > 0"
    chosen = f"arg_max({_WHO}, {_FIRST_BY.format(count)})"
    return f"""
           case when {most} then {chosen}.client_id end as client_id,
           case when {most} then {chosen}.client_address end as client_address,
           case when {most} then max({count}) || ' of ' || sum({count})::bigint end as most_by"""


_OPERATIONS = f"""
    with told as (
        select *, coalesce(operation, '{NOT_DECODED}') as name, {IS_UNANSWERED} as missing
        from exchanges where protocol = {{protocol}}),
    clients as (
        select name, client_id, client_address, count(*) filter (status = 'error') as errors from told group by all),
    most as (select name, {_most_by("errors")} from clients group by name)
    select name as operation, count(*) as exchanges,
           count(*) filter (status = 'error') as errors, any_value(most.client_id) as client_id,
           any_value(most.client_address) as client_address, any_value(most.most_by) as most_by,
           count(*) filter (missing) as unanswered,
           count(*) filter (awaitable) as waiting,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.95) as p95_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms,
           max({UNAWAITED_MS}) as max_ms,
           sum(request_bytes)::bigint as request_bytes, sum(response_bytes)::bigint as response_bytes
    from told left join most using (name) group by name"""

_ERRORS = f"""
    with clients as (
        select coalesce(operation, '{NOT_DECODED}') as operation,
               coalesce(error_name, error_code::varchar, '{NOT_TOLD}') as error, client_id, client_address,
               count(*) as n, min(ts) as ts_first, max(ts) as ts_last
        from exchanges where protocol = {{protocol}} and status = 'error' group by all)
    select operation, error, sum(n)::bigint as exchanges, count(*) as clients, {_most_by("n")},
           min(ts_first) as ts_first, max(ts_last) as ts_last
    from clients group by operation, error"""

# One row for each client that got an error or no answer.
CLIENTS_BY_ERRORS = f"""
    with told as (
        select *, {IS_UNANSWERED} as missing, coalesce(error_name, error_code::varchar, '{NOT_TOLD}') as error
        from exchanges),
    kinds as (
        select protocol, client_id, client_address, error, count(*) as n from told where status = 'error' group by all),
    worst as (
        select protocol, client_id, client_address,
               arg_max(error, row(n, error)) || ' ' || max(n) || ' of ' || sum(n)::bigint as mostly
        from kinds group by all),
    clients as (
        select protocol, client_id, client_address, count(*) as exchanges, count(distinct flow_id) as connections,
               count(*) filter (status = 'error') as errors, count(*) filter (missing) as unanswered,
               min(ts) filter (status = 'error' or missing) as ts_first,
               max(ts) filter (status = 'error' or missing) as ts_last
        from told group by all)
    select clients.*, mostly
    from clients left join worst on clients.protocol is not distinct from worst.protocol
        and clients.client_id is not distinct from worst.client_id
        and clients.client_address is not distinct from worst.client_address
    where errors > 0 or unanswered > 0"""


def operations_of(protocol: str) -> str:
    """One row for each operation."""
    return _OPERATIONS.format(protocol=literal(protocol))


def errors_of(protocol: str) -> str:
    """One row for each operation and error."""
    return _ERRORS.format(protocol=literal(protocol))
