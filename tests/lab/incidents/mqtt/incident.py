"""One incident of MQTT: its broker, its clients by role, and what really happened.

In: hosts, a broker. Out: `truth`, as `verdict.py` reads it. A fault starts clients and says in `blame` who did it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab import net
from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import OF_3_1_1, Place
from tests.lab.incidents.staged import Staged
from tests.lab.processes import Process

HOSTS = ("one", "two", "three", "four", "five")
BESIDE = ("gauge", "board", "screen")  # those of the healthy traffic
VERSIONS = (4, 5)


class Incident(Staged):
    """With clients of a broker, which follow plans."""

    def __init__(self, hosts: dict[str, net.Host], broker: Place, directory: Path, rng: random.Random) -> None:
        super().__init__(hosts, directory, rng)
        self.broker = broker
        self.truth["broker"] = broker.kind
        self.libraries: list[str] = []

    # choices

    def version(self) -> int:
        """Return the level of MQTT 3.1.1 or 5."""
        if self.broker.kind in OF_3_1_1:
            return VERSIONS[0]
        return self.rng.choice(VERSIONS)

    # clients

    def follow(
        self, host: str, client_id: str, *steps: mqtt.Step, version: int | None = None,
        library: str | Sequence[str] = mqtt.LIBRARIES, endpoint: str | None = None, **more: Any,
    ) -> Process:  # fmt: skip
        """Start a client of a LIBRARY, or of one of several, that follows a plan."""
        self.clients.append(self.who(host, client_id))
        chosen = library if isinstance(library, str) else self.rng.choice(library)
        self.libraries.append(chosen)
        wanted = mqtt.plan(client_id, version or self.version(), *steps, **{**self.broker.login, **more})
        return self.start(host, *mqtt.command(chosen, endpoint or self.broker.endpoint, wanted))

    def subscriber(self, host: str, client_id: str, *filters: tuple[str, int], **more: Any) -> Process:
        """Start a client that stays with its subscriptions."""
        process = self.follow(host, client_id, mqtt.subscribe(*filters), mqtt.STAY, mqtt.DISCONNECT, **more)
        process.wait_for_event("subscribed")
        return process

    def tool(self, kind: str, host: str, client_id: str, *words: str, version: str = "mqttv311") -> Process:
        """Start mosquitto_pub or mosquitto_sub."""
        who = self.who(host, client_id)
        if who not in self.clients:
            self.clients.append(who)
        login = self.broker.login if "-u" not in words else {}
        given = (*words, "-u", login["user"], "-P", login["password"]) if login else words
        return self.start(host, *mqtt.mosquitto_command(kind, self.broker.endpoint, client_id, version, *given))

    def breach(self, host: str, client_id: str, name: str) -> Process:
        """Start the client that breaks a rule of the protocol."""
        self.clients.append(self.who(host, client_id))
        address, port = self.broker.endpoint.split(":")
        words = (address, port, "user", "password", f"{name}={client_id}")
        return self.start(host, *python_command("mqtt_raw_client", *words))

    # the truth

    def blame_server(self, fault: str, *expected: str, allowed: Sequence[str] = ()) -> None:
        """Say that the server did it: all of its clients feel it."""
        self.blame(fault, {"server": self.broker.endpoint}, *expected, allowed=allowed)
        self.truth["cluster_wide"] = True

    def story(self, name: str, times: Sequence[float], beside: int) -> dict[str, Any]:
        """Return the truth, with the libraries that took part."""
        truth = super().story(name, times, beside)
        truth["facts"]["libraries"] = sorted(set(self.libraries))
        return truth
