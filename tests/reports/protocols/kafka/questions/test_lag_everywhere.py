"""Stored offset, log end and lag are the same on the command line, in the dashboard, the report and datasets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import wirewitness
from tests.analyser.engine.rules.scenarios.build import CLIENTS, at
from tests.conftest import SAMPLES
from tests.support.archived import parts_of
from tests.support.datasets import make_log_ends, take_in
from tests.support.rows import Rows, arrow_from_rows, with_log_ends
from tests.support.shares import examples, share, smallest
from wirewitness.analyser.archive.aggregate.lags import MINUTE_NS, run_lags
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.rules.columns import held_rows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.kafka.facts.committed import add_committed
from wirewitness.analyser.kafka.facts.lag import LAG_TABLES, add_lag
from wirewitness.analyser.kafka.rules.commits import commits_of
from wirewitness.analyser.tables.tables import TABLES as TABLES_BY_NAME
from wirewitness.app.cli.main import cli
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.protocols.kafka.questions.commits import log_ends
from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES
from wirewitness.reports.protocols.kafka.questions.groups import groups
from wirewitness.reports.protocols.kafka.questions.lag_history import lag_over_time
from wirewitness.reports.protocols.kafka.questions.view import OVER_TIME, view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

# The report asks for members, too, and bins of time for what was deleted.
TABLES = tuple(dict.fromkeys((*PARTITION_TABLES, *LAG_TABLES, "kafka_group_events")))
SECOND_NS = 1_000_000_000
# So many seconds after the scenarios' start a full hour is 100 seconds ahead.
HOUR_AHEAD_S = 3500 - at(0) // SECOND_NS % 3600
# What tells of a partition beside commits.
OTHER_TABLES = (
    "kafka_fetch_partitions", "kafka_list_offsets", "kafka_produce_batches", "kafka_transactions", "kafka_partitions",
    "kafka_admin_changes", "kafka_offset_fetches",
)  # fmt: skip
DELETED_IN = "kafka_admin_changes"
DELETIONS = (
    ("OffsetDelete", "billing", "delete offsets of payments 0,1"),
    ("DeleteGroups", "billing", "delete"),
    ("DeleteTopics", "payments", "delete"),
)
# Cluster, group, topic, partition -> stored offset, log end, lag, who committed.
Key = tuple[str | None, str | None, str | None, int]
State = dict[Key, tuple[int | None, int | None, int | None, str | None]]


class Held:
    """Rows of TABLES as a source: lighter than one of all tables."""

    def __init__(self, tables: Rows) -> None:
        self.options = ReadOptions()
        self.con = duckdb.connect(":memory:")
        for table in {*TABLES, *OTHER_TABLES, "exchanges", "kafka_lag"}:
            self.con.register(table, arrow_from_rows(table, tables.get(table, ())))
        with_log_ends(self.con)
        add_committed(self.con)
        add_lag(self.con)

    def sql(self, query: str) -> pa.Table:
        return self.con.sql(query).to_arrow_table()

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        yield from self.sql(f"FROM {name}").to_batches()


class AsOf:
    """The same tables, with other options."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.options = options
        self._source = source

    def sql(self, query: str) -> pa.Table:
        return self._source.sql(query)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        return self._source.batches(name)


def _state(found: list[dict[str, Any]]) -> State:
    return {
        (row["cluster_id"], row["group_id"], row["topic"], row["partition"]): (
            row["committed_offset"], row["log_end_offset"], row["lag"], row["client_id"])
        for row in found
    }  # fmt: skip


def over_time(source: Source, width_ns: int) -> dict[int, State]:
    """`groups --over-time`: the state of the rows of each bin."""
    bins: dict[int, list[dict[str, Any]]] = {}
    for row in rows(source, view_sql(VIEWS["groups"][OVER_TIME], width_ns=width_ns)):
        bins.setdefault(row["ts"].value, []).append(row)
    return {ts: _state(held) for ts, held in sorted(bins.items())}


