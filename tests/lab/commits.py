"""The lab's own view of offset commits, read from the broker's request log.

In: LogRecords. Out: rows of accepted and refused commits, and what went wrong in them.
It shares no code with the product: tests compare the product's findings with these facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.lab.broker_log import LogRecord

COMMIT_APIS = {8: "OffsetCommit", 28: "TxnOffsetCommit"}


class Commit(NamedTuple):
    """One partition of one commit request."""

    api: str
    group: str
    topic: str
    partition: int
    offset: int
    member_id: str
    generation: int
    client_id: str | None
    client_address: str
    client_port: int
    correlation_id: int
    error_code: int


def topic_names(records: Iterable[LogRecord]) -> dict[str, str]:
    """Return the names of topic ids as Metadata and CreateTopics responses tell them."""
    names = {}
    for record in records:
        if record.api_key in (3, 19) and record.response:
            for topic in record.response.get("topics", []):
                if topic.get("topicId") and topic.get("name"):
                    names[topic["topicId"]] = topic["name"]
    return names


def read_commits(records: list[LogRecord]) -> list[Commit]:
    """Return every committed partition in the log's order."""
    names = topic_names(records)
    return [commit for record in records if record.api_key in COMMIT_APIS for commit in _rows(record, names)]


def _rows(record: LogRecord, names: dict[str, str]) -> Iterable[Commit]:
    def name_of(topic: dict[str, Any]) -> str:
        return str(topic.get("name") or names[topic["topicId"]])

    assert record.response is not None
    errors = {
        (name_of(topic), partition["partitionIndex"]): partition["errorCode"]
        for topic in record.response["topics"]
        for partition in topic["partitions"]
    }
    request = record.request
    for topic in request["topics"]:
        for partition in topic["partitions"]:
            key = (name_of(topic), partition["partitionIndex"])
            yield Commit(
                COMMIT_APIS[record.api_key],
                request["groupId"],
                *key,
                partition["committedOffset"],
                request.get("memberId", ""),
                request.get("generationIdOrMemberEpoch", request.get("generationId", -1)),
                record.client_id,
                *record.client,
                record.correlation_id,
                errors[key],
            )


def regressions(commits: Iterable[Commit]) -> list[tuple[Commit, Commit]]:
    """Return pairs (before, after) of accepted commits where the stored offset of a partition went back."""
    last: dict[tuple[str, str, int], Commit] = {}
    found = []
    for commit in commits:
        if commit.error_code:
            continue
        key = (commit.group, commit.topic, commit.partition)
        before = last.get(key)
        if before is not None and commit.offset < before.offset:
            found.append((before, commit))
        last[key] = commit
    return found


def committers(commits: Iterable[Commit]) -> list[dict[str, Any]]:
    """Return who committed: one entry per (client id, address, member id) with its generations, for MANIFEST.toml."""
    generations = defaultdict(set)
    for commit in commits:
        generations[commit.client_id or "", commit.client_address, commit.member_id].add(commit.generation)
    return [
        {"client_id": key[0], "address": key[1], "member_id": key[2], "generations": sorted(found)}
        for key, found in sorted(generations.items())
    ]
