"""Facts that the samples of MongoDB share, from what the drivers said of their commands.

In: CommandRecords. Out: TOML values.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.lab.command_log import CommandRecord


def facts_of(records: list[CommandRecord]) -> dict[str, Any]:
    """Return who spoke, how often each command came and which errors it met."""
    names = Counter(record.command for record in records)
    errors = Counter((record.command, record.code) for record in records if record.code is not None)
    writes = Counter((record.command, code) for record in records for code in record.write_errors)
    return {
        "client": [{"client": client, "address": address} for client, address in sorted(places(records))],
        "commands": dict(sorted(names.items())),
        "errors": [{"command": name, "code": code, "count": count} for (name, code), count in sorted(errors.items())],
        "write_errors": [
            {"command": name, "code": code, "count": count} for (name, code), count in sorted(writes.items())
        ],
    }


def places(records: list[CommandRecord]) -> set[tuple[str, str]]:
    """Return clients with their addresses."""
    return {(record.client, record.address) for record in records}


def slowest_us(records: list[CommandRecord]) -> int:
    """Return the longest duration that a driver measured; 0 if none did."""
    return max((record.duration_us or 0 for record in records), default=0)
