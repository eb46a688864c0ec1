"""What a broker itself answers about its groups, several times a second, while real groups work.

In: an empty directory. Out: Answers: a capture without the questions, and the answers with the times of the questions.
Classic and KIP-848 groups of three client libraries; members join and leave, one is paused so that its lag grows,
offsets are stored in transactions, and another producer writes in transactions. Of two groups that stopped an operator
sets offsets back, deletes some, deletes a topic in which both have offsets, and in the end deletes one group.
Nothing waits for a time alone: on a busy machine each stage lasts until the broker has answered often enough.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import capture, clients, kafka, net
from tests.lab.incidents import libraries
from tests.lab.incidents.libraries import franz, java, librdkafka
from tests.lab.processes import Process, run, terminate_all, wait_until
from tests.lab.runs import Run

HOSTS = ("java-a", "go-b", "rdkafka-a", "rdkafka-b", "feeds", "desk", "watch")
TOPICS = {"orders": 4, "prices": 3, "copies": 2}
DOOMED = "trials"  # is deleted; its log ends are not asked for
CLASSIC, NEWER, PAUSED, COPIES = "orders-bill", "prices-audit", "orders-score", "orders-copies"
STOPPED, STOPPED_NEWER = "orders-index", "trials-audit"
GROUPS = (CLASSIC, NEWER, PAUSED, COPIES, STOPPED, STOPPED_NEWER)
TRANSACTIONS = ("payouts-1", "copies-1")
QUIET_S, WORK_S = 1.5, 3.0
ROUNDS = 6  # of questions, in each stage
PATIENCE_S = 90
READ = {CLASSIC: "orders", NEWER: "prices"}  # what kafka-consumer-groups describes
QUESTIONS = ("groups", "offsets", "ends", "transactions", "replicas")

Member = tuple[str, str, list[str]]


class Work(NamedTuple):
    """What an operator did to a stopped group; begin and end in Unix ns."""

    what: str
    groups: tuple[str, ...]
    begin: int
    end: int


class Answers(NamedTuple):
    """What a run leaves: the capture that is analysed, what was answered, and what kafka-consumer-groups printed."""

    pcap: Path
    answers: list[dict[str, Any]]
    tool: dict[str, Any]  # from and to (ns), text
    works: list[Work]


class Cast(NamedTuple):
    """Name, host and command of members: those that stay, those that come later and leave, those that stop for good."""

    first: list[Member]
    second: list[Member]
    stopping: list[Member]


def members(run: Run) -> Cast:
    """Return who takes part."""

    def work(client: str, group: str, *topics: str, **more: Any) -> libraries.Work:
        return libraries.Work(run.endpoint, client, group, topics, commit="sync", **more)

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
    stopping = [
        ("index-a", "rdkafka-a", librdkafka(work("index-a", STOPPED, "orders", DOOMED))),
        ("trial-a", "rdkafka-b", librdkafka(work("trial-a", STOPPED_NEWER, "orders", DOOMED, protocol="consumer"))),
    ]
    return Cast(first, second, stopping)


def feeds(run: Run) -> list[Process]:
    """Start the producers; the last writes to the topic that is deleted."""
    send = ("send", f"bootstrap.servers={run.endpoint}", "size=40")
    words = {
        "orders-feed": ("topic=orders", "rate=40"),
        "prices-feed": ("topic=prices", "rate=20"),
        "payouts-feed": ("topic=prices", "rate=10", "transactional.id=payouts-1"),
        "trials-feed": (f"topic={DOOMED}", "rate=10"),
    }
    return [
        run.start(name, "feeds", *clients.python_command("librdkafka_worker", *send, f"client.id={name}", *more))
        for name, more in words.items()
    ]


def start(run: Run, several: list[Member]) -> list[Process]:
    """Start members."""
    return [run.start(name, host, *command) for name, host, command in several]


def in_session(*several: Process) -> None:
    """Wait until each has partitions."""
    for one in several:
        one.wait_for_event("session", timeout_s=PATIENCE_S)


def asked(watch: Process, seconds: float = 0) -> None:
    """Wait for seconds, and until the broker has been asked everything some more times."""
    time.sleep(seconds)
    watch.wait_for_event("replicas", len(watch.named_events("replicas")) + ROUNDS, PATIENCE_S)


def drive(run: Run) -> tuple[list[dict[str, Any]], dict[str, Any], list[Work]]:
    """Let the groups work under the broker's eyes; return its answers, what its tool printed, what an operator did."""
    topics = ",".join(f"{name}:{partitions}" for name, partitions in {**TOPICS, DOOMED: 2}.items())
    server = f"bootstrap.servers={run.endpoint}"
    run.call("topics", "watch", *clients.java_command("topics", server, "client.id=topics", f"topics={topics}"))
    *producing, doomed = feeds(run)
    cast = members(run)
    there, stopping = start(run, cast.first), start(run, cast.stopping)
    watch = run.start("watch", "watch", *clients.java_command(
        "watch", server, "client.id=watch", f"groups={','.join(GROUPS)}", f"topics={','.join(TOPICS)}",
        f"transactions={','.join(TRANSACTIONS)}", "pause_ms=120"))  # fmt: skip
    in_session(*there, *stopping)
    asked(watch, QUIET_S)
    later = start(run, cast.second)
    in_session(*later)
    asked(watch, WORK_S)
    settled(watch)
    tool = described(run)
    asked(watch)  # nobody leaves before the time to which the tool's words are compared
    terminate_all(doomed, *later, *stopping)
    asked(watch)
    works = operate(run, watch, cast)
    # The groups read on to the end: the marker that ends a transaction is seen by those who fetch alone.
    terminate_all(*producing)
    asked(watch, QUIET_S)
    terminate_all(*there)
    asked(watch, QUIET_S)
    terminate_all(watch)
    return watch.events(), tool, works


