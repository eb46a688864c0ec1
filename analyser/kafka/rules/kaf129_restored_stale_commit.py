"""KAF129 restored-stale-commit: a commit that had failed is sent again later and stored over a newer one.

Finds
    An accepted commit of an offset that the same client had sent before without success (refused or unanswered), after
    a higher offset of the partition had been accepted.

Why it matters
    The stored offset goes back: whoever takes the partition over next reads again what had been committed.

How it decides
    Commits of one group and partition in broker order. The failed commit and the later one have the same client
    (address and client id) and offset; between them a higher offset was accepted. A fetch of that client at or below
    the offset in between makes it a seek, which is none. Warning; critical where the stored offset is still lower at
    the end; info where none of the client's fetches is in the capture, since it may have turned back by itself, and
    where the coordinator was moving (errors 14, 15, 16, which libraries answer by sending the commit again, within 30
    s) and the client's next commits made it good within 5 s.
    A commit whose answer the capture lost (bytes of the client are missing) may have been accepted: it did not fail.

False alarms
    A replay that seeks by OffsetFetch alone.

What it cannot tell
    A capture that began after the commit failed has only the later one: KAF103 tells that the offset went back, and not
    why. Requests alone say nothing.

References
    spring-projects/spring-kafka#3186 (failed commits are kept and committed again).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    Identity,
    committer_text,
    group_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.step_backs import sent_again
from wirewitness.analyser.kafka.rules.stored import (
    EDGES_SQL,
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    stored_by_group,
)

KEYS = ("cluster_id", "topic", "partition")


class _Restored(NamedTuple):
    """newer: the highest commit that was accepted before; late: one that had failed before, accepted."""

    newer: Stored
    late: Stored

    @property
    def back(self) -> int:
        return self.newer.committed_offset - self.late.committed_offset

    @property
    def failed_ns(self) -> int:
        """When it had failed."""
        return self.late.ts_failed or 0

    @property
    def brief(self) -> bool:
        """A coordinator that moved made the client send it again, and it was made good at once."""
        return sent_again(self.late, self.newer.committed_offset)


_COORDINATOR_MOVED = (
    "The group's coordinator moved, and the client's library sent refused commits again; its next commits made it "
    "good. Look at why the coordinator moved; a member that took the partition over meanwhile read this again."
)
_UNSEEN = " It may have turned back by itself: its fetches of this partition are not in the capture."


def detect(frames: Frames) -> Iterator[Finding]:
    """One finding per group and client."""
    for group in stored_by_group(frames[STORED]):
        found: dict[Identity, list[_Restored]] = {}
        for restored in _restored(group):
            found.setdefault(restored.late.client, []).append(restored)
        committers = by_committer(group) if found else {}
        for own in found.values():
            yield _finding(first_value(frames[STORED], "cluster_id"), own, group[-1], committers)


def _restored(group: Sequence[Stored]) -> Iterator[_Restored]:
    """Commits over newer ones that came behind the failure, whose client did not turn back in between."""
    newer = group[0]
    for late in group:
        if late.committed_offset >= newer.committed_offset:
            newer = late
        elif late.ts_failed is not None and newer.ts > late.ts_failed and not late.read_since_highest:
            yield _Restored(newer, late)


def _finding(
    cluster: str | None, restored: Sequence[_Restored], end: Stored, committers: Mapping[Identity, Sequence[Stored]]
) -> Finding:
    worst = max(restored, key=lambda one: one.back)
    newer, late = worst
    seen, brief = bool(late.fetches_seen), all(one.brief for one in restored)
    key, stored = partition_key(cluster, late), end.committed_offset
    failed = Evidence(late.file, late.failed_request_packet, late.failed_exchange_id)
    # Without an answer, or a limit ended the wait for it.
    code = late.failed_error_code
    error = "got no known response" if code is None else f"was refused with error {code}"
    still = stored < newer.committed_offset
    by = "" if newer.identity == late.identity else f" of {committer_text(newer)}"
    return RULE.finding(
        severity="info" if brief or not seen else "critical" if still else "warning",
        confidence="high" if seen else "low",
        subject={**key, "client": late.client_id, "address": late.client_address},
        title=title_text(
            f"Old offset committed again: {{}}, {newer.committed_offset} to {late.committed_offset}, by {{}}",
            partition_text(late), short_committer(late),
        ),
        sentence=(
            f"{group_text(late)}: {committer_text(late)} committed the old offset {late.committed_offset} of "
            f"{partition_text(late)} over the newer {newer.committed_offset}{by}: {count(worst.back, 'message')} back. "
            f"It did so at {moment_text(late.ts_sent)}; the same commit at {moment_text(worst.failed_ns)} {error}. "
            + (f"The committed offset is still {stored}." if still else "Later commits are higher again.")
            + ("" if seen else _UNSEEN)
        ),
        next_step=_COORDINATOR_MOVED
        if brief
        else (
            "Look in this client for failed commits that are kept and committed again later (a framework that retries "
            "asynchronous commits, for example spring-kafka#3186): drop them once newer offsets are known."
        ),
        proof=Proof(worst.failed_ns, max(newer.ts_sent, late.ts_sent), [failed, newer.evidence, late.evidence]),
        numbers={
            **key,
            "times": len(restored),
            "restored_offset": late.committed_offset,
            "newer_offset": newer.committed_offset,
            "messages_back": worst.back,
            "error_code": code,
            "last_offset": stored,
            "ts_failed": time_text(worst.failed_ns),
            "ts_restored": time_text(late.ts_sent),
            "committers": committers_numbers(committers, (late.identity, newer.identity)),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF129",
    question="went back",
    name="restored-stale-commit",
    severity="critical",
    confidence="high",
    reads={STORED: STORED_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={STORED: f"ts_failed IS NOT NULL OR sent_again_over OR {EDGES_SQL}"},
    suspects=AnyRow(STORED, "ts_failed IS NOT NULL"),
)
