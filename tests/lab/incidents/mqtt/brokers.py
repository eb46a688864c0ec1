"""The broker of an incident: Mosquitto, Mochi or another, which can be stopped, frozen and started again.

In: a host, a directory, what a fault wants of its broker (Wanted). Out: a Place that says where clients find it.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import mochi, mosquitto, other_mqtt
from tests.lab.net import Host
from tests.lab.processes import LabError

BOTH = ("mosquitto", "mochi")
MOSQUITTO = ("mosquitto",)
OTHERS = ("aedes", "hivemq", "moquette")
OF_3_1_1 = ("aedes", "moquette")  # they know no 5.0
AnyServer = mosquitto.Mosquitto | mochi.Mochi | other_mqtt.Other


class Wanted(NamedTuple):
    """What a fault wants of its broker; {place} in a setting of Mosquitto is a directory that outlives restarts.

    With one of OTHERS: it alone, and its own settings (`other_mqtt`).
    """

    kinds: tuple[str, ...] = BOTH
    settings: tuple[str, ...] = ()
    users: tuple[mosquitto.User, ...] = ()
    in_flight: int = 5
    alone: bool = False  # no traffic beside it: the broker would refuse that, too
    files: tuple[tuple[str, str], ...] = ()  # name and content, in {place}


class Place:
    """One broker, under one address also after restarts."""

    def __init__(self, host: Host, directory: Path, wanted: Wanted, rng: random.Random) -> None:
        self.kind = rng.choice(wanted.kinds)
        self.host = host
        # What clients that are allowed in give at CONNECT.
        self.login = {"user": user.name, "password": user.password} if (user := next(iter(wanted.users), None)) else {}
        self._directory = directory
        self._runs = count(1)
        self._stack = ExitStack()
        settings = (f"max_inflight_messages {wanted.in_flight}", *wanted.settings)
        self._server: AnyServer = mochi.Mochi(receive_maximum=wanted.in_flight)
        if self.kind == "mosquitto":
            lines = tuple(line.format(place=f"{directory}/") for line in settings)
            self._server = mosquitto.Mosquitto(settings=lines, users=wanted.users)
        elif self.kind in OTHERS:
            self._server = other_mqtt.Other(self.kind, wanted.settings)
        self._running: mosquitto.Broker | mochi.Broker | other_mqtt.Broker | None = None
        for name, content in wanted.files:
            (directory / name).write_text(content)

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"{self.host.address}:{mosquitto.PORT}"

    def start(self) -> None:
        """Start it; its logs are in a directory of their own each time."""
        directory = self._directory / f"{self.host.name}-{next(self._runs)}"
        directory.mkdir(parents=True)
        context: Any = self._server.running([self.host], directory)  # of one kind of broker
        self._running = self._stack.enter_context(context)

    def stop(self) -> None:
        """End it in order; connections are closed."""
        self._stack.close()
        self._running = None

    def closed_to_strangers(self) -> None:
        """Let Mosquitto take only an operator from its next start on."""
        assert isinstance(self._server, mosquitto.Mosquitto)
        self._server = self._server._replace(users=(mosquitto.User("operator", "lab-op-4Tz9"),))

    def crash(self) -> None:
        """End it at once, as a loss of power does: what it has not written is gone."""
        assert self._running is not None
        self._running.process.kill()
        with contextlib.suppress(LabError):  # which says that it is not there any more
            self._stack.close()
        self._running = None

    def save(self) -> None:
        """Let Mosquitto write its sessions and retained messages now."""
        assert self._running is not None
        os.kill(self._running.process.pid, signal.SIGUSR1)

    def limit_files(self, more: int) -> None:
        """Let its process open no more than so many files and connections above those that it has."""
        assert self._running is not None
        pid = self._running.process.pid
        limit = len(os.listdir(f"/proc/{pid}/fd")) + more
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))

    def freeze(self) -> None:
        """Let its process stand still: its kernel goes on."""
        assert self._running is not None
        self._running.process.freeze()

    def thaw(self) -> None:
        """Undo `freeze`."""
        assert self._running is not None
        self._running.process.thaw()
