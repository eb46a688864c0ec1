"""What a broker itself answers about its groups, several times a second, while real groups work.

In: an empty directory. Out: Answers: a capture without the questions, and the answers with the times of the questions.
Classic and KIP-848 groups of three client libraries; members join and leave, one is paused so that its lag grows,
offsets are stored in transactions, and another producer writes in transactions.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import capture, clients, kafka, net
from tests.lab.incidents.libraries import Work, franz, java, librdkafka
from tests.lab.processes import Process, run, terminate_all
from tests.lab.runs import Run

HOSTS = ("java-a", "go-b", "rdkafka-a", "rdkafka-b", "feeds", "watch")
TOPICS = {"orders": 4, "prices": 3, "copies": 2}
CLASSIC, NEWER, PAUSED, COPIES = "orders-bill", "prices-audit", "orders-score", "orders-copies"
GROUPS = (CLASSIC, NEWER, PAUSED, COPIES)
TRANSACTIONS = ("payouts-1", "copies-1")
QUIET_S, WORK_S = 1.5, 3.0
QUESTIONS = ("groups", "offsets", "ends", "transactions", "replicas")


class Answers(NamedTuple):
    """What a run leaves: the capture that is analysed, what was answered, and what kafka-consumer-groups printed."""

    pcap: Path
    answers: list[dict[str, Any]]
    tool: dict[str, Any]  # from and to (ns), text


def members(run: Run) -> tuple[list[tuple[str, str, list[str]]], list[tuple[str, str, list[str]]]]:
    """Return name, host and command of those that come first, and of those that join and leave."""

    def work(client: str, group: str, topic: str, **more: Any) -> Work:
        return Work(run.endpoint, client, group, (topic,), commit="sync", **more)

    copies = ("transact", f"bootstrap.servers={run.endpoint}", f"client.id={COPIES}", f"group.id={COPIES}",
              "transactional.id=copies-1", "topic=orders", "target=copies")  # fmt: skip
    first = [
        ("bill-a", "java-a", java(work("bill-a", CLASSIC, "orders", assignor="range"))),
        ("audit-a", "rdkafka-a", librdkafka(work("audit-a", NEWER, "prices", protocol="consumer"))),
        ("score-a", "rdkafka-b", librdkafka(work("score-a", PAUSED, "orders", pause=(1, 60)))),
        ("copies-a", "java-a", clients.java_command(*copies)),
    ]
    second = [
        ("bill-b", "go-b", franz(work("bill-b", CLASSIC, "orders", assignor="range"))),
        ("audit-b", "rdkafka-b", librdkafka(work("audit-b", NEWER, "prices", protocol="consumer"))),
    ]
    return first, second


def feeds(run: Run) -> list[Process]:
    """Start the producers."""
    send = ("send", f"bootstrap.servers={run.endpoint}", "size=40")
    words = {
        "orders-feed": ("topic=orders", "rate=40"),
        "prices-feed": ("topic=prices", "rate=20"),
        "payouts-feed": ("topic=prices", "rate=10", "transactional.id=payouts-1"),
    }
    return [
        run.start(name, "feeds", *clients.python_command("librdkafka_worker", *send, f"client.id={name}", *more))
        for name, more in words.items()
    ]


def drive(run: Run) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Let the groups work under the broker's eyes. Return its answers, and what the command-line tool printed."""
    topics = ",".join(f"{name}:{partitions}" for name, partitions in TOPICS.items())
    server = f"bootstrap.servers={run.endpoint}"
    run.call("topics", "watch", *clients.java_command("topics", server, "client.id=topics", f"topics={topics}"))
    producing = feeds(run)
    first, second = members(run)
    there = [run.start(name, host, *command) for name, host, command in first]
    watch = run.start("watch", "watch", *clients.java_command(
        "watch", server, "client.id=watch", f"groups={','.join(GROUPS)}", f"topics={','.join(TOPICS)}",
        f"transactions={','.join(TRANSACTIONS)}", "pause_ms=120"))  # fmt: skip
    for one in there:
        one.wait_for_event("session")
    time.sleep(QUIET_S)
    later = [run.start(name, host, *command) for name, host, command in second]
    for one in later:
        one.wait_for_event("session")
    time.sleep(WORK_S)
    tool = described(run)
    terminate_all(*later)
    time.sleep(WORK_S)
    # The groups read on to the end: the marker that ends a transaction is seen by those who fetch alone.
    terminate_all(*producing)
    time.sleep(QUIET_S)
    terminate_all(*there)
    time.sleep(QUIET_S)
    terminate_all(watch)
    return watch.events(), tool


def described(run: Run) -> dict[str, Any]:
    """Return what kafka-consumer-groups --describe prints."""
    began = time.time_ns()
    command = kafka.java(kafka.LIBRARIES, "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
                         "--bootstrap-server", run.endpoint, "--describe", "--group", CLASSIC,
                         "--group", NEWER)  # fmt: skip
    tool = run.call("tool", "watch", *command)
    return {"from": began, "to": time.time_ns(), "text": tool.stdout_path.read_text()}


def answers_of(directory: Path) -> Answers:
    """Run it in DIRECTORY."""
    kind = kafka.Kafka()
    kind.prepare()
    whole, pcap = directory / "whole.pcapng", directory / "groups.pcap"
    with net.network(kind.host_names, HOSTS) as hosts:
        servers = [hosts[one] for one in kind.host_names]
        with (
            kind.running(servers, directory) as server,
            capture.capturing(servers[0], whole, directory),
            ExitStack() as stack,
        ):
            answers, tool = drive(Run(directory, hosts, server, kind, stack))
        asker = hosts["watch"].address
    run(["tcpdump", "-n", "--time-stamp-precision=nano", "-r", str(whole), "-w", str(pcap), f"not host {asker}"])
    return Answers(pcap, answers, tool)