def at_time(source: Source, at_ns: int) -> State:
    """`groups --at`."""
    as_of = AsOf(source, ReadOptions(to_ns=at_ns + 1))
    return _state(rows(as_of, view_sql(VIEWS["groups"][""], until_ns=at_ns)))


def in_dashboard(source: Source, state: State, width_ns: int) -> dict[tuple[float, Key], int]:
    """The points of the dashboard's chart, of all groups."""
    chosen = {(key[0], key[1]) for key in state}
    return {
        (row["t"], (cluster, group, row["topic"], row["partition"])): row["lag"]
        for cluster, group in chosen
        for row in lag_over_time(source, cluster, group, width_ns)
        if row["lag"] is not None
    }


def in_report(source: Source) -> State:
    """The groups of the report."""
    return _state([
        {"cluster_id": group.cluster_id, "group_id": group.group_id, "topic": one.topic, "partition": one.partition,
         "committed_offset": one.committed_offset, "log_end_offset": one.log_end_offset, "lag": one.lag,
         "client_id": one.client_id}
        for group in groups(source) for one in group.partitions
    ])  # fmt: skip


def in_dataset(tables: Rows) -> dict[int, State]:
    """The table `kafka_lag_minutes` of a dataset with these rows."""
    with TemporaryDirectory() as folder:
        take_in(Path(folder) / "d", tables, [run_lags] if "kafka_log_ends" in tables else [make_log_ends, run_lags])
        made = parts_of(Path(folder) / "d", "kafka_lag_minutes").to_pylist()
    bins: dict[int, list[dict[str, Any]]] = {}
    for row in made:
        bins.setdefault(row["ts"].value, []).append(row)
    return {ts: _state(held) for ts, held in sorted(bins.items())}


def known(state: State) -> State:
    """Without partitions of which no commit was accepted."""
    return {key: held for key, held in state.items() if held[0] is not None}


def in_table(source: Source) -> dict[Key, tuple[int | None, ...]]:
    """`kafka_lag`: stored offset, log end and lag of what is stored in the end."""
    found = rows(source, """
        SELECT cluster_id, group_id, topic, partition, committed_offset, last_log_end_offset, last_lag
        FROM kafka_lag WHERE ts_until IS NULL""")  # fmt: skip
    held = {tuple(row.values())[:4]: tuple(row.values())[4:] for row in found}
    assert len(held) == len(found)
    return held


def check(source: Source, tables: Rows, width_ns: int) -> None:
    """All of them say the same at every bin."""
    series = over_time(source, width_ns)
    now: State = {}
    for begin, state in series.items():
        now |= state
        there = at_time(source, begin + width_ns - 1)
        assert state == {key: there[key] for key in state}, begin
        assert known(there) == known(now), begin
    assert known(in_report(source)) == known(now)
    assert in_table(source) == {key: held[:3] for key, held in known(now).items()}
    drawn = {(begin / 1e6, key): held[2] for begin, state in series.items() for key, held in state.items()}
    assert in_dashboard(source, now, width_ns) == {at: lag for at, lag in drawn.items() if lag is not None}
    for key, (_, end, lag, _) in known(now).items():
        ends = log_ends(source, key[0], (key[2], key[3]), width_ns)
        # Committed to a topic made anew whose log end nobody told yet: the chart ends with the one before.
        assert end in ((ends[-1]["log_end"] if ends else None), None)
        assert lag is None or lag >= 0
    check_minutes(over_time(source, MINUTE_NS), in_dataset(tables))


def check_minutes(carried: dict[int, State], made: dict[int, State]) -> None:
    """A dataset has rows of minutes with traffic; `--over-time` says the same there, and carries it through others.

    A group that lost its stored offset with the topic has no rows until it commits again.
    """
    now: State = {}
    for begin, state in carried.items():
        gone = state.keys() - known(state).keys()
        assert not gone & made.get(begin, {}).keys(), begin
        now = {key: held for key, held in (now | made.get(begin, {})).items() if key not in gone}
        assert known(state) == known(now), begin
    assert set(made) <= set(carried)


