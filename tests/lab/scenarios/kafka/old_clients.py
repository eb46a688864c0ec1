"""A broker of the last release that still speaks what Kafka 4 removed, and clients of many years.

The Java client from 0.9 to 2.3, kafka-python 2.0.2 at protocol levels from 0.8.2 to 1.0, sarama told to speak versions
from 0.8.2 to 1.0: each produces with its codecs and then reads all that is there, for which the broker converts records
down to message sets. A last client sends the removed versions that applications hardly send.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, everyday, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.clients import old
from tests.lab.processes import LabError, Process, read_events
from tests.lab.runs import Run

SHOWS = "a Kafka 3.9 broker and clients of the protocol's first years: versions that Kafka 4 removed, old message sets"
HOSTS = ("java", "python", "sarama", "requests")
JAVA = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.3.1")
PYTHON = ("0.8.2", "0.9", "0.10.0", "0.10.1", "0.11", "1.0")
SARAMA = ("0.8.2.2", "0.9.0.1", "0.10.2.0", "0.11.0.0", "1.0.0")
SARAMA_WITH_GROUPS = SARAMA[2:]
CLIENTS = (
    *(f"kafka-clients {version}" for version in JAVA),
    f"kafka-python {old.KAFKA_PYTHON}",
    clients.go_pin("go_sarama", "github.com/IBM/sarama"),
    clients.go_pin("go_franz_old", "github.com/twmb/franz-go"),
)
EXPECTED: tuple[str, ...] = ()
SERVER = kafka.Kafka(
    version="3.9.1",
    settings=(
        "listeners=PLAINTEXT://$address:$port,CONTROLLER://$address:9093",
        "controller.quorum.voters=1@$address:9093",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS",
    ),
)
TOPIC = "history"
COUNT = 150  # records that each reader reads
# Of each removed version: what the broker has to log.
REMOVED = {
    "PRODUCE": {0, 1, 2}, "FETCH": {0, 1, 2, 3}, "LIST_OFFSETS": {0}, "OFFSET_COMMIT": {0, 1}, "OFFSET_FETCH": {0},
    "CREATE_TOPICS": {0, 1}, "DELETE_TOPICS": {0}, "OFFSET_FOR_LEADER_EPOCH": {0, 1}, "WRITE_TXN_MARKERS": {0},
    "DESCRIBE_ACLS": {0}, "CREATE_ACLS": {0}, "DELETE_ACLS": {0}, "DESCRIBE_CONFIGS": {0},
    "ALTER_REPLICA_LOG_DIRS": {0}, "DESCRIBE_LOG_DIRS": {0}, "CREATE_DELEGATION_TOKEN": {0},
    "RENEW_DELEGATION_TOKEN": {0}, "EXPIRE_DELEGATION_TOKEN": {0}, "DESCRIBE_DELEGATION_TOKEN": {0},
    "ALTER_PARTITION": {0, 1},
}  # fmt: skip


def prepare() -> None:
    """Fetch and build the clients."""
    old.kafka_python()
    for version in JAVA:
        old.java_command(version)
    for program in ("go_sarama", "go_franz_old"):
        clients.go_program(program)


def drive(run: Run) -> None:
    """All produce, then all read."""
    sarama = clients.go_program("go_sarama")
    run.call("topics", "sarama", sarama, "topics", "-broker", run.endpoint, f"{TOPIC}:2")
    for number, version in enumerate(SARAMA):
        run.call(f"sarama-feed-{version}", "sarama", sarama, "produce", "-broker", run.endpoint, "-topic", TOPIC,
                 "-client-id", f"sarama-feed-{version}", "-protocol", version, "-partitions", "0-1", "-burst", "4",
                 "-rounds", "2", "-pause", "10ms", "-codec", ("none", "gzip", "snappy")[number % 3])  # fmt: skip
    for level in PYTHON:
        start_python(run, "produce", level, "codecs=none,gzip", "rounds=1", "pause_ms=10").finish()
    for version in JAVA:
        start_java(run, "produce", version, "codecs=none,gzip,snappy,lz4", "acks=1").finish()
    readers = [start_python(run, "consume", level, f"count={COUNT}", f"group=python-{level}",
                            *(["partitions=0,1"] if level.startswith("0.8") else [])) for level in PYTHON]  # fmt: skip
    readers += [run.start(f"sarama-{version}", "sarama", sarama, "consume", "-broker", run.endpoint, "-topic", TOPIC,
                          "-client-id", f"sarama-{version}", "-group", f"sarama-{version}", "-protocol", version,
                          "-count", str(COUNT)) for version in SARAMA_WITH_GROUPS]  # fmt: skip
    for reader in readers:
        reader.finish()
    for version in JAVA:
        start_java(run, "consume", version, f"count={COUNT}", f"group.id=java-{version}",
                   "auto.offset.reset=earliest", "enable.auto.commit=false").finish()  # fmt: skip
    host = run.endpoint.partition(":")[0]
    run.call("requests", "requests", clients.go_program("go_franz_old"), "-broker", run.endpoint, "-topic", TOPIC,
             "-controller", f"{host}:{kafka.CONTROLLER_PORT}")  # fmt: skip


def start_python(run: Run, command: str, level: str, *words: str) -> Process:
    """Start kafka-python at a protocol level."""
    name = f"python-{level}" if command == "consume" else f"python-feed-{level}"
    return run.start(name, "python", *clients.python_command(
        "kafka_python_client", command, f"broker={run.endpoint}", f"client_id={name}", f"topic={TOPIC}",
        f"api_version={level}", *words), env={"PYTHONPATH": str(old.kafka_python())})  # fmt: skip


def start_java(run: Run, command: str, version: str, *words: str) -> Process:
    """Start a Java client of a version."""
    name = f"java-{version}" if command == "consume" else f"java-feed-{version}"
    return run.start(name, "java", *old.java_command(
        version, command, f"bootstrap.servers={run.endpoint}", f"client.id={name}", f"topic={TOPIC}", *words,
    ))  # fmt: skip


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return the versions, the groups and what the broker refused; LabError if a removed version is missing."""
    versions = everyday.versions_seen(records)
    missing = {api: wanted - set(versions.get(api, ())) for api, wanted in REMOVED.items()}
    if any(missing.values()):
        raise LabError(f"not in the log: { {api: sorted(those) for api, those in missing.items() if those} }")
    rows = commits.read_commits(records)
    if commits.regressions(rows):
        raise LabError(f"offsets went back: {commits.regressions(rows)[:3]}")
    errors = Counter((record.api_name, code) for record in records for code in everyday.error_codes(record.response))
    groups = sorted({row.group for row in rows if row.member_id})
    return {
        "api_versions": versions,
        "removed_versions": {api: sorted(those) for api, those in REMOVED.items()},
        "errors": [{"api": api, "error_code": code, "count": n} for (api, code), n in sorted(errors.items())],
        "records_read": {
            path.stem: event["records"]
            for path in sorted(directory.glob("*.out"))
            for event in read_events(path)
            if "records" in event and "feed" not in path.stem
        },
        "group": [
            {"group": group, "topic": TOPIC, "committer": commits.committers(row for row in rows if row.group == group)}
            for group in groups
        ],
    }