def settled(watch: Process) -> None:
    """Wait until both groups that the tool describes are at rest and have stored offsets of every partition."""

    def good() -> bool:
        groups, offsets = (watch.named_events(kind)[-1]["told"] for kind in ("groups", "offsets"))
        stored = all(len(offsets.get(group, ())) == TOPICS[topic] for group, topic in READ.items())
        return stored and all(groups[one]["state"] == "Stable" and len(groups[one]["members"]) == 2 for one in READ)

    wait_until(good, f"{' and '.join(READ)} at rest", PATIENCE_S)


def operate(run: Run, watch: Process, cast: Cast) -> list[Work]:
    """Move and delete stored offsets of the groups that stopped; in between one of them works again."""
    works = []

    def work(groups: tuple[str, ...], what: str, *words: str) -> None:
        begin = time.time_ns()
        done = run.call(f"desk-{len(works)}", "desk", *clients.python_command(
            "kafka_python_worker", "admin", f"what={what}", f"broker={run.endpoint}", "client_id=desk",
            *words))  # fmt: skip
        assert done.named_events("done"), done.events()
        works.append(Work(what, groups, begin, time.time_ns()))
        asked(watch)

    group = f"group={STOPPED}"
    work((STOPPED,), "reset", group, "topic=orders", "offsets=0:3,1:5")
    work((STOPPED,), "delete_offsets", group, "topic=orders", "offsets=2:0,3:0")
    work((STOPPED, STOPPED_NEWER), "delete", f"topic={DOOMED}")
    again = start(run, cast.stopping[:1])
    in_session(*again)
    asked(watch, QUIET_S)
    terminate_all(*again)
    asked(watch)
    work((STOPPED,), "delete_group", group)
    return works


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
            answers, tool, works = drive(Run(directory, hosts, server, kind, stack))
        asker = hosts["watch"].address
    run(["tcpdump", "-n", "--time-stamp-precision=nano", "-r", str(whole), "-w", str(pcap), f"not host {asker}"])
    return Answers(pcap, answers, tool, works)
