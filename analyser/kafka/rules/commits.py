"""Offset commits as rules see them: who committed what, in the order in which the broker took it.

In: one partition's frame of `kafka_offset_commits`. Out: `Commit` values in broker order, committers, and the words
and numbers that findings about commits share.

Broker order. A broker takes the requests of one connection one after the other and answers in that order, so on one
flow the order of the stream is the order of the broker. Between flows the time of the response decides; two exchanges
on different flows that were open at the same time are `racing`: nothing is concluded from their order alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wirewitness.analyser.base.words import names_text
from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence
from wirewitness.analyser.engine.rules.frame import Frame, numbered
from wirewitness.analyser.engine.rules.frame_rows import values
from wirewitness.analyser.kafka.rules import names

# The commits of one client as its requests, by time: which of them have a partition, and which leave it out.
#
# In: one client's frame of `kafka_offset_commits`. Out: lists in which what is around a moment is found by halving.


class Sent(NamedTuple):
    """A client's requests, and one partition in them.

    times: when each request was sent, rising. numbers, offsets: which of them have the partition, and with which
    offset.
    """

    times: list[int]
    numbers: list[int]
    offsets: list[int]


class CommitRequests:
    """The commits of one client (address, client id)."""

    def __init__(self, commits: Frame) -> None:
        self._codes, names = commits["topic"].texts()
        self._partitions, self._offsets = commits["partition"].numbers(), commits["committed_offset"].numbers()
        self._code_of = {None: -1} | {name: code for code, name in enumerate(names.to_pylist())}
        requests = numbered(commits["exchange_id"].texts().codes)
        began = commits["ts"].numbers()[np.unique(requests, return_index=True)[1]]
        order = np.argsort(began, kind="stable")
        self._times: list[int] = began[order].tolist()
        self._numbers = np.argsort(order)[requests]

    def of(self, topic: str | None, partition: int) -> Sent:
        """One partition in them; offsets that are not known are left out."""
        kept = (self._codes == self._code_of.get(topic)) & (self._partitions == partition) & (self._offsets != UNKNOWN)
        # Of a request that names the partition twice the last one counts.
        offset_of = dict(zip(self._numbers[kept].tolist(), self._offsets[kept].tolist(), strict=True))
        numbers = sorted(offset_of)
        return Sent(self._times, numbers, [offset_of[number] for number in numbers])


COMMITS = "kafka_offset_commits"
COMMIT_COLUMNS = (
    "exchange_id", "ts", "ts_response", "api", "group_id", "member_id", "group_instance_id", "generation",
    "client_id", "client_address", "topic", "partition", "committed_offset", "error_code", "owner_member_id",
    "ownership_confidence", "log_end_offset", "client_gap_ts", "flow_id", "file", "request_packet",
)  # fmt: skip
MAX_OFFSETS = 40

Identity = tuple[str | None, ...]


class Commit(NamedTuple):
    """One partition of one OffsetCommit or TxnOffsetCommit; times are Unix ns, None is unknown."""

    exchange_id: str | None
    ts: int
    ts_response: int | None
    api: str
    group_id: str | None
    member_id: str | None
    group_instance_id: str | None
    generation: int | None
    client_id: str | None
    client_address: str | None
    topic: str | None
    partition: int
    committed_offset: int
    error_code: int | None
    owner_member_id: str | None
    ownership_confidence: str | None
    log_end_offset: int | None
    client_gap_ts: int | None
    flow_id: str | None
    file: str | None
    request_packet: int | None

    @property
    def identity(self) -> Identity:
        """Member id, else (address, client id)."""
        return (self.member_id,) if self.member_id else (self.client_address, self.client_id)

    @property
    def client(self) -> Identity:
        """(address, client id): what Fetch rows know of a client."""
        return self.client_address, self.client_id

    @property
    def done_ns(self) -> int:
        """When the broker had answered; the request's time while unanswered."""
        return self.ts if self.ts_response is None else self.ts_response

    @property
    def accepted(self) -> bool:
        """The broker stored a position."""
        return self.error_code == 0 and self.committed_offset >= 0

    @property
    def in_generation(self) -> bool:
        """The broker checked a generation or member epoch: an accepted commit proves membership."""
        return self.generation is not None and self.generation >= 0 and bool(self.member_id)


