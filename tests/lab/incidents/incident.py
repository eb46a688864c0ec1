"""One incident: its clients, its capture, and what really happened.

In: a World and a fault (a function of an Incident). Out: capture.pcapng, truth.json and the broker's log of the time.
A fault makes its topics and clients, calls `begin` when the capture is to start, and says in `is_about` who did it.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import capture, clients, kafka
from tests.lab.broker_log import read_request_log
from tests.lab.incidents import facts, libraries, told
from tests.lab.incidents.world import HOSTS, OPERATOR, World
from tests.lab.processes import Process

MOST_EVENTS = 60
SECOND_CLUSTER_ID = "d2lyZXdpdG5lc3MtbGFiMg"


class Client(NamedTuple):
    """A client of an incident."""

    name: str
    library: str
    client_id: str
    host: str
    address: str
    group: str | None
    topics: tuple[str, ...]
    process: Process

    def identity(self) -> dict[str, Any]:
        """Return how a finding may name it."""
        return {"client_id": self.client_id, "address": self.address}


def iso(seconds: float) -> str:
    """Return a time of time.time() as UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Incident:
    """What a fault works with."""

    def __init__(self, world: World, name: str, directory: Path, library: str | None, protocol: str | None) -> None:
        self.world = world
        self.name = name
        self.directory = directory
        self.rng = random.Random(world.rng.random())
        self.wanted_library = library
        self.wanted_protocol = protocol
        self.clients: list[Client] = []
        self.truth: dict[str, Any] = {"affected": {"clients": [], "groups": [], "topics": []}, "when": [None, None]}
        self.notes: list[str] = []
        self.answers: list[Any] = []
        self._stack = ExitStack()
        self._capture = ExitStack()
        self._hosts = list(HOSTS[:-2])  # the last two are the backdrop's
        self.rng.shuffle(self._hosts)
        self._since = world.log_sizes()
        self._began: float | None = None
        self._ended: float | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.logs = directory / "logs"
        self.logs.mkdir(exist_ok=True)

    # choices

    def library(self, *possible: str) -> str:
        """Return the wanted library if it is possible here, else one of the possible."""
        possible = possible or libraries.LIBRARIES
        return self.wanted_library if self.wanted_library in possible else self.rng.choice(possible)

    def protocol(self, library: str) -> str:
        """Return the group protocol to speak."""
        if library not in libraries.WITH_CONSUMER_PROTOCOL:
            return "classic"
        return self.wanted_protocol or self.rng.choice(("classic", "classic", "consumer"))

    def new_host(self) -> str:
        """Return a host that no client of this incident has yet."""
        return self._hosts.pop()

    def seconds(self, least: float, most: float) -> None:
        """Wait for a random time."""
        time.sleep(self.rng.uniform(least, most))

    # the capture

    def begin(self, everywhere: bool = False, at: str | None = None) -> None:
        """Start the capture: at the host AT or the only broker, or where all traffic of several passes."""
        single = at is not None or (len(self.world.server.nodes) == 1 and not everywhere)
        host = self.world.hosts[at or ("broker" if single else "switch")]
        self._capture.enter_context(
            capture.capturing(host, self.directory / "capture.pcapng", self.logs, "eth0" if single else "br0")
        )
        self._began = time.time()

    def end(self) -> None:
        """End the capture."""
        self._ended = time.time()
        self._capture.close()

    # clients

    def topics(self, *partitions: int, copies: int = 1, settings: str = "") -> list[str]:
        """Make topics with so many partitions and return their names."""
        names = [self.world.names.topic() for _ in partitions]
        wanted = ",".join(f"{name}:{count}" for name, count in zip(names, partitions, strict=True))
        words = [f"settings={settings}"] if settings else []
        answer = self.operate("create", f"topics={wanted}", f"copies={copies}", *words)
        if answer["event"] == "refused":
            raise RuntimeError(f"no topics for {self.name}: {answer['error']}")
        return names

    def operate(
        self, what: str, *words: str, client_id: str = "admin-tool", host: str = OPERATOR, broker: str | None = None
    ) -> Any:
        """Let an operator do one piece of work; return what was answered."""
        process = self.start(f"{what}-{len(self.answers)}", host, clients.python_command(
            "kafka_python_worker", "admin", f"what={what}",
            f"broker={broker or self.world.endpoint.partition(',')[0]}", f"client_id={client_id}", *words))  # fmt: skip
        process.finish(60)
        answer = process.events()[-1]
        if what != "create":
            self.answers.append({"at": iso(time.time()), "words": list(words), **answer})
        return answer

    def second_cluster(self, *settings: str) -> tuple[str, str]:
        """Start a broker with a cluster of its own; return its host and where clients find it."""
        host, node = self.other_broker(*settings)
        return host, node.endpoint

    def other_broker(
        self, *settings: str, host: str | None = None, cluster_id: str = SECOND_CLUSTER_ID
    ) -> tuple[str, kafka.Node]:
        """Start a broker with a cluster of its own on a HOST; return the host and the broker."""
        host = host or self.new_host()
        server = kafka.Kafka(settings=settings, cluster_id=cluster_id)
        running = server.running([self.world.hosts[host]], self.world.directory / f"{self.name}-{cluster_id[-3:]}")
        return host, self._stack.enter_context(running).nodes[0]

    def brokers(self, count: int, *settings: str) -> tuple[list[str], tuple[kafka.Node, ...]]:
        """Start a cluster of the incident's own; return its hosts and brokers."""
        hosts = [self.new_host() for _ in range(count)]
        server = kafka.Kafka(brokers=count, started=0, settings=settings, cluster_id=SECOND_CLUSTER_ID)
        running = server.running([self.world.hosts[one] for one in hosts], self.world.directory / f"{self.name}-own")
        nodes = self._stack.enter_context(running).nodes
        # A quorum needs its nodes at once, and a child dies with the thread that started it.
        pool = self._stack.enter_context(ThreadPoolExecutor(count))
        list(pool.map(lambda node: node.start(), nodes))
        return hosts, nodes

    def start(self, name: str, host: str, command: Sequence[str]) -> Process:
        """Start any program; it ends with the incident at the latest."""
        process = self.world.start(name, host, command, self.logs)
        self._stack.callback(process.stop, 3)
        return process

    def add(
        self, command: Callable[[str], Sequence[str]], library: str, *, host: str | None = None,
        client_id: str | None = None, group: str | None = None, topics: Iterable[str] = (),
    ) -> Client:  # fmt: skip
        """Start a client whose command COMMAND makes of its client id."""
        client_id = client_id or self.world.names.client()
        host = host or self.new_host()
        name = f"{len(self.clients):02d}-{client_id}"
        process = self.start(name, host, command(client_id))
        address = self.world.hosts[host].address
        self.clients.append(Client(name, library, client_id, host, address, group, tuple(topics), process))
        return self.clients[-1]

    def member(
        self, group: str, topics: Sequence[str], library: str | None = None, *, host: str | None = None,
        client_id: str | None = None, broker: str | None = None, wait: bool = True, **work: Any,
    ) -> Client:  # fmt: skip
        """Start a group member (libraries.Work has the words) and wait until it has partitions."""
        library = library or self.library()
        work.setdefault("protocol", self.protocol(library))
        made = self.add(
            lambda name: libraries.COMMANDS[library](
                libraries.Work(broker or self.world.endpoint, name, group, tuple(topics), **work)
            ),
            library, host=host, client_id=client_id, group=group, topics=topics,
        )  # fmt: skip
        if wait:
            made.process.wait_for_event("session", timeout_s=40)
        return made

    def sender(
        self, topic: str, *words: str, library: str = "librdkafka", client_id: str | None = None,
        host: str | None = None, broker: str | None = None, wait: bool = True,
    ) -> Client:  # fmt: skip
        """Start a producer with words of its client's `send`."""

        def command(name: str) -> list[str]:
            given = (
                f"bootstrap.servers={broker or self.world.endpoint}",
                f"client.id={name}",
                f"topic={topic}",
                *words,
            )
            if library == "java":
                return clients.java_command("send", *given)
            return clients.python_command("librdkafka_worker", "send", *given)

        made = self.add(command, library, host=host, client_id=client_id, topics=(topic,))
        if wait:
            made.process.wait_for_event("session")
        return made

    def later(self, work: Callable[[], object]) -> None:
        """Do something when the incident is over, however it ends."""
        self._stack.callback(work)

    # the truth

    def from_now(self) -> None:
        """Say that the fault begins now."""
        self.truth["when"][0] = iso(time.time())

    def until_now(self) -> None:
        """Say that the fault is over now."""
        self.truth["when"][1] = iso(time.time())

    def is_about(
        self, fault: str, culprit: dict[str, Any] | Client | None, expected: Sequence[str],
        allowed: Sequence[str] = (), affected: Iterable[Client] = (), **more: Any,
    ) -> None:  # fmt: skip
        """Say what is wrong, who did it, and which codes may say so first; without a culprit nothing is wrong.

        AFFECTED are clients that a true consequence may name; groups and topics are theirs and the culprit's.
        """
        who = culprit.identity() if isinstance(culprit, Client) else culprit
        if isinstance(culprit, Client) and culprit.group:
            who = {"group": culprit.group, **(who or {})}
        touched = [*affected, *([culprit] if isinstance(culprit, Client) else [])]
        self.truth |= {"fault": fault, "healthy": culprit is None, "culprit": {**(who or {}), **more},
                       "expected": list(expected), "allowed": sorted(set(allowed))}  # fmt: skip
        self.truth["affected"] = {
            "clients": [one.identity() for one in touched],
            "groups": sorted({one.group for one in touched if one.group} | set(_texts(more.get("group")))),
            "topics": sorted({topic for one in touched for topic in one.topics} | set(_texts(more.get("topic")))),
        }

    def is_told(
        self, fault: str, culprit: dict[str, Any] | Client, who: Sequence[str], what: str, *,
        never: Sequence[str] = (), affected: Iterable[Client] = (), least: str = "warning", **more: Any,
    ) -> None:  # fmt: skip
        """Say what is wrong where no codes are known: a finding must fit all patterns of WHO and one of WHAT's words.

        NEVER are patterns that no finding above info may fit; LEAST is how loud the finding must be.
        """
        self.is_about(fault, culprit, (), (), affected, **more)
        alone = len(self.world.server.nodes) == 1
        never = [*never, *((told.REPLICAS,) if alone else ())]
        self.truth |= {"must_say": [told.sentence(who, what)], "must_not_say": never, "least": least}

    def healthy(self, what: str) -> None:
        """Say that nothing is wrong."""
        self.is_about(what, None, ())

    def write(self) -> None:
        """Write truth.json and the broker's log of the time between begin and end."""
        lines = self.world.log_lines(self._since)
        records = [one for one in read_request_log(lines, on_wire=True)
                   if (self._began or 0) * 1000 <= one.logged_ms <= (self._ended or time.time()) * 1000]  # fmt: skip
        with gzip.open(self.directory / "broker.log.gz", "wt", encoding="utf-8") as log:
            log.writelines(f"{line}\n" for line in lines)
        groups = sorted({one.group for one in self.clients if one.group} | set(self.truth["affected"]["groups"]))
        self.truth["member_ids"] = facts.members(records)
        self.truth["capture"] = [iso(self._began or 0), iso(self._ended or 0)]
        self.truth["facts"] = {
            "clients": [
                {"client_id": one.client_id, "address": one.address, "library": one.library, "group": one.group,
                 "topics": one.topics, "events": shortened(one.process.events())}
                for one in self.clients
            ],
            "admin": self.answers,
            "broker": facts.broker_facts(records, groups),
            "notes": self.notes,
        }  # fmt: skip
        (self.directory / "truth.json").write_text(json.dumps({"name": self.name, **self.truth}, indent=1) + "\n")

    def close(self) -> None:
        """End all that still runs."""
        self._capture.close()
        self._stack.close()


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def shortened(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first and last events where there are many."""
    half = MOST_EVENTS // 2
    return (
        events
        if len(events) <= MOST_EVENTS
        else [*events[:half], {"left_out": len(events) - 2 * half}, *events[-half:]]
    )
