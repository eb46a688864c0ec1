"""What the broker's request log says of one incident: who joined, committed, produced, and what was refused.

In: records of the log. Out: plain values for truth.json.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.lab.broker_log import LogRecord

MOST_CHANGES = 300


def who(record: LogRecord) -> str:
    """Return CLIENT@ADDRESS."""
    return f"{record.client_id}@{record.client.host}"


def error_codes(value: Any) -> Iterator[int]:
    """Yield the error codes of a response, at any depth."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in ("errorCode", "partitionErrorCode", "acknowledgeErrorCode") and part:
                yield part
            else:
                yield from error_codes(part)
    elif isinstance(value, list):
        for part in value:
            yield from error_codes(part)


def errors(records: Iterable[LogRecord]) -> dict[str, int]:
    """Count refused requests: "CLIENT@ADDRESS OFFSET_COMMIT 25"."""
    found = Counter(f"{who(one)} {one.api_name} {code}" for one in records for code in set(error_codes(one.response)))
    return dict(found)


def members(records: Iterable[LogRecord]) -> dict[str, dict[str, list[str]]]:
    """Return the member ids by group and client."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for one in records:
        group = one.request.get("groupId")
        member = (one.response or {}).get("memberId") or one.request.get("memberId")
        if group and member:
            found.setdefault(group, {}).setdefault(who(one), {})[member] = None
    return {group: {client: list(ids) for client, ids in by.items()} for group, by in found.items()}


def leaves(records: Iterable[LogRecord]) -> list[dict[str, Any]]:
    """Return who left, and why."""
    found = []
    for one in records:
        if one.api_name == "LEAVE_GROUP":
            said = one.request.get("members") or [one.request]
            found += [{"ms": one.logged_ms, "client": who(one), "group": one.request["groupId"],
                       "member": each.get("memberId"), "reason": each.get("reason")} for each in said]  # fmt: skip
        elif one.api_name == "CONSUMER_GROUP_HEARTBEAT" and one.request.get("memberEpoch", 0) < 0:
            found.append(
                {
                    "ms": one.logged_ms,
                    "client": who(one),
                    "group": one.request["groupId"],
                    "member": one.request.get("memberId"),
                    "reason": f"epoch {one.request['memberEpoch']}",
                }
            )
    return found


def commits(records: Iterable[LogRecord], groups: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return per group, partition and client: first, last, lowest, highest offset, number, refused by code."""
    wanted = set(groups)
    found: dict[str, dict[str, Any]] = {}
    for one in records:
        if one.api_name != "OFFSET_COMMIT" or one.request.get("groupId") not in wanted:
            continue
        refused = {
            (topic.get("name") or topic.get("topicId"), part["partitionIndex"]): part["errorCode"]
            for topic in (one.response or {}).get("topics", ())
            for part in topic["partitions"]
        }
        for topic in one.request["topics"]:
            name = topic.get("name") or topic.get("topicId")
            for part in topic["partitions"]:
                key = f"{one.request['groupId']} {name}-{part['partitionIndex']} {who(one)}"
                add_commit(found, key, part["committedOffset"], refused.get((name, part["partitionIndex"]), 0))
    return found


def add_commit(found: dict[str, dict[str, Any]], key: str, offset: int, error: int) -> None:
    """Count one commit."""
    row = found.setdefault(key, {"first": offset, "lowest": offset, "highest": offset, "commits": 0, "refused": {}})
    if error:
        row["refused"][str(error)] = row["refused"].get(str(error), 0) + 1
        return
    row["commits"] += 1
    row["last"] = offset
    row["lowest"], row["highest"] = min(row["lowest"], offset), max(row["highest"], offset)


def broker_facts(records: list[LogRecord], groups: Iterable[str]) -> dict[str, Any]:
    """Return all of the above."""
    return {
        "members": members(records),
        "leaves": leaves(records)[:MOST_CHANGES],
        "commits": commits(records, groups),
        "errors": errors(records),
        "clients": sorted({who(one) for one in records}),
    }