def _plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with times as Unix ns."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table[field.name].cast(pa.int64()))
    return table.to_pylist()


KAFKA = sorted(path.name for path in SAMPLES.glob("kafka_*.pcapng"))


@pytest.mark.parametrize("name", share(KAFKA, {*smallest(KAFKA), "kafka_stale_commit.pcapng"}))
def test_every_view_of_a_sample_says_the_same(name: str) -> None:
    with wirewitness.read(SAMPLES / name, tables=[*TABLES, "exchanges", "kafka_lag"]) as analysis:
        tables = {table: _plain(analysis.arrow(table)) for table in TABLES}
        check(analysis, tables, 2 * SECOND_NS)


def test_samples_have_commits_and_a_lag() -> None:
    """The test above compares something."""
    with wirewitness.read(SAMPLES / "kafka_stale_commit.pcapng", tables=[*TABLES, "exchanges"]) as analysis:
        series = over_time(analysis, SECOND_NS)
    begins = list(series)
    assert len(begins) > 20
    assert begins == list(range(begins[0], begins[-1] + SECOND_NS, SECOND_NS))
    assert sum(bool(held[2]) for state in series.values() for held in state.values()) > 100


def test_the_dashboard_shows_the_lag_of_the_command_line() -> None:
    capture = SAMPLES / "kafka_stale_commit.pcapng"
    done = CliRunner().invoke(cli, ["groups", str(capture), "--over-time", "--step", "1", "--quiet", "--format", "csv"])
    told = [
        row for row in csv.DictReader(io.StringIO(done.stdout)) if (row["topic"], row["partition"]) == ("payments", "4")
    ]
    with wirewitness.read(capture, tables=[*TABLES, "exchanges"]) as analysis:
        drawn = [row for row in lag_over_time(analysis, told[0]["cluster_id"] or None, told[0]["group_id"], SECOND_NS)
                 if row["partition"] == 4]  # fmt: skip
    assert (told[-1]["lag"], drawn[-1]["lag"]) == ("77", 77)


@pytest.mark.parametrize("seconds", [0.95, 1.1, 3.0], ids=["answered", "a second later", "committed again"])
def test_deleted_offsets_are_gone_until_the_next_commit(seconds: float) -> None:
    """OffsetDelete was answered at 18:21:08.924; the group commits again at 18:21:10."""
    capture = SAMPLES / "incidents" / "offsets_deleted-2" / "capture.pcapng.zst"
    deleted_ns = 1_795_371_668_000_000_000
    with wirewitness.read(capture, tables=[*TABLES, "exchanges"]) as analysis:
        before, after = (at_time(analysis, deleted_ns + round(when * 1e9)) for when in (0.9, seconds))
    own = {key[3]: (before[key][0], held[0], held[2], held[3]) for key, held in after.items()
           if key[1] == "shipments_match"}  # fmt: skip
    if seconds < 2:
        assert own == {0: (234, None, None, None), 1: (214, None, None, None)}
    else:
        assert {part: held[1] for part, held in own.items()} == {0: 384, 1: 348}


@st.composite
def traffic(draw: st.DrawFn) -> Rows:
    """Commits of two writers, each on its own connection, whose answers come in the order of their requests; ends of
    the log that several APIs tell, and a topic that may be made anew; around the full hour.
    """
    before = draw(st.sampled_from([0, HOUR_AHEAD_S]))
    commits = []
    for member in ("m1", "m2"):
        address, client_id, flow = CLIENTS[member]
        sent = answered = 0
        for number in range(draw(st.integers(0, 8))):
            sent += draw(st.sampled_from([0, 0, 1, 30]))
            answered = max(sent, answered) + draw(st.sampled_from([0, 0, 1, 90]))
            lost = draw(st.integers(0, 9)) == 0
            commits.append({
                "exchange_id": f"{flow}-c{number * 100}", "flow_id": flow, "ts": at(before + sent),
                "api": "OffsetCommit",
                "ts_response": None if lost else at(before + answered), "cluster_id": "c1", "group_id": "billing",
                "member_id": member, "generation": 5, "client_id": client_id, "client_address": address,
                "topic": "payments", "partition": 0, "committed_offset": draw(st.integers(-1, 20)), "file": "a.pcapng",
                "error_code": None if lost else draw(st.sampled_from([0, 0, 0, 25])), "request_packet": sent + 1,
            })  # fmt: skip
    ends: dict[str, list[dict[str, Any]]] = {table: [] for table in OTHER_TABLES}
    for number in range(draw(st.integers(0, 8))):
        ts = at(before + draw(st.integers(0, 200)))
        place = {"exchange_id": f"e-c{number}", "flow_id": "e", "ts": ts,
                 "cluster_id": "c1", "topic": "payments", "partition": 0}  # fmt: skip
        table = draw(st.sampled_from(OTHER_TABLES))
        told = place | _told(draw, table, ts)
        ends[table].append(
            {name: value for name, value in told.items() if name in TABLES_BY_NAME[table].column_names()}
        )
    return {"kafka_offset_commits": commits, **ends}


