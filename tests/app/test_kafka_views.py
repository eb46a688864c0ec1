"""`wirewitness groups`, `topics`, `brokers` and `clients` on what real clients did."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.conftest import SAMPLES
from tests.support.shares import every, pairs, share
from wirewitness.app.cli.main import cli

CAPTURE = str(SAMPLES / "kafka_stale_commit.pcapng")
EVERYTHING = [
    ("groups", ""), ("groups", "--members"), ("groups", "--over-time"), ("groups", "--state"), ("groups", "--changes"),
    ("groups", "--rebalances"), ("groups", "--start-up"),
    ("topics", ""), ("topics", "--partitions"), ("topics", "--over-time"),
    ("brokers", ""), ("brokers", "--endpoints"), ("brokers", "--changes"), ("brokers", "--over-time"),
    ("clients", ""), ("clients", "--versions"), ("clients", "--over-time"),
]  # fmt: skip


def run(command: str, *options: str, capture: str = CAPTURE) -> Result:
    return CliRunner().invoke(cli, [command, capture, "--quiet", *options], env={"COLUMNS": "120"})


def rows(command: str, *options: str) -> list[dict[str, str]]:
    done = run(command, "--format", "csv", *options)
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def queried(sql: str) -> list[dict[str, Any]]:
    done = run_query(sql)
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_query(sql: str) -> Result:
    return CliRunner().invoke(cli, ["query", CAPTURE, sql, "--format", "jsonl", "--quiet"])


def test_the_stale_partition_stands_out() -> None:
    worst = max(rows("groups"), key=lambda row: int(row["lag"] or 0))
    assert (worst["group_id"], worst["topic"], worst["partition"]) == ("payments-ledger", "payments", "4")
    assert (worst["committed_offset"], worst["lag"], worst["committers"]) == ("49", "77", "3")
    assert worst["client_id"] == "ledger-a"


def test_groups_agree_with_the_report() -> None:
    report = json.loads(CliRunner().invoke(cli, ["analyse", CAPTURE, "--quiet", "--format", "json"]).stdout)
    wanted = {
        (group["group_id"], state["topic"], state["partition"]): (state["committed_offset"], state["lag"])
        for group in report["groups"]
        for state in group["partitions"]
    }
    found = {
        (row["group_id"], row["topic"], int(row["partition"])): (int(row["committed_offset"]), int(row["lag"]))
        for row in rows("groups")
    }
    assert found == wanted


TIMES = ["2026-11-20T11:23:52.5", "2026-11-20T11:23:55", "2026-11-20T11:24:05"]


@pytest.mark.parametrize("time", share(TIMES, TIMES[:1]))
def test_at_a_time_the_last_accepted_commit_until_then_stands(time: str) -> None:
    stored = queried(
        "select group_id, topic, partition, arg_max(committed_offset, ts_response) as committed "
        "from kafka_offset_commits where error_code = 0 "
        f"and epoch_ns(ts_response) <= epoch_ns('{time}Z'::timestamptz) group by all"
    )
    found = {
        (row["group_id"], row["topic"], row["partition"]): row["committed_offset"]
        for row in rows("groups", "--at", time)
    }
    told = {(one["group_id"], one["topic"], str(one["partition"])): str(one["committed"]) for one in stored}
    assert {key: found[key] for key in told} == told
    assert told


def test_over_time_every_commit_is_counted_once_and_the_last_bin_is_the_state() -> None:
    series = rows("groups", "--over-time", "--step", "1")
    now = rows("groups")
    assert sum(int(row["accepted"]) for row in series) == sum(int(row["accepted"]) for row in now)
    last = {(row["group_id"], row["topic"], row["partition"]): row["committed_offset"] for row in series}
    assert last == {(row["group_id"], row["topic"], row["partition"]): row["committed_offset"] for row in now}


def test_a_group_that_stopped_committing_falls_behind() -> None:
    capture = "kafka_stale_commit.pcapng"
    series = [row for row in rows("groups", "--over-time", "--step", "0.1") if row["group_id"] == "shipments-labels"]
    quiet = [row for row in series if row["accepted"] == "0" and row["committed_offset"]]
    assert quiet, f"no bin of {capture} shows the log's end alone"
    assert all(int(row["lag"]) == int(row["log_end_offset"]) - int(row["committed_offset"]) for row in quiet)


def test_names_select_rows() -> None:
    assert {row["group_id"] for row in rows("groups", "--group", "payments-ledger")} == {"payments-ledger"}
    assert {row["topic"] for row in rows("topics", "--partitions", "--topic", "orders")} == {"orders"}
    assert len(rows("topics", "--partitions", "--topic", "orders")) == 24
    assert {row["client_id"] for row in rows("clients", "--over-time", "--client", "ledger-a")} == {"ledger-a"}


def test_moved_records_are_the_sum_over_time() -> None:
    moved = {
        row["topic"]: (row["records_written"], row["records_read"]) for row in rows("topics") if row["bytes_written"]
    }
    for topic, (written, read) in moved.items():
        bins = rows("topics", "--over-time", "--step", "0.5", "--topic", topic)
        assert sum(int(row["records_written"] or 0) for row in bins) == int(written)
        assert sum(int(row["records_read"] or 0) for row in bins) == int(read)
    assert set(moved) == {"payments", "orders", "shipments"}


@pytest.mark.parametrize(
    ("sample", "client_id", "known"),
    [
        ("mqtt_qos2_stuck", "ledger-5", ("mqtt", "", "5.0", "1")),
        ("mongo_shapes_and_errors", "pymongo-report", ("mongo", "PyMongo|c", "4.20.0", "2")),
    ],
)
def test_clients_of_every_protocol(sample: str, client_id: str, known: tuple[str, ...]) -> None:
    columns = ("protocol", "software_name", "software_version", "connections")
    capture = str(SAMPLES / f"{sample}.pcapng")
    found = list(csv.DictReader(io.StringIO(run("clients", "--format", "csv", capture=capture).stdout)))
    assert [tuple(row[name] for name in columns) for row in found if row["client_id"] == client_id] == [known]
    assert f"{client_id} at " in run("clients", "--over-time", "--client", client_id, capture=capture).stdout
    shown = run("clients", capture=capture).stdout.splitlines()
    assert shown[0].split()[:3] == ["CLIENT", "ID", "ADDRESS"]


def test_clients_tell_their_library() -> None:
    found = {row["client_id"]: (row["software_name"], row["software_version"]) for row in rows("clients")}
    assert found["ledger-b"] == ("sarama", "v1.61.1")
    total = queried("select count(*) as n from exchanges where protocol = 'kafka'")[0]["n"]
    assert sum(int(row["exchanges"]) for row in rows("clients")) == total
    assert sum(int(row["exchanges"]) for row in rows("clients", "--over-time")) == total
    assert sum(int(row["exchanges"]) for row in rows("brokers", "--over-time")) == total


@pytest.mark.parametrize(
    ("command", "option"), pairs(EVERYTHING, every(3, EVERYTHING)), ids=[" ".join(one).strip() for one in EVERYTHING]
)
def test_every_view_for_people_has_as_many_rows_as_for_programs(command: str, option: str) -> None:
    chosen = [option] if option else []
    done = run(command, *chosen, "--limit", "7")
    assert done.exit_code == 0, done.stderr
    count = min(len(rows(command, *chosen)), 7)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    assert len(lines) >= count + 1 if count else "Nothing of the kind was seen." in done.stdout


def healthy(*options: str) -> list[dict[str, str]]:
    done = run("groups", "--format", "csv", *options, capture=str(SAMPLES / "kafka_healthy.pcapng"))
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_rebalances_tell_what_set_them_off_and_the_pause_of_each_member() -> None:
    found = healthy("--rebalances", "--group", "events-archive")
    assert [(row["generations"], row["trigger"], row["trigger_client_id"]) for row in found] == [
        ("1", "joined", "archive-a"), ("1 > 2", "joined", "archive-b"), ("2 > 3", "left", "archive-b"),
    ]  # fmt: skip
    pauses = {one["client_id"]: one["pause_ms"] for one in json.loads(found[1]["pauses"])}
    assert pauses.keys() == {"archive-a", "archive-b"}
    assert max(pauses.values()) == float(found[1]["longest_pause_ms"])
    assert found[1]["waited_client_id"] == "archive-a"


def test_start_up_tells_each_consumers_way() -> None:
    (row,) = healthy("--start-up", "--group", "invoices-writer")
    steps = [float(row[name]) for name in ("metadata_ms", "join_ms", "sync_ms", "fetch_ms", "commit_ms")]
    assert steps == sorted(steps)
    assert (row["client_id"], row["stopped_after"], row["failing"]) == ("invoices-writer", "", "")


def test_members_of_every_kind_of_group_reach_their_first_commit() -> None:
    """Share groups acknowledge, Streams may commit by a producer's transaction; who only asks about groups is none."""
    done = run("groups", "--start-up", "--format", "csv", capture=str(SAMPLES / "kafka_share_streams.pcapng"))
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["stopped_after"] for row in found} == {""}
    assert {row["group_id"]: row["way"].rsplit(", ", 1)[1].split()[0] for row in found} == {
        "task-counter": "OffsetCommit", "task-counter-classic": "TxnOffsetCommit", "task-workers": "ShareAcknowledge",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--step", "1"], "--over-time"),
        (["--at", "2026-01-01T00:00:00", "--to", "2026-01-01T00:00:00"], "cannot be given together"),
        (["--at", "yesterday"], "is not a time such as"),
        (["--format", "parquet"], "--output"),
        (["--members", "--over-time"], "choose one"),
    ],
    ids=["step", "at and to", "no time", "parquet", "two views"],
)
def test_wrong_usage(options: list[str], said: str) -> None:
    done = run("groups", *options)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["groups"], "No consumer group was seen."),
        (["groups", "--rebalances"], "No consumer group was seen to do that."),
        (["brokers"], "No broker was seen."),
        (["clients", "--transactions"], "No client was seen to do that."),
    ],
)
def test_a_capture_without_kafka_says_so(words: list[str], said: str) -> None:
    done = run(*words, capture=str(SAMPLES / "mongo_shapes_and_errors.pcapng"))
    assert (done.exit_code, done.stdout.strip()) == (0, said)


