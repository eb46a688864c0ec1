"""Healthy traffic beside each incident: producers, and groups of other libraries that consume and commit."""

from __future__ import annotations

from typing import NamedTuple

from tests.lab import clients
from tests.lab.incidents import libraries
from tests.lab.incidents.world import World
from tests.lab.processes import Process

GROUPS = 3
MEMBERS = (2, 1, 1)


class Member(NamedTuple):
    """A member that stays, and how it is started again."""

    process: Process
    host: str
    command: list[str]


class Backdrop:
    """Clients that stay over the incidents of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._members: list[Member] = []
        self._number = 0
        copies = "1" if world.kind == "single" else "3"
        topics = [world.names.topic() for _ in range(GROUPS)]
        made = world.start("backdrop-topics", "ops", clients.python_command(
            "kafka_python_worker", "admin", "what=create", f"broker={world.endpoint.partition(',')[0]}",
            "client_id=setup", f"copies={copies}", "topics=" + ",".join(f"{topic}:3" for topic in topics)),
            world.directory)  # fmt: skip
        made.finish(60)
        for topic in topics:
            self._start("h13", clients.python_command(
                "librdkafka_worker", "send", f"bootstrap.servers={world.endpoint}", f"client.id={world.names.client()}",
                f"topic={topic}", "rate=10", "rounds=2"))  # fmt: skip
        chosen = world.rng.sample([one for one in libraries.LIBRARIES if one != "java"], GROUPS)
        for library, topic, members in zip(chosen, topics, MEMBERS, strict=True):
            group = world.names.group()
            for number in range(members):
                work = libraries.Work(world.endpoint, world.names.client(), group, (topic,), session_ms=10_000)
                self._members.append(self._start(f"h{13 + number}", libraries.COMMANDS[library](work)))
        for member in self._members:
            member.process.wait_for_event("session", timeout_s=60)

    def _start(self, host: str, command: list[str]) -> Member:
        self._number += 1
        process = self._world.start(f"backdrop-{self._number}", host, command, self._world.directory)
        self._world.stack.callback(process.stop, 3)
        return Member(process, host, command)

    def restart_one(self) -> None:
        """Stop a member in order and start it again: healthy."""
        number = self._world.rng.randrange(len(self._members))
        self._members[number].process.terminate()
        self._members[number] = self._start(*self._members[number][1:])
