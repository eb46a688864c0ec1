"""What a run knows of one group, as TOML values for MANIFEST.toml.

In: commits from the broker's request log, the clients' output. Out: a dict that tests read by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab import commits
from tests.lab.processes import read_events


def affected_partition(partition: int, accepted: list[commits.Commit]) -> dict[str, Any]:
    """Return what went back on one partition; the first time with what names its request on the wire."""
    rows = [row for row in accepted if row.partition == partition]
    mine = commits.regressions(rows)
    before, after = mine[0]
    return {
        "partition": partition,
        "regressions": len(mine),
        "stale_offsets": sorted({after.offset for _, after in mine}),
        "highest_offset": max(row.offset for row in rows),
        "last_offset": rows[-1].offset,
        "first": {
            "offset_before": before.offset,
            "offset_after": after.offset,
            "client_address": after.client_address,
            "client_port": after.client_port,
            "correlation_id": after.correlation_id,
        },
    }


def assignments(directory: Path, clients: Sequence[str], topic: str) -> list[dict[str, Any]]:
    """Return each session's partitions as the clients printed them, in the order of generations."""
    sessions = [
        {
            "generation": event["generation"],
            "client_id": name,
            "member_id": event["member_id"],
            "partitions": sorted((event["claims"] or {}).get(topic, [])),
        }
        for name in clients
        for event in read_events(directory / f"{name}.out")
        if event.get("event") == "session"
    ]
    return sorted(sessions, key=lambda session: (session["generation"], session["client_id"]))


def group_facts(rows: list[commits.Commit], group: str, directory: Path, clients: Sequence[str]) -> dict[str, Any]:
    """Return a group's commits, committers, assignments and the partitions whose stored offset went back."""
    mine = [row for row in rows if row.group == group]
    pairs = commits.regressions(mine)
    accepted = [row for row in mine if not row.error_code]
    refused = [row for row in mine if row.error_code]
    affected = sorted({after.partition for _, after in pairs})
    return {
        "group": group,
        "topic": mine[0].topic,
        "commits_accepted": len(accepted),
        "commits_refused": len(refused),
        "refused_error_codes": sorted({row.error_code for row in refused}),
        "refused_partitions": sorted({row.partition for row in refused}),
        "partitions_committed": sorted({row.partition for row in mine}),
        "partitions_affected": affected,
        "committer": commits.committers(mine),
        "stale_committer": commits.committers(after for _, after in pairs),
        "refused_committer": commits.committers(refused),
        "assignment": assignments(directory, clients, mine[0].topic),
        "affected": [affected_partition(partition, accepted) for partition in affected],
    }
