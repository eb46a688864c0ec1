"""Groups of the newer kinds: a share group, a Streams application in a streams group, another in a classic group.

Two brokers, so that what the share coordinator is asked by the leader of a partition crosses the wire. Two members of
the share group accept records, give some back and reject a few; a second instance of the streams application joins and
leaves. An operator looks at the groups and removes them when they are empty.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, everyday, kafka, net
from tests.lab.broker_log import LogRecord
from tests.lab.clients import old
from tests.lab.processes import LabError, Process, read_events, terminate_all
from tests.lab.runs import Run

SHOWS = "a share group, Streams applications in a streams group and in a classic group, the share coordinator's state"
HOSTS = ("feeds", "share-a", "share-b", "streams-a", "streams-b", "operator")
CLIENTS = (f"kafka-clients {kafka.version()}", f"kafka-streams {kafka.version()}")
EXPECTED: tuple[str, ...] = ()
SERVER = kafka.Kafka(
    brokers=2,
    started=1,
    settings=(
        "controller.quorum.voters=",
        "controller.quorum.bootstrap.servers=$controllers",
        "group.share.min.heartbeat.interval.ms=1000",
        "group.share.heartbeat.interval.ms=1000",
        "group.streams.min.heartbeat.interval.ms=1000",
        "group.streams.heartbeat.interval.ms=1000",
        "group.streams.initial.rebalance.delay.ms=300",
        "num.network.threads=1",
        "num.io.threads=2",
    ),
    format_words=(("--standalone",), ("--no-initial-controllers",)),
)
TOPIC, COUNTS, CLASSIC_COUNTS = "tasks", "task-counts", "task-counts-classic"
SHARE, STREAMS, CLASSIC = "task-workers", "task-counter", "task-counter-classic"
WORK_S = 2.0
WANTED = {
    "SHARE_GROUP_HEARTBEAT", "SHARE_GROUP_DESCRIBE", "SHARE_FETCH", "SHARE_ACKNOWLEDGE", "STREAMS_GROUP_HEARTBEAT",
    "STREAMS_GROUP_DESCRIBE", "DESCRIBE_SHARE_GROUP_OFFSETS", "ALTER_SHARE_GROUP_OFFSETS",
    "DELETE_SHARE_GROUP_OFFSETS", "READ_SHARE_GROUP_STATE", "WRITE_SHARE_GROUP_STATE",
}  # fmt: skip


def prepare() -> None:
    """Build the clients."""
    clients.java_command()
    old.streams_command()


def drive(run: Run) -> None:
    """Let the groups work, grow, shrink and end; then cut the brokers off."""
    run.server.nodes[1].start()
    servers = f"bootstrap.servers={','.join(node.endpoint for node in run.server.nodes)}"
    run.call("topics", "operator", *clients.java_command(
        "topics", servers, "client.id=operator", f"topics={TOPIC}:4,{COUNTS}:2,{CLASSIC_COUNTS}:2"))  # fmt: skip
    administer(run, "before", servers, "share")
    feed = run.start("feed", "feeds", *clients.java_command(
        "produce", servers, "client.id=tasks-feed", f"topic={TOPIC}", "codecs=none", "pause_ms=700"))  # fmt: skip
    sharing = [share(run, servers, name) for name in ("share-a", "share-b")]
    streams = [
        stream(run, servers, STREAMS, "streams-a", COUNTS, "group.protocol=streams"),
        stream(run, servers, CLASSIC, "streams-b", CLASSIC_COUNTS, "processing.guarantee=exactly_once_v2"),
    ]
    second = stream(run, servers, STREAMS, "streams-b", COUNTS, "group.protocol=streams")
    time.sleep(WORK_S)
    administer(run, "meanwhile", servers, "newer groups")
    second.terminate()
    time.sleep(WORK_S)
    terminate_all(*sharing, *streams)
    administer(run, "after", servers, "newer groups' end")
    feed.terminate()
    for node in run.server.nodes:
        net.unplug(node.host)
    for node in run.server.nodes:
        node.stop(timeout_s=0)


def share(run: Run, servers: str, name: str) -> Process:
    """Start a member of the share group and wait until it works."""
    member = run.start(name, name, *clients.java_command(
        "share", servers, f"client.id={name}", f"group.id={SHARE}", f"topic={TOPIC}"))  # fmt: skip
    member.wait_for_event("working")
    return member


def stream(run: Run, servers: str, application: str, host: str, target: str, *settings: str) -> Process:
    """Start an instance of a Streams application and wait until it works."""
    name = f"{application}-{host}"
    instance = run.start(name, host, *old.streams_command(
        servers, f"application.id={application}", f"client.id={name}", f"topic={TOPIC}", f"target={target}",
        f"state.dir={run.directory / name}", "commit.interval.ms=500", "num.stream.threads=1", *settings,
    ))  # fmt: skip
    instance.wait_for_event("session")
    return instance


def administer(run: Run, name: str, servers: str, parts: str) -> None:
    """Let the operator do some parts of the work."""
    run.call(name, "operator", *clients.java_command(
        "administer", servers, "client.id=operator", f"parts={parts}", f"topic={TOPIC}", f"group={SHARE}",
        f"streams={STREAMS}"))  # fmt: skip


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return the groups and the versions; LabError if one of the newer requests is missing or an offset went back."""
    versions = everyday.versions_seen(records)
    rows = commits.read_commits(records)
    if WANTED - versions.keys() or commits.regressions(rows):
        raise LabError(f"missing {sorted(WANTED - versions.keys())}, back {commits.regressions(rows)[:3]}")
    sharing = [event for name in ("share-a", "share-b") for event in read_events(directory / f"{name}.out")]
    return {
        "api_versions": versions,
        "share": {
            "group": SHARE,
            **{what: sum(event.get(what, 0) for event in sharing if event["event"] == "closed")
               for what in ("accepted", "released", "rejected")},
        },
        "streams_group": STREAMS,
        "classic_streams_group": CLASSIC,
        "group": [{
            "group": STREAMS,
            "committer": commits.committers(row for row in rows if row.group == STREAMS and row.api == "OffsetCommit"),
        }],
    }  # fmt: skip
