"""Pairs of runs at a real broker: of two alike nothing differs, of two with one known change that one comes first.

The machine may have other work, which makes every latency another one from run to run: where latencies are not what was
changed, they are left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.lab import capture, clients, kafka, net
from tests.lab.incidents import libraries
from tests.lab.incidents.libraries import franz
from tests.lab.processes import Process, terminate_all
from tests.lab.runs import Run
from tests.lab.shared_runs import require_lab
from tests.support.shares import long_cases
from wirewitness.reports.base.questions.causes import findings
from wirewitness.reports.report.compare.comparison import COMPARED_TABLES, Side, compared
from wirewitness.reports.report.differences import Difference, differences

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

TOPICS = "orders:4,prices:2,audits:1"
WORK_S, PATIENCE_S = 12.0, 120


class Change(NamedTuple):
    """What one run has that the other has not. kinds, what: of the difference that must come first.

    send, work: settings of the producer of orders and of its consumers. rate: records a second of orders. more:
    programs beside the others. franz: the consumers are of another library. slow: the broker is.
    """

    kinds: tuple[str, ...]
    what: str
    send: tuple[str, ...] = ()
    work: tuple[str, ...] = ()
    rate: int = 30
    more: tuple[str, ...] = ()
    franz: bool = False
    slow: bool = False


ALIKE = Change((), "")
CHANGES = {
    "fetch wait": Change(("setting",), "fetch.max.wait.ms", work=("fetch.wait.max.ms=100",)),
    "acks": Change(("setting",), "acks of orders-feed", send=("request.required.acks=1",)),
    "compression": Change(("setting",), "compression.type of orders-feed", send=("compression.type=lz4",)),
    "session timeout": Change(("setting",), "session.timeout.ms", work=("session.timeout.ms=9000",)),
    "assignor": Change(("setting",), "partition.assignment.strategy",
                       work=("partition.assignment.strategy=roundrobin",)),
    "library": Change(("version",), "Versions of bill", franz=True),
    "one more client": Change(("client",), "Client extra-feed", more=("extra-feed",)),
    "one more group": Change(("client", "group"), "audit", more=("audit",)),
    "five times the load": Change(("topic",), "Topic orders: records", rate=150),
    "slow broker": Change(("latency",), "", slow=True),
}  # fmt: skip


def programs(world: Run, name: str, change: Change) -> list[Process]:
    """Start all clients of a run."""
    server = f"bootstrap.servers={world.endpoint}"

    def send(client: str, topic: str, rate: int, *more: str) -> Process:
        words = ("send", server, f"client.id={client}", f"topic={topic}", f"rate={rate}", "size=40", *more)
        return world.start(f"{name}-{client}", "feeds", *clients.python_command("librdkafka_worker", *words))

    def member(client: str, group: str, topic: str, host: str) -> Process:
        if change.franz:
            work = libraries.Work(world.endpoint, client, group, (topic,), commit="sync", assignor="range")
            return world.start(f"{name}-{client}", host, *franz(work))
        words = ("work", server, f"client.id={client}", f"group.id={group}", f"topics={topic}", "commit=sync",
                 "partition.assignment.strategy=range", *change.work)  # fmt: skip
        return world.start(f"{name}-{client}", host, *clients.python_command("librdkafka_worker", *words))

    started = [
        send("orders-feed", "orders", change.rate, *change.send), send("prices-feed", "prices", 20),
        member("bill-a", "bill", "orders", "reader-a"), member("bill-b", "bill", "orders", "reader-b"),
    ]  # fmt: skip
    if "extra-feed" in change.more:
        started.append(send("extra-feed", "prices", 5))
    if "audit" in change.more:
        started.append(member("audit-a", "audit", "prices", "reader-b"))
    return started


@contextmanager
def slowed(node: kafka.Node, *, really: bool) -> Iterator[None]:
    """The broker stands still for two thirds of the time, some 50 ms at once."""
    over = threading.Event()

    def hold() -> None:
        while not over.is_set():
            node.freeze()
            time.sleep(0.05)
            node.thaw()
            time.sleep(0.025)

    thread = threading.Thread(target=hold)
    if really:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if really:
            thread.join()


class World:
    """A broker, and runs at it, each captured by itself."""

    def __init__(self, world: Run, broker: net.Host, node: kafka.Node, directory: Path) -> None:
        self._world, self._broker, self._node, self._directory = world, broker, node, directory
        self._runs = 0

    def captured(self, change: Change) -> Path:
        """The capture of one run."""
        self._runs += 1
        name = f"run-{self._runs}"
        path = self._directory / f"{name}.pcapng"
        with capture.capturing(self._broker, path, self._directory):
            started = programs(self._world, name, change)
            for one in started:
                one.wait_for_event("session", timeout_s=PATIENCE_S)
            with slowed(self._node, really=change.slow):
                time.sleep(WORK_S)
            terminate_all(*started)
        return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    require_lab()
    directory = tmp_path_factory.mktemp("compare")
    kind = kafka.Kafka()
    kind.prepare()
    with net.network(kind.host_names, ("feeds", "reader-a", "reader-b", "desk")) as hosts:
        servers = [hosts[one] for one in kind.host_names]
        with kind.running(servers, directory) as server, ExitStack() as stack:
            made = Run(directory, hosts, server, kind, stack)
            words = ("topics", f"bootstrap.servers={made.endpoint}", "client.id=topics", f"topics={TOPICS}")
            made.call("topics", "desk", *clients.java_command(*words))
            yield World(made, servers[0], server.nodes[0], directory)


@pytest.fixture(scope="module")
def before(world: World) -> Path:
    return world.captured(ALIKE)


def told(a: Path, b: Path) -> list[Difference]:
    with wirewitness.read(a, tables=COMPARED_TABLES) as one, wirewitness.read(b, tables=COMPARED_TABLES) as other:
        sides = [Side(name, str(path), analysis, analysis.options)
                 for name, path, analysis in (("A", a, one), ("B", b, other))]  # fmt: skip
        return differences(compared(*sides, (findings(sides[0]), findings(sides[1]))))


def lines(found: list[Difference]) -> list[str]:
    return [f"{one.kind}: {one.what}: {one.a} / {one.b} ({one.factor:.1f})" for one in found]


def test_two_runs_of_the_same_have_no_difference(world: World, before: Path) -> None:
    found = [one for one in told(before, world.captured(ALIKE)) if one.kind != "latency"]
    assert lines(found) == []


@pytest.mark.parametrize("name", long_cases(list(CHANGES), "acks"))
def test_the_known_change_comes_first(name: str, world: World, before: Path) -> None:
    change = CHANGES[name]
    found: list[Any] = told(before, world.captured(change))
    if "latency" not in change.kinds:
        found = [one for one in found if one.kind != "latency"]
    assert found, "nothing differs"
    assert (found[0].kind in change.kinds, change.what in found[0].what) == (True, True), lines(found)
