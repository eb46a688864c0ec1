"""Consumers are killed and started: what `groups --restart` says before is what they read then.

Groups of one member each: one that commits no more, one that commits ahead of what it reads, and two that never
committed, which begin where auto.offset.reset says. After the kill some records come that nobody has read.
"""

from __future__ import annotations

import csv
import io
import time
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.app.program import run as run_program
from tests.lab import capture, clients, kafka, net
from tests.lab.processes import Process, wait_until
from tests.lab.runs import Run
from tests.lab.shared_runs import require_lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

TOPIC, PARTITIONS = "parcels", 3
QUIET_S, PATIENCE_S = 8, 150
# group -> what its consumer is told
GROUPS = {
    "stopped": ("reset=latest", "commits=40"),
    "ahead": ("reset=earliest", "commits=1000000", "ahead=15"),
    "oldest": ("reset=earliest",),
    "newest": ("reset=latest",),
}
Offsets = dict[int, dict[int, str]]


class Restarted(NamedTuple):
    """What a run leaves: the capture, when everything was dead, and per group what was read before and after."""

    pcap: Path
    dead_ns: int
    read: dict[str, tuple[Offsets, Offsets]]


def records_of(one: Process) -> Offsets:
    """partition -> offset -> key"""
    found: Offsets = defaultdict(dict)
    for told in one.named_events("record"):
        found[told["partition"]][told["offset"]] = told["key"]
    return found


def drive(run: Run) -> tuple[int, dict[str, tuple[Offsets, Offsets]]]:
    """Let all groups read, kill them, write more, start them again; when that was, and what each read."""
    server = f"bootstrap.servers={run.endpoint}"
    topic = f"topics={TOPIC}:{PARTITIONS}"
    run.call("topics", "desk", *clients.java_command("topics", server, "client.id=topics", topic))

    def consumer(name: str, group: str, *words: str) -> Process:
        return run.start(name, "readers", *clients.python_command(
            "told_records", f"broker={run.endpoint}", f"client={group}-1", f"group={group}", f"topic={TOPIC}",
            *words))  # fmt: skip

    def write_until_read(name: str, records: int, by: list[Process]) -> None:
        words = ("send", server, f"client.id={name}", f"topic={TOPIC}", "rate=60", "size=30")
        feed = run.start(name, "feeds", *clients.python_command("librdkafka_worker", *words))
        wait_until(lambda: all(count(one) >= records for one in by), f"{records} records are read", PATIENCE_S)
        feed.terminate()
        sent = [one["records"] for each in run.processes.values() for one in each.named_events("closed")]
        wait_until(lambda: all(count(one) == sum(sent) for one in by), "all records are read", PATIENCE_S)

    first = {group: consumer(group, group, *words) for group, words in GROUPS.items()}
    for one in first.values():
        one.wait_for_event("session", timeout_s=PATIENCE_S)
    time.sleep(2)  # those that begin at the end ask where that is
    write_until_read("feed", 200, [*first.values()])
    for one in first.values():
        one.kill()
    write_until_read("feed-more", 350, [consumer("other", "other", "reset=earliest")])
    dead_ns = time.time_ns()
    again = {
        group: consumer(f"{group}-again", group, words[0], f"quiet_s={QUIET_S}") for group, words in GROUPS.items()
    }
    for one in again.values():
        one.finish(PATIENCE_S)
    return dead_ns, {group: (records_of(first[group]), records_of(again[group])) for group in GROUPS}


def count(one: Process) -> int:
    return len(one.named_events("record"))


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Restarted:
    require_lab()
    directory = tmp_path_factory.mktemp("restart")
    kind = kafka.Kafka()
    kind.prepare()
    pcap = directory / "restart.pcapng"
    with net.network(kind.host_names, ("readers", "feeds", "desk")) as hosts:
        servers = [hosts[one] for one in kind.host_names]
        with (
            kind.running(servers, directory) as server,
            capture.capturing(servers[0], pcap, directory),
            ExitStack() as stack,
        ):
            dead_ns, read = drive(Run(directory, hosts, server, kind, stack))
    return Restarted(pcap, dead_ns, read)


def told(restarted: Restarted, *words: str) -> list[dict[str, str]]:
    moment = datetime.fromtimestamp(restarted.dead_ns / 1e9, UTC).isoformat()
    how = ["--restart", "--at", moment, "--payload", "--format", "csv", "--raw", "--quiet", *words]
    done = run_program("groups", restarted.pcap, *how)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout.decode())))


@pytest.mark.parametrize("group", GROUPS)
def test_the_records_read_then_are_those_that_were_told(group: str, restarted: Restarted) -> None:
    resets = {"any", GROUPS[group][0].partition("=")[2]}
    rows = {int(row["partition"]): row for row in told(restarted, "--group", group) if row["reset"] in resets}
    assert set(rows) == set(range(PARTITIONS))
    before, after = restarted.read[group]
    for partition, row in rows.items():
        then = after.get(partition, {})
        twice = {offset: key for offset, key in then.items() if offset in before[partition]}
        assert int(row["start_offset"]) == min(then, default=int(row["log_end_offset"]))
        assert (int(row["again_offsets"]), int(row["again_records"])) == (len(twice), len(twice))
        keys = [twice[min(twice)], twice[max(twice)]] if twice else ["", ""]
        assert [row["again_first_key"], row["again_last_key"]] == keys
        never = set(range(int(row["log_end_offset"]))) - set(before[partition]) - set(then)
        assert (int(row["skipped_offsets"]), int(row["skipped_records"])) == (len(never), len(never))


def test_something_comes_twice_and_something_never(restarted: Restarted) -> None:
    """Else the comparison would say nothing."""
    total: dict[str, dict[str, int]] = {}
    for row in told(restarted):
        if row["reset"] in ("any", GROUPS.get(row["group_id"], (" ",))[0].partition("=")[2]):
            sums = total.setdefault(row["group_id"], {"again": 0, "skipped": 0})
            sums["again"] += int(row["again_offsets"])
            sums["skipped"] += int(row["skipped_offsets"])
    assert total["stopped"]["again"] > 50
    assert total["stopped"]["skipped"] == 0
    assert total["ahead"] == {"again": 0, "skipped": 15 * PARTITIONS}
    assert total["oldest"]["again"] >= 200
    assert total["newest"]["skipped"] > 50


def test_a_member_is_named_by_its_client(restarted: Restarted) -> None:
    moment = datetime.fromtimestamp(restarted.dead_ns / 1e9, UTC).isoformat()
    done = run_program("groups", restarted.pcap, "--restart", "stopped-1", "--at", moment, "--format", "csv")
    assert {row["group_id"] for row in csv.DictReader(io.StringIO(done.stdout.decode()))} == {"stopped"}
