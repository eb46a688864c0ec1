"""Two idempotent producers whose applications send many records at once: one of KafkaJS 1.16.0, which gives the same
sequence number to records of different sends, so that the broker takes all but one of them for repeats, and one of
2.0.0, the next release, which does not. It is no sample: a test holds both to the contract `kafka-producer`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab import clients, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.clients.node import fetched
from tests.lab.processes import LabError, read_events
from tests.lab.runs import Run

SHOWS = "records of KafkaJS 1.16.0 that are acknowledged and not stored, beside those of 2.0.0"
OLD, NEW = "shop-old", "shop-new"  # client ids and hosts
VERSIONS = {OLD: "kafkajs-1.16.0", NEW: "kafkajs-2.0.0"}
TOPICS = {OLD: "orders-old", NEW: "orders-new"}
HOSTS = (OLD, NEW, "shop")
CLIENTS = ("KafkaJS 1.16.0", "KafkaJS 2.0.0")
EXPECTED = ()
SERVER = kafka.Kafka()


def prepare() -> None:
    """Fetch and build the clients."""
    fetched("node_fixes")
    clients.go_program("go_sarama")


def drive(run: Run) -> None:
    """Let one send after the other."""
    named = [f"{topic}:1" for topic in TOPICS.values()]
    run.call("topics", "shop", clients.go_program("go_sarama"), "topics", "-broker", run.endpoint, *named)
    for name, version in VERSIONS.items():
        program = str(fetched("node_fixes") / "kafkajs_producer.js")
        run.call(name, name, "node", program, version, run.endpoint, name, TOPICS[name])


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """How many records each application was told are stored, and how many are; LabError without the fault."""
    del records
    found = {}
    for name in VERSIONS:
        events = read_events(directory / f"{name}.out")
        acknowledged = sum(one["event"] == "sent" for one in events)
        stored = next(one["records"] for one in events if one["event"] == "stored")
        found[name] = {"acknowledged": acknowledged, "stored": stored}
    if found[OLD]["acknowledged"] <= found[OLD]["stored"] or not found[NEW]["stored"]:
        raise LabError(f"acknowledged and stored: {found}")
    return found
