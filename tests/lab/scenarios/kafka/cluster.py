"""Three brokers with their controllers: what they say to each other while one of them is restarted under a light load.

The first node begins alone; the others fetch its snapshot, join the quorum of voters and register as brokers. A feed,
a group and a transactional application work while the first node, which leads the controllers, stops and comes back.
An operator moves a partition and gives the preferred replicas their lead back. The capture is made where all traffic
passes, and ends when the brokers' cables are pulled: the last requests stay without an answer.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, everyday, kafka, net
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, Process, read_events, terminate_all
from tests.lab.runs import Run

SHOWS = "three brokers among themselves: quorum, registration, replication, leader changes around a restart"
HOSTS = ("operator", "orders")
CLIENTS = (f"kafka-clients {kafka.version()}",)
EXPECTED: tuple[str, ...] = ()
SERVER = kafka.Kafka(
    brokers=3,
    started=1,
    settings=(
        "controller.quorum.voters=",
        "controller.quorum.bootstrap.servers=$controllers",
        "controller.quorum.auto.join.enable=true",
        "metadata.log.max.snapshot.interval.ms=500",  # a node that joins gets a snapshot
        "log.dirs=$run_dir/data,$run_dir/data2",  # brokers with several folders tell which holds a replica
        "offsets.topic.num.partitions=1",
        "offsets.topic.replication.factor=3",
        "transaction.state.log.num.partitions=1",
        "transaction.state.log.replication.factor=3",
        "num.network.threads=1",
        "num.io.threads=2",
        "broker.heartbeat.interval.ms=1000",
    ),
    format_words=(("--standalone",), ("--no-initial-controllers",), ("--no-initial-controllers",)),
)
TOPIC, COPIES, GROUP, WRITER = "orders", "copies", "orders-report", "copies-writer"
WORK_S = 2.0
# What brokers and controllers ask each other; a run without one of these shows too little.
AMONG_BROKERS = {
    "VOTE", "BEGIN_QUORUM_EPOCH", "END_QUORUM_EPOCH", "FETCH_SNAPSHOT", "ADD_RAFT_VOTER", "CONTROLLER_REGISTRATION",
    "BROKER_REGISTRATION", "BROKER_HEARTBEAT", "ALTER_PARTITION", "ALLOCATE_PRODUCER_IDS", "ASSIGN_REPLICAS_TO_DIRS",
    "FETCH", "WRITE_TXN_MARKERS",
}  # fmt: skip


def prepare() -> None:
    """Build the client."""
    clients.java_command()


def drive(run: Run) -> None:
    """Let the cluster form, work, lose its first node and get it back; then cut all of it off."""
    servers = f"bootstrap.servers={','.join(node.endpoint for node in run.server.nodes)}"
    for node in run.server.nodes[1:]:
        node.start()
    administer(run, "forming", servers, "voters", "voters=1,2,3")
    run.call("topics", "operator", *clients.java_command(
        "topics", servers, "client.id=operator", f"topics={TOPIC}:3,{COPIES}:1", "copies=3"))  # fmt: skip
    workers = start_workers(run, servers)
    time.sleep(WORK_S)
    first = run.server.nodes[0]
    first.stop()
    time.sleep(WORK_S)
    first.start()
    administer(run, "moving", servers, "voters,leaders", "voters=1,2,3", "brokers=2,3")
    time.sleep(WORK_S)
    terminate_all(*workers)
    for node in run.server.nodes:
        net.unplug(node.host)
    for node in run.server.nodes:
        node.stop(timeout_s=0)


def start_workers(run: Run, servers: str) -> list[Process]:
    """Start the feed, the group's member and the transactional application."""
    feed = run.start("feed", "orders", *clients.java_command(
        "produce", servers, "client.id=orders-feed", f"topic={TOPIC}", "codecs=none", "pause_ms=500"))  # fmt: skip
    member = run.start("member", "orders", *clients.java_command(
        "consume", servers, "client.id=report-a", f"group.id={GROUP}", f"topic={TOPIC}"))  # fmt: skip
    writer = run.start("writer", "orders", *clients.java_command(
        "transact", servers, f"client.id={WRITER}", f"group.id={WRITER}", f"transactional.id={WRITER}-1",
        f"topic={TOPIC}", f"target={COPIES}"))  # fmt: skip
    for worker in (member, writer):
        worker.wait_for_event("session")
    return [writer, member, feed]


def administer(run: Run, name: str, servers: str, parts: str, *words: str) -> None:
    """Let the operator do some parts of the work."""
    run.call(name, "operator", *clients.java_command(
        "administer", servers, "client.id=operator", f"parts={parts}", f"topic={TOPIC}", *words))  # fmt: skip


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return the quorum's leaders, the groups and what brokers asked each other; LabError if that is too little."""
    rows = commits.read_commits(records)
    brokers = {record.server.host for record in records}
    among = [record for record in records if record.client.host in brokers]
    missing = AMONG_BROKERS - {record.api_name for record in among}
    if missing:
        raise LabError(f"brokers did not ask each other {sorted(missing)}")
    quorums = [event for name in ("forming", "moving") for event in read_events(directory / f"{name}.out")
               if event["event"] == "quorum"]  # fmt: skip
    leaders = list(dict.fromkeys(quorum["leader"] for quorum in quorums))
    if len(leaders) < 2 or commits.regressions(rows):
        raise LabError(f"leaders {leaders}, offsets that went back: {commits.regressions(rows)[:3]}")
    return {
        "brokers": sorted(brokers),
        "controller_leaders": leaders,
        "among_brokers": everyday.versions_seen(among),
        "of_clients": everyday.versions_seen([record for record in records if record.client.host not in brokers]),
        "group": [group_of(rows, GROUP)],
        "transaction": [group_of(rows, WRITER)],
    }


def group_of(rows: list[commits.Commit], name: str) -> dict[str, Any]:
    """Return a group with its committers."""
    return {"group": name, "topic": TOPIC, "committer": commits.committers(row for row in rows if row.group == name)}
