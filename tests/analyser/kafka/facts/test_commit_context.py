"""What commits get from other rows, compared with a slow statement of the rules that looks at all rows for each.

Intervals of owners and lives of topics are taken from their own SQL, which has tests of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest

from tests.support.rows import arrow_from_rows, connection_from_rows, with_log_ends
from tests.support.shares import share
from wirewitness.analyser.kafka.facts import commit_rows
from wirewitness.analyser.kafka.facts import enrich as stage
from wirewitness.analyser.kafka.facts.commit_views import COMMITS, FETCHES
from wirewitness.analyser.kafka.facts.enrich import enrich
from wirewitness.analyser.kafka.facts.log_ends import LIVES
from wirewitness.analyser.kafka.facts.ownership import add_owners
from wirewitness.analyser.tables.coded import TooManyBytes

Row = dict[str, Any]
START, SECOND = 1_790_000_000_000_000_000, 1_000_000_000
TOLD = ("owner_member_id", "ownership_confidence", "log_end_offset", "client_gap_ts")
SEEDS = range(16)


class Rows:
    """Random rows of a capture: few keys and few times, so that most things come together."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.unit = self.random.choice([SECOND // 4, SECOND, 3 * SECOND])
        self.commits = [self.commit() for _ in range(self.random.choice([1, 40, 80]))]
        self.tables: dict[str, list[Row]] = {
            COMMITS: self.commits,
            FETCHES: self.some(80, self.fetch),
            "kafka_list_offsets": self.some(30, self.listed),
            "kafka_produce_batches": self.some(30, self.batch),
            "kafka_group_events": self.some(20, self.event),
            "kafka_assignments": self.some(20, self.assignment),
            "kafka_partitions": self.some(6, self.told),
            "kafka_admin_changes": self.some(3, self.deleted),
            "flows": [{"flow_id": f"flow{n}", "client_address": f"10.0.0.{n}"} for n in range(2)],
            "expert_infos": self.some(6, self.lost),
        }

    def some(self, most: int, row: Any) -> list[Row]:
        return [row() for _ in range(self.random.choice([0, most // 3, most]))]

    def one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def rarely(self, value: Any, otherwise: Any = None) -> Any:
        return value if self.random.random() < 0.02 else otherwise

    def at(self) -> int:
        return START + self.random.randrange(30) * self.unit

    def placed(self) -> Row:
        at_ns = self.at()
        return {
            "ts": at_ns,
            "ts_response": self.one(None, at_ns, at_ns + self.unit),
            "cluster_id": self.one("c1", "c1", None),
            "topic": self.one("orders", "orders", None),
            "topic_id": self.one(None, "id1", "id2"),
            "partition": self.one(0, 0, 1),
        }

    def client(self, member: str | None) -> Row:
        number = self.one("0", "1") if not member or self.rarely(True) else member[-1]
        return {"client_address": self.one(f"10.0.0.{number}", f"10.0.0.{number}", None), "client_id": f"app-{number}"}

    def commit(self) -> Row:
        member = self.one("m0", "m1", "m1", "", None)
        group = self.rarely("g2") or self.rarely(None, "g1")
        generation = self.one(1, 2)
        return {**self.placed(), **self.client(member), "member_id": member, "group_id": group,
                "generation": generation, "error_code": self.one(0, 22)}  # fmt: skip

    def fetch(self) -> Row:
        highs = self.one(None, -1, *range(0, 90, 5))
        return {**self.placed(), **self.client(self.one("m0", "m1")), "replica_id": self.one(None, -1, 2),
                "high_watermark": highs}  # fmt: skip

    def listed(self) -> Row:
        row = {**self.placed(), "timestamp": self.one(-1, -1, -2), "offset": self.one(None, -1, *range(0, 90, 7)),
               "isolation_level": self.one(None, 0, 1), "replica_id": self.one(None, -1, 2)}  # fmt: skip
        return {name: value for name, value in row.items() if name != "topic_id"}

    def batch(self) -> Row:
        return {**self.placed(), "acks": self.one(-1, 1), "error_code": self.one(0, 3, None),
                "base_offset": self.one(-1, *range(0, 90, 9)), "records_count": self.one(None, 0, 4)}  # fmt: skip

    def event(self) -> Row:
        member = self.one("m0", "m1", None)
        return {"ts": self.at(), "cluster_id": "c1", "group_id": self.rarely("g3") or "g1", "member_id": member,
                "event": self.one("join", "heartbeat", "describe"), "generation": self.one(1, 2, 3), "error_code": 0,
                **self.client(member)}  # fmt: skip

    def assignment(self) -> Row:
        row = {**self.placed(), "group_id": "g1", "member_id": self.one("m0", "m1", "m2"),
               "generation": self.one(1, 2), "source": self.one("sync_leader", "sync_answer"),
               "exchange_id": f"e{self.random.randrange(9)}"}  # fmt: skip
        return {name: value for name, value in row.items() if name != "ts_response"}

    def told(self) -> Row:
        return {"ts": self.at(), "cluster_id": "c1", "topic": "orders", "topic_id": self.one("id1", "id2"),
                "partition": 0}  # fmt: skip

    def deleted(self) -> Row:
        return {"ts": self.at(), "cluster_id": "c1", "resource_name": "orders", "operation": "DeleteTopics",
                "error_code": self.one(0, 0, 3)}  # fmt: skip

    def lost(self) -> Row:
        return {"ts": self.one(self.at(), None), "flow_id": self.one("flow0", "flow1"), "group": "tcp",
                "code": self.one("gap", "gap", "reset")}  # fmt: skip


class Key(NamedTuple):
    """A partition; an unknown cluster, and an unknown topic, is one of its own."""

    cluster: str
    topic: str
    partition: int


def key_of(row: Row) -> Key:
    return Key(row["cluster_id"] or "", row["topic"] or row.get("topic_id") or "", row["partition"])


def answered(row: Row) -> int:
    at_ns: int = row["ts"] if row.get("ts_response") is None else row["ts_response"]
    return at_ns


class Rules:
    """What each commit gets, found by looking at all rows."""

    def __init__(self, rows: Rows) -> None:
        self.tables = rows.tables
        self.owned, self.lives = intervals(rows.tables)
        self.clients = self.clients_of_one_group()
        told = [*self.told_ends()]
        # A late answer about what had ended by then tells nothing.
        self.ends = [
            one for one in told if not any(two[0] == one[0] and two[1] > one[1] and two[2] <= one[2] for two in told)
        ]

    def of(self, commit: Row) -> tuple[Any, ...]:
        gap = self.gap(commit)
        owner = self.assigned(commit)
        confidence = None if owner is None else "high"
        if owner is None:
            owner, last = self.reader(commit, gap), self.last(commit)
            if last is not None and owner == last[0] and last[2] is not None and commit["ts"] >= last[2]:
                owner = None
            confidence = None if owner is None else "low"
        return owner, confidence, self.log_end(commit), gap

    def gap(self, commit: Row) -> int | None:
        """When the client's bytes were missed last."""
        flows = {row["flow_id"]: row["client_address"] for row in self.tables["flows"]}
        gaps = [
            row["ts"]
            for row in self.tables["expert_infos"]
            if row["code"] == "gap" and row["ts"] is not None and flows[row["flow_id"]] == commit["client_address"]
        ]
        return max((at_ns for at_ns in gaps if at_ns <= commit["ts"]), default=None)

    def last(self, commit: Row) -> tuple[str, int, int | None] | None:
        """Whose interval began last: member, end, and when it was gone."""
        own = [
            (began, member, ended, gone)
            for cluster, group, topic, partition, member, began, ended, gone in self.owned
            if (cluster, topic, partition) == key_of(commit) and group == (commit["group_id"] or "")
        ]
        begun = [one for one in own if one[0] <= commit["ts"]]
        return max(begun)[1:] if begun else None

    def assigned(self, commit: Row) -> str | None:
        """Whose interval began last, if it is not over."""
        found = self.last(commit)
        return found[0] if found is not None and commit["ts"] < found[1] else None

    def reader(self, commit: Row, gap: int | None) -> str | None:
        """Who fetches the partition: the committer if it does, else who did last, in the five seconds before."""
        now, lately = commit["ts"], 5 * SECOND
        fetches = []
        for row in self.tables[FETCHES]:
            client = (row["cluster_id"] or "", row["client_address"] or "", row["client_id"])
            group, member = self.clients.get(client, (None, None))
            consumes = member and row["replica_id"] in (None, -1)
            if consumes and key_of(row) == key_of(commit) and group == (commit["group_id"] or ""):
                fetches.append((row["ts"], member))
        before = [one for one in fetches if one[0] <= now]
        last = max((at_ns for at_ns, _ in before), default=None)
        if last is None or last < now - lately or (gap is not None and gap >= now - lately):
            return None
        own = [at_ns for at_ns, member in fetches if member == commit["member_id"]]
        if any(now - lately <= at_ns <= now + lately for at_ns in own):
            return str(commit["member_id"])
        return str(min(member for at_ns, member in before if at_ns == last))

    def clients_of_one_group(self) -> dict[tuple[str, str, str], tuple[str, str | None]]:
        """Client -> its group, and its member if it is one only."""
        found: dict[tuple[str, str, str], tuple[set[str], set[str]]] = {}
        events = [row for row in self.tables["kafka_group_events"] if row["event"] != "describe"]
        for row in (*self.tables[COMMITS], *events):
            client = (row["cluster_id"] or "", row["client_address"] or "", row["client_id"])
            if row["group_id"] is not None:
                groups, members = found.setdefault(client, (set(), set()))
                groups.add(row["group_id"])
                members |= {row["member_id"]} - {None, ""}
        return {
            client: (min(groups), min(members) if len(members) == 1 else None)
            for client, (groups, members) in found.items()
            if len(groups) == 1
        }

    def told_ends(self) -> Iterator[tuple[Key, int, int, int]]:
        """Partition, life, time and log end of each answer that tells one."""
        for row in self.tables[FETCHES]:
            if (row["high_watermark"] or 0) >= 0 and row["high_watermark"] is not None:
                yield key_of(row), self.life(row, answered(row)), answered(row), row["high_watermark"]
        for row in self.tables["kafka_list_offsets"]:
            latest = row["timestamp"] == -1 and row["offset"] is not None and row["offset"] >= 0
            if latest and not row["isolation_level"] and row["replica_id"] in (None, -1):
                yield key_of(row), self.life(row, answered(row)), answered(row), row["offset"]
        for row in self.tables["kafka_produce_batches"]:
            stored = row["acks"] == -1 and row["error_code"] == 0 and row["base_offset"] >= 0
            if stored and row["records_count"]:
                end = row["base_offset"] + row["records_count"]
                yield key_of(row), self.life(row, answered(row)), answered(row), end

    def log_end(self, commit: Row) -> int | None:
        """The greatest end told in the ten seconds of the clock up to the newest answer."""
        place = key_of(commit), self.life(commit, commit["ts"])
        told = [(at_ns, end) for *of, at_ns, end in self.ends if tuple(of) == place and at_ns <= commit["ts"]]
        newest = max((at_ns for at_ns, _ in told), default=0) // SECOND
        return max((end for at_ns, end in told if at_ns // SECOND > newest - 10), default=None)

    def life(self, row: Row, now: int) -> int:
        """When the life of the topic began: of the id if it was told by then, else of the time."""
        key = key_of(row)
        own = [
            (topic_id, began, ended)
            for cluster, topic, topic_id, began, ended in self.lives
            if (cluster, topic) == key[:2]
        ]
        of_id = [began for one, began, _ in own if one is not None and one == row.get("topic_id") and now >= began]
        of_time = [began for _, began, ended in own if began <= now < ended]
        return int((of_id or of_time or [0])[0])


def intervals(tables: dict[str, list[Row]]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Intervals of owners, and lives of topics."""
    con = with_log_ends(connection_from_rows(tables))
    add_owners(con)
    owned = con.sql(f"""
        SELECT coalesce(cluster_id, ''), group_id, topic, partition, member_id, epoch_ns(ts),
               coalesce(epoch_ns(least(ts_unsure, ts_end)), {2**63 - 1}),
               CASE WHEN ended_by IN ('left', 'removed', 'fenced') THEN epoch_ns(ts_end) END
        FROM kafka_ownership WHERE NOT shared""").fetchall()
    return owned, con.sql(f"SELECT * EXCLUDE incarnation FROM ({LIVES})").fetchall()


def told(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [table[name].cast(pa.int64() if name == "client_gap_ts" else table[name].type) for name in TOLD]
    return [*zip(*(column.to_pylist() for column in columns), strict=True)]


def in_shards(con: duckdb.DuckDBPyConnection, given: pa.Table, rows: int) -> list[tuple[Any, ...]]:
    """What the stage gives rows in memory, so many of them at a time."""
    add_owners(con)
    con.execute(f"DROP VIEW {COMMITS}")
    con.register(COMMITS, given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "STEP_ROWS", rows)
        made = enrich(con, {COMMITS: given})[COMMITS]
    assert isinstance(made, pa.Table)
    return told(made)


def test_texts_that_take_too_much_memory_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, expected = Rows(1), found_by_looking(1)
    monkeypatch.setattr(stage, "PARTS", 2)
    monkeypatch.setattr(commit_rows, "MOST_BYTES", 5_000)
    given = arrow_from_rows(COMMITS, rows.commits)
    assert in_shards(with_log_ends(connection_from_rows(rows.tables)), given, 1 << 20) == expected
    monkeypatch.setattr(stage, "MOST_PARTS", 2)
    monkeypatch.setattr(commit_rows, "MOST_BYTES", 1)
    with pytest.raises(TooManyBytes):
        enrich(with_log_ends(connection_from_rows(rows.tables)))


@cache
def found_by_looking(seed: int) -> list[tuple[Any, ...]]:
    rows = Rows(seed)
    rules = Rules(rows)
    return [rules.of(commit) for commit in rows.commits]


@pytest.mark.parametrize("seed", share(SEEDS, SEEDS[:4]))
def test_commits_get_what_looking_at_all_rows_finds(seed: int) -> None:
    rows, expected = Rows(seed), found_by_looking(seed)
    given = arrow_from_rows(COMMITS, rows.commits)
    for at_a_time in (1 << 20, 30):
        assert in_shards(with_log_ends(connection_from_rows(rows.tables)), given, at_a_time) == expected


def test_the_random_rows_tell_all_there_is_to_tell() -> None:
    found = [one for seed in SEEDS[:4] for one in found_by_looking(seed)]
    assert {confidence for _, confidence, _, _ in found} == {"high", "low", None}
    assert {owner for owner, _, _, _ in found} >= {"m0", "m1", None}
    for place in (2, 3):
        assert 0 < sum(one[place] is None for one in found) < len(found)