def _told(draw: st.DrawFn, table: str, ts: int) -> dict[str, Any]:
    """What a row of this table says of the log."""
    end = draw(st.integers(-1, 25))
    if table == "kafka_fetch_partitions":
        topic_id = draw(st.sampled_from([None, "id1", "id2"]))
        return {"high_watermark": end, "topic_id": topic_id, "ts_response": ts + draw(st.sampled_from([0, SECOND_NS]))}
    if table == "kafka_list_offsets":
        return {"offset": end, "timestamp": draw(st.sampled_from([-1, -1, -2])), "replica_id": -1,
                "isolation_level": draw(st.sampled_from([0, 0, 1]))}  # fmt: skip
    if table == "kafka_produce_batches":
        return {"base_offset": end, "records_count": 4, "acks": draw(st.sampled_from([-1, -1, 1])), "error_code": 0,
                "transactional": draw(st.booleans()), "producer_id": 7, "producer_epoch": 0}  # fmt: skip
    if table == "kafka_transactions":
        return {"exchange_id": f"t-c{ts}", "flow_id": "t", "ts": ts, "cluster_id": "c1", "event": "end_txn",
                "producer_id": 7, "producer_epoch": 0, "error_code": draw(st.sampled_from([0, 0, 51]))}  # fmt: skip
    if table == "kafka_offset_fetches":
        return {"group_id": "billing", "committed_offset": end, "ts_response": ts + draw(st.sampled_from([0, 2])),
                "require_stable": draw(st.booleans()), "error_code": draw(st.sampled_from([0, 0, 0, 88]))}  # fmt: skip
    if table == DELETED_IN:
        operation, name, change = draw(st.sampled_from(DELETIONS))
        return {"operation": operation, "resource_type": "group", "resource_name": name, "change": change,
                "validate_only": False, "error_code": draw(st.sampled_from([0, 0, 68])), "ts_response": ts}  # fmt: skip
    return {"topic_id": draw(st.sampled_from(["id1", "id1", "id2"]))}


@examples(15)
@given(traffic())
def test_every_view_says_the_same_of_racing_commits(tables: Rows) -> None:
    check(Held(tables), tables, 10 * SECOND_NS)


@examples(60)
@given(traffic())
def test_the_stored_offset_is_that_of_the_last_commit_in_the_order_of_the_rules(tables: Rows) -> None:
    """Where nothing was deleted and no answer told otherwise. An offset below 0 takes back what was stored."""
    held = Held({name: own for name, own in tables.items() if name not in ("kafka_offset_fetches", DELETED_IN)})
    table = held.con.sql("FROM kafka_offset_commits").to_arrow_table()
    frame = Frame(table.schema, [Span(held_rows(batch), 0, len(batch)) for batch in table.to_batches()])
    taken = [one for one in commits_of(frame) if one.error_code == 0] if len(frame) else []
    state = in_report(held)
    expected = [(one.committed_offset, one.client_id) for one in taken[-1:] if one.accepted]
    assert [(offset, client) for offset, _, _, client in known(state).values()] == expected