def test_a_name_that_is_not_there_is_said() -> None:
    done = run("groups", "--group", "payment")
    assert (done.exit_code, done.stdout.strip()) == (0, "Nothing was seen of group payment.")


DESCRIBED = """
    select group_id, group_protocol, state, members, ts::varchar as asked from kafka_group_events
    where event = 'describe' and error_code = 0 and state is not null order by ts"""


@pytest.mark.parametrize(("sample", "answers"), [("kafka_healthy", 6), ("kafka_share_streams", 2)])
def test_the_state_is_the_one_that_the_broker_answered_when_it_was_asked(sample: str, answers: int) -> None:
    """The samples hold a few answers of the broker itself: each group was in that state just before the question."""
    capture = str(SAMPLES / f"{sample}.pcapng")
    done = CliRunner().invoke(cli, ["query", capture, DESCRIBED, "--format", "jsonl", "--quiet"])
    described = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(described) == answers, done.stderr
    told_changes = run("groups", "--changes", "--format", "jsonl", capture=capture).stdout.splitlines()
    changes = [json.loads(line) for line in told_changes]
    for answer in described:
        asked = answer["asked"].replace(" ", "T")
        *_, told = (row for row in changes if row["group_id"] == answer["group_id"] and row["ts"] < asked)
        assert [told["state"], told["members"], told["type"]] == [
            answer["state"], answer["members"], answer["group_protocol"],
        ], answer  # fmt: skip


