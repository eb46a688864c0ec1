"""Which error codes a run without faults may contain, and how often each was there.

In: LogRecords. Out: counts per (API, error code); LabError for a code that is no part of everyday life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError

# 79: a member is told its id. 35: ApiVersions is asked with a newer version first. 27: a rebalance is under way.
EVERYDAY = {("JOIN_GROUP", 79), ("API_VERSIONS", 35), ("HEARTBEAT", 27), ("SYNC_GROUP", 27), ("JOIN_GROUP", 27)}
# 14, 15, 16: the coordinator is not there yet; once per client and API, at its start.
START_UP_CODES = {14, 15, 16}


def error_codes(response: Any) -> Iterator[int]:
    """Yield every error code other than 0 anywhere in a response's JSON."""
    if isinstance(response, dict):
        for name, value in response.items():
            if name == "errorCode" and value:
                yield value
            else:
                yield from error_codes(value)
    elif isinstance(response, list):
        for value in response:
            yield from error_codes(value)


def is_everyday(api: str, code: int, count_per_client: int) -> bool:
    """Tell whether an error that one client got this often is part of everyday life."""
    return (api, code) in EVERYDAY or (code in START_UP_CODES and count_per_client == 1)


def check_everyday(records: list[LogRecord]) -> list[dict[str, Any]]:
    """Return the errors of a run for MANIFEST.toml; LabError if one of them is not everyday life."""
    counts = Counter(
        (record.api_name, code, record.client_id) for record in records for code in error_codes(record.response)
    )
    strange = {key: count for key, count in counts.items() if not is_everyday(key[0], key[1], count)}
    if strange:
        raise LabError(f"errors that a healthy run does not have: {strange}")
    totals: Counter[tuple[str, int]] = Counter()
    for (api, code, _), count in counts.items():
        totals[api, code] += count
    return [{"api": api, "error_code": code, "count": count} for (api, code), count in sorted(totals.items())]


def versions_seen(records: list[LogRecord]) -> dict[str, list[int]]:
    """Return the versions of each API that clients used, by the broker's API name."""
    found: dict[str, set[int]] = {}
    for record in records:
        found.setdefault(record.api_name, set()).add(record.version)
    return {name: sorted(versions) for name, versions in sorted(found.items())}
