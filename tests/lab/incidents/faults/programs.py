"""Commands of the clients that do one thing wrong, and of those whose libraries are fetched apart."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.lab import clients
from tests.lab.clients import node
from tests.lab.incidents.incident import Incident
from tests.lab.places import WORK_DIR
from tests.lab.processes import run

AIOKAFKA = "0.12.0"


def librdkafka(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of librdkafka_faults."""
    server = f"bootstrap.servers={broker or it.world.endpoint}"
    return lambda name: clients.python_command("librdkafka_faults", work, server, f"client.id={name}", *words)


def kafka_python(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of kafka_python_faults."""
    server = f"broker={broker or it.world.endpoint.partition(',')[0]}"
    return lambda name: clients.python_command("kafka_python_faults", work, server, f"client_id={name}", *words)


def aiokafka(
    it: Incident, work: str, *words: str, broker: str | None = None, script: str = "aiokafka_client"
) -> Callable[[str], list[str]]:
    """Return how to run a work of aiokafka_client, or of another SCRIPT."""
    folder = WORK_DIR / f"aiokafka-{AIOKAFKA}"
    if not (folder / "aiokafka").is_dir():
        run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--target", str(folder),
             f"aiokafka=={AIOKAFKA}"])  # fmt: skip
    given = ("env", f"PYTHONPATH={folder}")
    server = f"broker={broker or it.world.endpoint}"
    return lambda name: [*given, *clients.python_command(script, work, server, f"client_id={name}", *words)]


def kafkajs(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of the KafkaJS client."""
    folder = node.fetched("node_kafka")
    server = f"broker={broker or it.world.endpoint}"
    return lambda name: ["node", str(folder / "client.js"), work, server, f"client_id={name}", *words]


def raw(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of raw_client."""
    server = f"broker={broker or it.world.endpoint.partition(',')[0]}"
    return lambda name: clients.python_command("raw_client", work, server, f"client_id={name}", *words)


def habit(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of librdkafka_habits."""
    server = f"bootstrap.servers={broker or it.world.endpoint}"
    return lambda name: clients.python_command("librdkafka_habits", work, server, f"client.id={name}", *words)


def kafka_python_habit(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of kafka_python_habits."""
    server = f"broker={broker or it.world.endpoint.partition(',')[0]}"
    return lambda name: clients.python_command("kafka_python_habits", work, server, f"client_id={name}", *words)


def raw_habit(work: str, broker: str, *words: str) -> Callable[[str], list[str]]:
    """Return how to run a work of raw_habits."""
    return lambda name: clients.python_command("raw_habits", work, f"broker={broker}", f"client_id={name}", *words)


def admin(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of librdkafka_admin."""
    server = f"bootstrap.servers={broker or it.world.endpoint}"
    return lambda name: clients.python_command("librdkafka_admin", work, server, f"client.id={name}", *words)


def chore(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of librdkafka_chores."""
    server = f"bootstrap.servers={broker or it.world.endpoint}"
    return lambda name: clients.python_command("librdkafka_chores", work, server, f"client.id={name}", *words)


def aiokafka_habit(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of aiokafka_habits."""
    return aiokafka(it, work, *words, broker=broker, script="aiokafka_habits")


def mistake(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of kafka_python_mistakes."""
    server = f"broker={broker or it.world.endpoint.partition(',')[0]}"
    return lambda name: clients.python_command("kafka_python_mistakes", work, server, f"client_id={name}", *words)


def deploy(it: Incident, work: str, *words: str, broker: str | None = None) -> Callable[[str], list[str]]:
    """Return how to run a work of kafka_python_deploys."""
    server = f"broker={broker or it.world.endpoint.partition(',')[0]}"
    return lambda name: clients.python_command("kafka_python_deploys", work, server, f"client_id={name}", *words)