def test_a_line_says_how_each_group_stands() -> None:
    shown = run("groups", capture=str(SAMPLES / "kafka_share_streams.pcapng")).stdout
    assert "group task-counter-classic" in shown
    assert "Stable since 2026-11-20T12:48:52.685207082Z, 1 member, classic consumer group" in shown
    assert "group task-workers" in shown  # a share group, which has no stored offsets


def starts(*options: str) -> list[tuple[str, ...]]:
    capture = str(SAMPLES / "kafka_share_streams.pcapng")
    done = run("groups", "--share-offsets", "--format", "csv", *options, capture=capture)
    assert done.exit_code == 0, done.stderr
    names = ("group_id", "topic", "partition", "start_offset", "lag", "told_by")
    return [tuple(row[name] for name in names) for row in csv.DictReader(io.StringIO(done.stdout))]


def test_share_partitions_start_where_the_operator_was_told_until_brokers_write_more_or_it_is_deleted() -> None:
    """132 and 8 or 9 records are what kafka-share-groups --describe of the lab's operator was answered."""
    told = "DescribeShareGroupOffsets"
    expected = [("task-workers", "tasks", str(n), "132", lag, told) for n, lag in enumerate("8989")]
    assert starts("--at", "2026-11-20T12:49:03.22") == expected
    moved = starts("--at", "2026-11-20T12:49:08")
    assert moved[2:] == expected[2:]
    assert [row[3:] for row in moved[:2]] == [("160", "", "WriteShareGroupState")] * 2
    assert not starts()
    shown = run("groups", "--share-offsets", "--at", "2026-11-20T12:49:08",
                capture=str(SAMPLES / "kafka_share_streams.pcapng")).stdout  # fmt: skip
    assert len([line for line in shown.splitlines() if line.startswith("tasks ")]) == 4


def test_before_anybody_asked_share_partitions_start_where_brokers_wrote_without_a_lag() -> None:
    early = starts("--at", "2026-11-20T12:49:01")
    assert {row[5] for row in early} == {"WriteShareGroupState"}
    assert {row[4] for row in early} == {""}
    assert all(0 <= int(row[3]) < 132 for row in early)