class ByCommitter(Protocol):
    """What tells who committed what: a `Commit`, or a row of another table that has the same."""

    @property
    def group_id(self) -> str | None: ...
    @property
    def member_id(self) -> str | None: ...
    @property
    def generation(self) -> int | None: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def client_address(self) -> str | None: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def partition(self) -> int: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def flow_id(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def request_packet(self) -> int | None: ...


def commits_of(frame: Frame) -> list[Commit]:
    """The frame's rows in broker order."""
    columns = [values(frame[name]) for name in Commit._fields]
    return sorted((Commit(*row) for row in zip(*columns, strict=True)), key=broker_order)


def broker_order(commit: Commit) -> tuple[int, int, int, int, str, int]:
    """Sort key: response, request, packet, place in the stream (the tail of the message id).

    What is left equal is one request that names a partition twice; it is read as rising.
    """
    place, exchange = request_order(commit.exchange_id)
    return commit.done_ns, commit.ts, commit.request_packet or 0, place, exchange, commit.committed_offset


def request_order(exchange_id: str | None) -> tuple[int, str]:
    """Sort key of requests of one packet: the place in the stream, with which the id of a message ends, then the id."""
    tail = re.search(r"(\d+)$", exchange_id or "")
    return int(tail[1]) if tail else 0, exchange_id or ""


def sent_together(first: Commit, second: Commit) -> bool:
    """The second was on its way before the first was answered, as far as is known: nobody acted on the answer."""
    return first.ts_response is None or second.ts < first.ts_response


def may_be_one(first: Identity, second: Identity) -> bool:
    """Two clients that are the same as far as address and client id of both are known."""
    return all(None in pair or pair[0] == pair[1] for pair in zip(first, second, strict=True))


# Each committer's commits, in broker order: findings take them from here, since looking through all costs squares.
Committers = Mapping[Identity, Sequence[Commit]]


def by_identity(commits: Iterable[Commit]) -> dict[Identity, list[Commit]]:
    """Commits of each committer, committers in order of their first commit."""
    found: dict[Identity, list[Commit]] = {}
    for commit in commits:
        found.setdefault(commit.identity, []).append(commit)
    return found


def requests_of(commits: Iterable[Commit]) -> dict[str | None, list[Commit]]:
    """The commits of each request, by exchange id."""
    found: dict[str | None, list[Commit]] = {}
    for commit in commits:
        found.setdefault(commit.exchange_id, []).append(commit)
    return found


def partitions_text(commits: Iterable[Commit], most: int = 5) -> str:
    """`t-0, t-1 and 7 more`: the partitions of these commits."""
    places = sorted({(c.topic or "", c.partition) for c in commits})
    return names_text([names.partition_text(*place) for place in places], most)


def committer_text(commit: ByCommitter) -> str:
    """Who: client id, address, member id, in words."""
    if not commit.member_id:
        return f"{names.who_text(commit.client_address, commit.client_id)} (no member id)"
    return names.who_text(commit.client_address, commit.client_id, commit.member_id)


def short_committer(commit: ByCommitter) -> str:
    """The same for a title."""
    return names.short_who(commit.client_address, commit.client_id)


def partition_key(cluster: str | None, commit: ByCommitter) -> dict[str, Any]:
    """What a finding about one partition is about, for its subject and its numbers."""
    return {"cluster": cluster, "group": commit.group_id, "topic": commit.topic, "partition": commit.partition}


def committer_key(cluster: str | None, commit: ByCommitter) -> dict[str, Any]:
    """What a finding about one committer in a group is about."""
    who = {"member": commit.member_id} if commit.member_id else {}
    return {
        "cluster": cluster,
        "group": commit.group_id,
        "client": commit.client_id,
        "address": commit.client_address,
        **who,
    }


def committer_numbers(commits: Sequence[Commit]) -> dict[str, Any]:
    """One committer's part of `numbers`; commits of one identity, at least one. Long offset lists keep both ends."""
    offsets = [c.committed_offset for c in commits]
    if len(offsets) > MAX_OFFSETS:
        offsets = offsets[: MAX_OFFSETS // 2] + offsets[-(MAX_OFFSETS // 2) :]
    return numbers_of_committer(
        last=commits[-1],
        first_packet=commits[0].request_packet,
        offsets=offsets,
        flows={c.flow_id for c in commits},
        commits=len(commits),
    )


def commits_numbers(commits: Sequence[Commit]) -> dict[str, Any]:
    """`partitions` and `committers` of a finding about one committer's commits; at least one."""
    partitions = names.partition_names((c.topic, c.partition) for c in commits)
    return {"partitions": partitions, "committers": [committer_numbers(commits)]}


def numbers_of_committer(
    *, last: ByCommitter, first_packet: int | None, offsets: list[int], flows: Iterable[str | None], commits: int
) -> dict[str, Any]:
    """The same of what is known of its commits. offsets: at most MAX_OFFSETS. commits: how many there are."""
    return {
        "address": last.client_address,
        "client_id": last.client_id,
        "member_id": last.member_id or None,
        "generation": last.generation,
        "flow_id": last.flow_id,
        "flows": sorted({flow for flow in flows if flow is not None})[:MAX_OFFSETS],
        "offsets": offsets,
        "commits": commits,
        "first_packet": first_packet,
        "last_packet": last.request_packet,
        "file": last.file,
    }


def partition_text(commit: ByCommitter) -> str:
    """topic-partition, as Kafka's own tools write it."""
    return names.partition_text(commit.topic, commit.partition)


def group_text(commit: ByCommitter) -> str:
    """`Group billing`, to begin a sentence."""
    return names.group_text(commit.group_id)


def offsets_text(commits: Sequence[Commit]) -> str:
    """`500` or `1000 to 1090`: the offsets that one committer wrote."""
    low = min(c.committed_offset for c in commits)
    high = max(c.committed_offset for c in commits)
    return str(low) if low == high else f"{low} to {high}"


def evidence_of(commits: Iterable[Commit]) -> list[Evidence]:
    """The requests of these commits."""
    return [Evidence(c.file, c.request_packet, c.exchange_id) for c in commits]


def commit_proof(commits: Sequence[Commit]) -> Proof:
    """These commits as proof; at least one."""
    return Proof(min(c.ts for c in commits), max(c.ts for c in commits), evidence_of(commits))
