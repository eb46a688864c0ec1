"""Commits that a client sends again because the group's coordinator moved.

In: commits of one group and partition in broker order. Out: which of those that were stored are such, and harmless.

While a coordinator moves it refuses commits with errors that clients answer by sending the same commit again (Kafka's
protocol guide, "Error Codes": retriable). Libraries that have several commits under way store them in any order then,
and the next commit makes it good.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.kafka.rules.commits import Commit, Identity

# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
MOVING = (14, 15, 16)
AGAIN_S, MADE_GOOD_S = 30, 5
# So many commits behind one are looked at: a client that stores nothing newer in them did not make it good at once.
LATER = 1000


class Refused:
    """Commits that moving coordinators refused, by group, client and offset: each is looked for without the others."""

    def __init__(self, commits: Iterable[Commit]) -> None:
        self._times: dict[tuple[str | None, Identity, int], list[int]] = {}
        for one in sorted(commits, key=lambda commit: commit.ts):
            if one.error_code in MOVING:
                self._times.setdefault(_key(one), []).append(one.ts)

    def __bool__(self) -> bool:
        """Is there any?"""
        return bool(self._times)

    def is_sent_again(self, stored: Commit) -> bool:
        """Was this client's commit of the same offset refused so, shortly before?"""
        times = self._times.get(_key(stored), [])
        place = bisect_right(times, stored.ts)
        return place > 0 and stored.ts - times[place - 1] <= AGAIN_S * NS_PER_S


def _key(commit: Commit) -> tuple[str | None, Identity, int]:
    return commit.group_id, commit.client, commit.committed_offset


def is_made_good(newer: Commit, stored: Commit, later: Iterable[Commit]) -> bool:
    """Did the same client store the newer offset again, or a higher one, within seconds? later: commits behind it, in
    order, which are taken one by one."""
    for one in later:
        if one.ts > stored.done_ns + MADE_GOOD_S * NS_PER_S:
            return False
        if one.accepted and one.client == stored.client and one.committed_offset >= newer.committed_offset:
            return True
    return False
