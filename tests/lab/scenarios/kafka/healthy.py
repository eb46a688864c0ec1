"""Real clients of five families doing ordinary work; nothing is wrong.

The Java client (classic and KIP-848 protocol), librdkafka (both protocols), kafka-python and franz-go produce with
every codec and consume in groups; in each group a second member joins and leaves again; two applications read, write
and commit offsets in transactions; an operator describes the groups. All leave in order.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import clients, commits, everyday, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, Process, terminate_all
from tests.lab.runs import Run

SHOWS = "ordinary work of the Java client, librdkafka, kafka-python and franz-go: codecs, rebalances, transactions"
HOSTS = ("java-a", "java-b", "rdkafka-a", "rdkafka-b", "python-a", "python-b", "go-a", "go-b", "feeds", "admin")
PYTHON_CLIENTS = ("confluent-kafka", "kafka-python")
CLIENTS = (
    f"kafka-clients {kafka.version()}",
    *map(clients.python_pin, PYTHON_CLIENTS),
    clients.go_pin("go_franz", "github.com/twmb/franz-go"),
)
EXPECTED: tuple[str, ...] = ()
SERVER = kafka.Kafka()

TOPICS = {"events": 4, "clicks": 3, "metrics": 3, "logins": 3, "invoices": 2, "sessions": 2}
WORK_S = 2.5  # time between the changes of a group


class Group(NamedTuple):
    """A consumer group of the run: who its members are and how they are started."""

    group: str
    topic: str
    family: str
    protocol: str
    members: tuple[str, str]  # client ids; the second joins later and leaves first
    hosts: tuple[str, str]
    settings: tuple[str, ...] = ()


GROUPS = (
    Group("events-archive", "events", "java", "classic", ("archive-a", "archive-b"), ("java-a", "java-b")),
    Group("events-alerts", "events", "java", "consumer", ("alerts-a", "alerts-b"), ("java-a", "java-b"),
          ("commit=sync",)),
    Group("clicks-report", "clicks", "rdkafka", "classic", ("report-a", "report-b"), ("rdkafka-a", "rdkafka-b"),
          ("partition.assignment.strategy=cooperative-sticky",)),
    Group("clicks-live", "clicks", "rdkafka", "consumer", ("live-a", "live-b"), ("rdkafka-a", "rdkafka-b"),
          ("commit=sync",)),
    Group("metrics-store", "metrics", "python", "classic", ("store-a", "store-b"), ("python-a", "python-b")),
    Group("logins-index", "logins", "franz", "classic", ("index-a", "index-b"), ("go-a", "go-b")),
)  # fmt: skip
JAVA_TRANSACTIONS, RDKAFKA_TRANSACTIONS = "invoices-writer", "sessions-writer"
TRANSACTION_GROUPS = {JAVA_TRANSACTIONS: "events", RDKAFKA_TRANSACTIONS: "clicks"}


def prepare() -> None:
    """Build the clients."""
    for distribution in PYTHON_CLIENTS:
        clients.check_python_client(distribution)
    clients.go_program("go_franz")
    clients.java_command()


def member_command(run: Run, group: Group, number: int) -> list[str]:
    """Return the command of one member of a group."""
    client_id = group.members[number]
    dotted = (f"bootstrap.servers={run.endpoint}", f"client.id={client_id}", f"group.id={group.group}",
              f"group.protocol={group.protocol}", f"topic={group.topic}", *group.settings)  # fmt: skip
    if group.family == "java":
        return clients.java_command("consume", *dotted, *heartbeat(group))
    if group.family == "rdkafka":
        return clients.python_command("librdkafka_client", "consume", *dotted, *heartbeat(group))
    if group.family == "python":
        return clients.python_command(
            "kafka_python_client", "consume", f"broker={run.endpoint}", f"client_id={client_id}",
            f"group={group.group}", f"topic={group.topic}")  # fmt: skip
    return [clients.go_program("go_franz"), "-broker", run.endpoint, "-client-id", client_id,
            "-group", group.group, "-topic", group.topic]  # fmt: skip


def heartbeat(group: Group) -> tuple[str, ...]:
    """Return the heartbeat setting, which only the classic protocol lets a client choose."""
    return ("heartbeat.interval.ms=1000",) if group.protocol == "classic" else ()


def start_feeds(run: Run) -> list[Process]:
    """Start a producer of each family; together they use every codec."""
    server = f"bootstrap.servers={run.endpoint}"
    codecs = "codecs=none,gzip,snappy,lz4,zstd"
    return [
        run.start("events-feed", "feeds", *clients.java_command(
            "produce", server, "client.id=events-feed", "topic=events", codecs, "pause_ms=1500")),
        run.start("clicks-feed", "feeds", *clients.python_command(
            "librdkafka_client", "produce", server, "client.id=clicks-feed", "topic=clicks", codecs, "pause_ms=1500")),
        run.start("metrics-feed", "feeds", *clients.python_command(
            "kafka_python_client", "produce", f"broker={run.endpoint}", "client_id=metrics-feed", "topic=metrics",
            "codecs=none,gzip,lz4,zstd", "pause_ms=1500")),
        run.start("logins-feed", "feeds", clients.go_program("go_franz"), "-broker", run.endpoint,
                  "-client-id", "logins-feed", "-topic", "logins", "-codecs", "none,gzip,snappy,lz4,zstd",
                  "-pause", "1500ms"),
    ]  # fmt: skip


def start_transactions(run: Run) -> list[Process]:
    """Start the two applications that commit offsets with transactions."""
    server = f"bootstrap.servers={run.endpoint}"

    def words(name: str, target: str) -> tuple[str, ...]:
        return (server, f"client.id={name}", f"group.id={name}", f"transactional.id={name}-1",
                f"topic={TRANSACTION_GROUPS[name]}", f"target={target}")  # fmt: skip

    java = clients.java_command("transact", *words(JAVA_TRANSACTIONS, "invoices"))
    rdkafka = clients.python_command("librdkafka_client", "transact", *words(RDKAFKA_TRANSACTIONS, "sessions"))
    started = []
    for name, host, command in ((JAVA_TRANSACTIONS, "java-a", java), (RDKAFKA_TRANSACTIONS, "rdkafka-a", rdkafka)):
        started.append(run.start(name, host, *command))
        started[-1].wait_for_event("session")
    return started


def describe(run: Run) -> None:
    """Look at all groups as an operator does."""
    by_protocol = {
        protocol: ",".join(group.group for group in GROUPS if group.protocol == protocol)
        for protocol in ("classic", "consumer")
    }
    run.call("describe", "admin", *clients.java_command(
        "describe", f"bootstrap.servers={run.endpoint}", "client.id=operator", f"classic={by_protocol['classic']}",
        f"consumer={by_protocol['consumer']}", f"topics={','.join(TOPICS)}"))  # fmt: skip


def drive(run: Run) -> None:
    """Topics, feeds, first members, second members, a look by the operator, and everybody leaves."""
    wanted = ",".join(f"{name}:{partitions}" for name, partitions in TOPICS.items())
    run.call("topics", "admin", *clients.java_command(
        "topics", f"bootstrap.servers={run.endpoint}", "client.id=topic-admin", f"topics={wanted}"))  # fmt: skip
    feeds = start_feeds(run)
    first, second = (start_members(run, number) for number in (0, 1))
    transactions = start_transactions(run)
    time.sleep(WORK_S)
    describe(run)
    terminate_all(*second)
    time.sleep(WORK_S)
    terminate_all(*transactions)
    terminate_all(*first)
    terminate_all(*feeds)


def start_members(run: Run, number: int) -> list[Process]:
    """Start the NUMBERth member of every group and wait until each has partitions."""
    started = []
    for group in GROUPS:
        started.append(run.start(group.members[number], group.hosts[number], *member_command(run, group, number)))
        started[-1].wait_for_event("session")
    return started


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return groups, members, versions and everyday errors; LabError if anything is wrong in the run."""
    rows = commits.read_commits(records)
    if commits.regressions(rows) or any(row.error_code for row in rows):
        raise LabError(f"a commit is not right: {commits.regressions(rows)[:3]}")
    seen = {row.group for row in rows}
    expected = {group.group for group in GROUPS} | set(TRANSACTION_GROUPS)
    if seen != expected:
        raise LabError(f"groups that committed: {sorted(seen)}, expected {sorted(expected)}")
    return {
        "healthy_groups": sorted(expected),
        "everyday_errors": everyday.check_everyday(records),
        "api_versions": everyday.versions_seen(records),
        "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
        "group": [
            {
                "group": group.group,
                "topic": group.topic,
                "protocol": group.protocol,
                "committer": commits.committers(row for row in rows if row.group == group.group),
            }
            for group in GROUPS
        ],
        "transaction": [
            {
                "group": name,
                "topic": topic,
                "committer": commits.committers(row for row in rows if row.group == name),
            }
            for name, topic in TRANSACTION_GROUPS.items()
        ],
    }
