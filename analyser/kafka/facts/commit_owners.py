"""Who owned the partition of a commit: as assignments tell it, else as fetches suggest.

In: commits, the tables of `commit_views.py`. Out: numbers of members.

Where no assignment tells an owner, it is concluded from consumers that are one member of the group, and what they
fetch. The committer's own fetches decide, so nothing is concluded where some of them may be missing.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN, Booleans, integers
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.kafka.facts.commit_rows import Commits

# A member that fetched a partition this long before a commit counts as reading it then: an idle Fetch waits at the
# broker for half a second (fetch.max.wait.ms), and processing takes its time. The committer itself counts as reading if
# it fetches this long after the commit, too: the capture may lack what it did before.
FETCHED_LATELY_NS = 5_000_000_000
_EVER = 2**63 - 1

_OWNED = f"""
    SELECT cluster, group_id, topic, partition, member_id, began, coalesce(ended, {_EVER}) AS ended,
           coalesce(gone, {_EVER}) AS gone
    FROM context_owned WHERE began IS NOT NULL"""
_FETCHES = """
    SELECT clients.cluster, clients.group_id, coalesce(topic, topic_id, '') AS topic, partition, clients.member_id,
           epoch_ns(ts) AS at_ns
    FROM some_kafka_fetch_partitions AS fetches JOIN context_clients AS clients
        ON coalesce(fetches.cluster_id, '') = clients.cluster AND clients.member_id IS NOT NULL
        AND coalesce(fetches.client_address, '') = clients.address
        AND coalesce(fetches.client_id, '') = clients.client_id
    WHERE coalesce(replica_id, -1) < 0 AND partition IS NOT NULL AND ts IS NOT NULL"""


class Owners:
    """Owners of the partitions of commits.

    texts: ids of members, in the order of their bytes; a member's number is its place there. members: of the owners;
    NOWHERE without one. told: does an assignment tell it?
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, commits: Commits, gaps_ns: Integers) -> None:
        """gaps_ns: when the last bytes of the client before each commit were missed; UNKNOWN if none were."""
        owned = known_rows(con, _OWNED, {"part": commits.part}, ("member_id", "began", "ended", "gone"))
        clients = con.sql("SELECT DISTINCT member_id FROM context_clients WHERE member_id IS NOT NULL")
        readers = clients.to_arrow_table()["member_id"].combine_chunks()
        ids = _Members(commits.member_id.dictionary, owned["member_id"].dictionary, readers)
        self.texts = ids.texts
        assigned = _Assigned(owned, ids)
        self.members = assigned.owners(commits)
        self.told = self.members >= 0
        open_ones = np.flatnonzero(~self.told)
        if len(open_ones) and len(readers):
            wanted = np.zeros(commits.part.count, np.bool_)
            wanted[commits.parts[open_ones]] = True
            fetches = known_rows(con, _FETCHES, {"part": commits.part}, ("member_id", "at_ns"))
            fetchers = _Fetchers(fetches, wanted, ids)
            found = fetchers.owners(commits, open_ones, ids.of(commits.member_id), gaps_ns)
            # Who has left was heard to fetch before.
            self.members[open_ones] = np.where(found == assigned.gone(commits)[open_ones], NOWHERE, found)


class _Members:
    """Ids of members as numbers in the order of the ids."""

    def __init__(self, *ids: pa.Array) -> None:
        found = pc.unique(pa.chunked_array([*ids], pa.string()))
        self.texts = pc.take(found, pc.sort_indices(pa.table({"id": found}), [("id", "ascending")]))
        self._key = Key({"id": self.texts}, ("id",))

    def of(self, column: pa.Array) -> Integers:
        """The numbers of members; NOWHERE for null."""
        return self._key.of({"id": column})


class _Assigned:
    """Who was given which parts, from when until when; see `kafka_ownership`."""

    def __init__(self, owned: dict[str, pa.Array], ids: _Members) -> None:
        part, began, ended, gone = (integers(owned[name]) for name in ("part", "began", "ended", "gone"))
        member = ids.of(owned["member_id"])
        # Of those that begin together the one with the least id counts; of what is told of it, the earliest end.
        order = np.lexsort((ended, member, began, part))[::-1]
        self._member, self._ended, self._gone = member[order], ended[order], gone[order]
        self._line = Timeline(part[order], began[order])

    def owners(self, commits: Commits) -> Integers:
        found = self._line.latest(commits.parts, commits.at_ns)
        owns = commits.at_ns < taken(self._ended, found, UNKNOWN)
        return np.where(owns, taken(self._member, found, NOWHERE), NOWHERE)

    def gone(self, commits: Commits) -> Integers:
        """The last owners that were no members any more; NOWHERE without one."""
        found = self._line.latest(commits.parts, commits.at_ns)
        is_gone = commits.at_ns >= taken(self._gone, found, _EVER)
        return np.where(is_gone, taken(self._member, found, NOWHERE), NOWHERE)


class _Fetchers:
    """Which members fetched which parts, when."""

    def __init__(self, fetches: dict[str, pa.Array], wanted: Booleans, ids: _Members) -> None:
        part = integers(fetches["part"])
        there = wanted[part]
        self._part, self._at_ns = part[there], integers(fetches["at_ns"])[there]
        self._member = ids.of(fetches["member_id"])[there]

    def owners(self, commits: Commits, asked: Integers, committers: Integers, gaps_ns: Integers) -> Integers:
        """The members that read the parts of some commits when they were made; NOWHERE where it cannot be told.

        asked: places of the commits.
        """
        at_ns, gaps_ns = commits.at_ns[asked], gaps_ns[asked]
        before_ns, owners = self._last(commits.parts[asked], at_ns)
        told = (owners >= 0) & _lately(before_ns, at_ns) & ((gaps_ns == UNKNOWN) | ~_lately(gaps_ns, at_ns))
        owners[~told] = NOWHERE
        places = np.flatnonzero(told)
        some = asked[places]
        own = self._reads(commits.parts[some], committers[some], commits.at_ns[some])
        owners[places[own]] = committers[some[own]]
        return owners

    def _last(self, parts: Integers, at_ns: Integers) -> tuple[Integers, Integers]:
        """When these parts were fetched last before these times, and by whom; the least id of those at one time."""
        order = np.argsort(-self._member, kind="stable")
        found = Timeline(self._part[order], self._at_ns[order]).latest(parts, at_ns)
        places = taken(order, found, NOWHERE)
        return taken(self._at_ns, places, UNKNOWN), taken(self._member, places, NOWHERE)

    def _reads(self, parts: Integers, members: Integers, at_ns: Integers) -> Booleans:
        """Do these members fetch these parts a short while before or after these times?"""
        pair = Key(_pairs(self._part, self._member), ("part", "member"))
        line = Timeline(pair.numbers, self._at_ns)
        asked = pair.of(_pairs(parts, members))
        before, behind = line.latest(asked, at_ns), line.next(asked, at_ns)
        return ((before >= 0) & _lately(taken(self._at_ns, before, 0), at_ns)) | (
            (behind >= 0) & _lately(at_ns, taken(self._at_ns, behind, 0))
        )


def _pairs(part: Integers, member: Integers) -> dict[str, pa.Array]:
    return {"part": pa.array(part), "member": pa.array(member)}


def _lately(earlier: Integers, later: Integers) -> Booleans:
    """Is it a short while from each time to one that is not before it?"""
    # Not below 0, but it may be more than fits into an int64: times of damaged captures are far apart.
    return (later - earlier).view(np.uint64) <= FETCHED_LATELY_NS
