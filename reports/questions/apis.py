"""Operations of one protocol in numbers: a SELECT for tables. Latencies leave out requests that wait by design."""

from __future__ import annotations

from analyser.registry.queries import UNAWAITED_MS, literal
from reports.questions.failures import IS_UNANSWERED

_OPERATIONS = f"""
    select coalesce(operation, 'not decoded') as operation, count(*) as exchanges,
           count(*) filter (status = 'error') as errors, count(*) filter ({IS_UNANSWERED}) as unanswered,
           count(*) filter (awaitable) as waiting,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.95) as p95_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms,
           max({UNAWAITED_MS}) as max_ms,
           sum(request_bytes)::bigint as request_bytes, sum(response_bytes)::bigint as response_bytes
    from exchanges where protocol = {{protocol}} group by 1"""

_ERRORS = """
    select coalesce(operation, 'not decoded') as operation, coalesce(error_name, error_code::varchar) as error,
           count(*) as exchanges, count(distinct (client_address, client_id)) as clients,
           any_value(client_id) as client_id, any_value(client_address) as client_address,
           min(ts) as ts_first, max(ts) as ts_last
    from exchanges where protocol = {protocol} and error_code <> 0 group by 1, 2"""


def operations_of(protocol: str) -> str:
    """One row for each operation."""
    return _OPERATIONS.format(protocol=literal(protocol))


def errors_of(protocol: str) -> str:
    """One row for each operation and error."""
    return _ERRORS.format(protocol=literal(protocol))
