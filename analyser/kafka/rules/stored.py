"""Accepted commits as `kafka_committed` tells them: each with what stood before it, and what its client read since.

In: one partition's frame of `kafka_committed`, of which a rule wants few rows. Out: `Stored` values by group in the
order of the broker, and the parts of a finding that are made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import values
from wirewitness.analyser.kafka.rules.commits import MAX_OFFSETS, Identity, numbers_of_committer

STORED = "kafka_committed"
STORED_COLUMNS = (
    "exchange_id", "ts", "ts_sent", "kind", "step", "group_id", "member_id", "generation", "client_id",
    "client_address", "topic", "partition", "committed_offset", "offset_below_0", "below_commit", "near_step_back",
    "own_number", "own_commits", "own_before", "own_generation_before", "usual_gap_ms", "fetches_seen", "read_from",
    "ts_failed", "failed_error_code", "failed_exchange_id", "failed_request_packet", "read_since_highest",
    "own_highest_soon", "ahead_step", "ahead_offset", "same_commits", "same_returns", "same_overtaken",
    "log_end_offset", "next_log_end", "owner_member_id", "ownership_confidence", "client_gap_ts", "flow_id", "file",
    "request_packet",
)  # fmt: skip
# The first and the last commit of each committer: with `own_number` they tell how many it has.
EDGES_SQL = "own_number = 1 OR own_number = own_commits"


class Stored(NamedTuple):
    """A commit in `kafka_committed`; times are Unix ns, None is unknown. ts: since when it counts.
    committed_offset: below 0, too."""

    exchange_id: str | None
    ts: int
    ts_sent: int
    kind: str
    step: int
    group_id: str | None
    member_id: str | None
    generation: int | None
    client_id: str | None
    client_address: str | None
    topic: str | None
    partition: int
    committed_offset: int
    offset_below_0: int | None
    below_commit: int | None
    near_step_back: bool | None
    own_number: int | None
    own_commits: int | None
    own_before: int | None
    own_generation_before: int | None
    usual_gap_ms: float | None
    fetches_seen: bool | None
    read_from: int | None
    ts_failed: int | None
    failed_error_code: int | None
    failed_exchange_id: str | None
    failed_request_packet: int | None
    read_since_highest: bool | None
    own_highest_soon: int | None
    ahead_step: int | None
    ahead_offset: int | None
    same_commits: int | None
    same_returns: int | None
    same_overtaken: int | None
    log_end_offset: int | None
    next_log_end: int | None
    owner_member_id: str | None
    ownership_confidence: str | None
    client_gap_ts: int | None
    flow_id: str | None
    file: str | None
    request_packet: int | None

    @property
    def identity(self) -> Identity:
        """Member id, else (address, client id)."""
        return (self.member_id,) if self.member_id else self.client

    @property
    def client(self) -> Identity:
        """(address, client id)."""
        return self.client_address, self.client_id

    @property
    def in_generation(self) -> bool:
        """The broker checked a generation or member epoch: it proves membership."""
        return self.generation is not None and self.generation >= 0 and bool(self.member_id)

    @property
    def is_owners(self) -> bool:
        """The assignments say that its member had the partition."""
        return self.ownership_confidence == "high" and self.owner_member_id == self.member_id

    @property
    def evidence(self) -> Evidence:
        """Its request."""
        return Evidence(self.file, self.request_packet, self.exchange_id)


def stored_by_group(frame: Frame) -> Iterator[list[Stored]]:
    """The commits of each group in the order of the broker, groups in order of their first ones. Nothing of a group in
    which the offset or the time of one is not known: what stands beside a commit tells nothing then."""
    columns = {name: values(frame[name]) for name in Stored._fields}
    columns["committed_offset"] = [
        offset if below is None else below
        for offset, below in zip(columns["committed_offset"], columns["offset_below_0"], strict=True)
    ]
    groups: dict[str | None, list[Stored]] = {}
    for row in map(Stored._make, zip(*columns.values(), strict=True)):
        groups.setdefault(row.group_id, []).append(row)
    for group in groups.values():
        if all(row.committed_offset is not None and row.ts_sent is not None for row in group):
            yield sorted(group, key=lambda row: row.step)


def by_committer(commits: Iterable[Stored]) -> dict[Identity, list[Stored]]:
    """The commits of each committer."""
    own: dict[Identity, list[Stored]] = {}
    for commit in commits:
        own.setdefault(commit.identity, []).append(commit)
    return own


def committers_numbers(
    own: Mapping[Identity, Sequence[Stored]], wanted: Iterable[Identity] | None = None
) -> list[dict[str, Any]]:
    """`committers` of a finding, each once: all of them, with how many commits these are; or those wanted, with how
    many they have in all. own: as of `by_committer`, which is made once for all findings."""
    if wanted is None:
        return [_numbers(commits, len(commits)) for commits in own.values()]
    return [_numbers(own[who], own[who][0].own_commits or len(own[who])) for who in dict.fromkeys(wanted)]


def _numbers(commits: Sequence[Stored], number: int) -> dict[str, Any]:
    few = commits if len(commits) <= MAX_OFFSETS else [*commits[: MAX_OFFSETS // 2], *commits[-(MAX_OFFSETS // 2) :]]
    return numbers_of_committer(
        last=commits[-1],
        first_packet=commits[0].request_packet,
        offsets=[commit.committed_offset for commit in few],
        flows={commit.flow_id for commit in few},
        commits=number,
    )


def proof_of_stored(commits: Sequence[Stored]) -> Proof:
    """These commits as proof; at least one."""
    times = [commit.ts_sent for commit in commits]
    return Proof(min(times), max(times), [commit.evidence for commit in commits])
