"""Fetch sessions (KIP-227): a request names only what changed, so an absent partition is not an unfetched one.

In: Fetch requests and the session ids of their answers. Out: what a request asked for, of any partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.schema.primitives import Value

# topic name, topic id as text, partition
PartitionKey = tuple[str | None, str | None, int]


# Offset and most bytes asked for; None where the session began before the capture.
Wish = tuple[int | None, int | None]
_UNKNOWN: Wish = (None, None)


# What is asked for since which epochs of the session, the newest first.
_Positions = tuple[tuple[int, Wish], ...]
# Packets that overtake each other bring the next requests before an answer: so many are kept.
_KEPT = 4

Session = dict[PartitionKey, _Positions]


class Asked(NamedTuple):
    """What one Fetch asks for: the partitions it names, and its session."""

    named: dict[PartitionKey, Wish]
    session: Session
    epoch: int

    def of(self, key: PartitionKey) -> Wish:
        """What this request asks for, although the next ones may have been captured before its answer."""
        wish = self.named.get(key)
        if wish is not None:
            return wish
        return next((wish for epoch, wish in self.session.get(key, ()) if epoch <= self.epoch), _UNKNOWN)


def forgotten(value: Value) -> Iterator[PartitionKey]:
    """The partitions that a Fetch request takes out of its session."""
    for topic in value.get("forgotten_topics_data") or ():
        names = topic_key(topic)
        for partition in topic["partitions"]:
            yield (*names, partition)


def wishes(value: Value) -> Iterator[tuple[PartitionKey, Wish]]:
    """The partitions that a Fetch request names."""
    for topic in value["topics"]:
        names = topic_key(topic)
        for partition in topic["partitions"]:
            yield (*names, partition["partition"]), (partition["fetch_offset"], partition["partition_max_bytes"])


class FetchSessions:
    """The sessions of one flow, and of each its partitions, as many as the limits allow.

    full: where a limit was reached, so that offsets asked for may stay unknown.
    """

    __slots__ = ("_limits", "_sessions", "full")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sessions: dict[int, Session] = {}
        self.full = False

    def asked(
        self,
        session_id: int,
        epoch: int,
        forgotten: Iterable[PartitionKey],
        wishes: Iterable[tuple[PartitionKey, Wish]],
    ) -> Asked:
        """What a request asks for, itself and through its session.

        forgotten: partitions that it takes out of the session. wishes: those that it names.
        """
        session: Session = {}
        if epoch > 0:
            known = self._sessions.get(session_id)
            session = self._opened(session_id, session) if known is None else known
        elif session_id:
            self._sessions.pop(session_id, None)
        for key in forgotten:
            session.pop(key, None)
        named: dict[PartitionKey, Wish] = {}
        room = self._limits.max_fetch_session_partitions
        for key, wish in wishes:
            named[key] = wish
            before = session.get(key)
            if before is not None or len(session) < room:
                session[key] = ((epoch, wish), *(before or ()))[:_KEPT]
            else:
                self.full = True
        return Asked(named, session, epoch)

    def answered(self, session_id: int, asked: Asked) -> None:
        """The broker opened or continued this session."""
        if not session_id:
            return
        known = self._sessions.get(session_id)
        if known is None:
            self._opened(session_id, asked.session)
        elif known is not asked.session:
            # The session's next request was captured before this answer, which opens it: what that named is newer.
            for key, positions in asked.session.items():
                known[key] = (*known.get(key, ()), *positions)[:_KEPT]

    def _opened(self, session_id: int, session: Session) -> Session:
        """Remember a session; the oldest one is forgotten where there are too many."""
        if len(self._sessions) >= self._limits.max_fetch_sessions:
            self._sessions.pop(next(iter(self._sessions)))
            self.full = True
        self._sessions[session_id] = session
        return session
