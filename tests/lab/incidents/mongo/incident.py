"""One incident of MongoDB: its server, its applications, and what really happened.

In: hosts, a directory, a source of lots, the drivers that may take part. Out: running applications, the truth.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab import net
from tests.lab.clients import mongo, mongo_workers, python_command
from tests.lab.incidents.staged import Staged
from tests.lab.mongo_servers import PORT
from tests.lab.processes import Process

HOSTS = ("shop", "site", "one", "two", "three")
LOGIN = "clerk:lab-mongo-4Tq8"
LAG_S = 1.5
BUSY = 0.5  # of the time something waited for a processor of this machine
DIRECT = {"directConnection": "true"}
_DIRECT = {"mgo": {"connect": "direct"}}  # where a driver calls it otherwise
COMPRESSES = 0.6  # of the applications, where the server does


class Incident(Staged):
    """With applications. server: the process of the test server; None for FerretDB."""

    server: Process | None = None
    login = ""
    compressors: tuple[str, ...] = ()

    def __init__(self, hosts: dict[str, net.Host], directory: Path, rng: random.Random, drivers: Sequence[str]) -> None:
        super().__init__(hosts, directory, rng)
        self.address = hosts["server"].address
        self.endpoint = f"{self.address}:{PORT}"
        self.drivers = drivers
        self.taken: list[str] = []
        self.asked: list[str] = []

    def work(
        self, host: str, work: str, name: str, *, to: str = "", login: str = "", driver: str = "",
        client: Mapping[str, Any] | None = None, **options: Any,
    ) -> Process:  # fmt: skip
        """Start an application; it ends with the incident at the latest.

        TO: host:port, the server's if empty, and then as a member of its replica set. CLIENT: options of the connection
        string. DRIVER: one of mongo_workers, drawn if empty.
        """
        self.clients.append(self.who(host, name))
        place = self.place()
        chosen = driver or ("pymongo" if work in mongo_workers.PYTHON_ONLY else self.rng.choice(self.drivers))
        self.taken.append(chosen)
        uri = self.uri(to, login, {**self.compression(chosen), **(client or {})}, _DIRECT.get(chosen, DIRECT))
        return self.start(host, *mongo_workers.command(chosen, work, uri, name, place, options))

    def habit(
        self, host: str, work: str, name: str, *, to: str = "", login: str = "", driver: str = "pymongo",
        place: str = "", client: Mapping[str, Any] | None = None, **options: Any,
    ) -> Process:  # fmt: skip
        """Start an application of mongo_habits. PLACE: DATABASE.COLLECTION, its own if empty; the rest as in `work`."""
        self.clients.append(self.who(host, name))
        self.taken.append(driver)
        uri = self.uri(to, login, {**self.compression(driver), **(client or {})})
        return self.start(host, *mongo_workers.habit(driver, work, uri, name, place or self.place(), options))

    def practice(
        self, host: str, work: str, name: str, *, to: str = "", login: str = "", driver: str = "pymongo",
        place: str = "", client: Mapping[str, Any] | None = None, **options: Any,
    ) -> Process:  # fmt: skip
        """Start an application of mongo_practices; words as those of `habit`, and the driver go."""
        self.clients.append(self.who(host, name))
        self.taken.append(driver)
        uri = self.uri(to, login, {**self.compression(driver), **(client or {})})
        return self.start(host, *mongo_workers.practice(driver, work, uri, name, place or self.place(), options))

    def order(self, *commands: Mapping[str, Any], port: int = PORT) -> None:
        """Give the test server orders from its own host, which no capture shows."""
        uri = f"mongodb://{self.login}{self.address}:{port}/?directConnection=true"
        self.start("server", *python_command("mongo_order", uri, *map(json.dumps, commands))).finish(30)

    def place(self) -> str:
        """Return a collection that no application has yet."""
        return f"{self.names.topic().replace('.', '-')}.rows"

    def shell(self, host: str, *lines: str) -> Process:
        """Type lines into mongosh."""
        self.taken.append("mongosh")
        directory = self.directory / f"mongosh-{len(self.taken)}"
        command, env = mongo.mongosh_command(directory, self.uri(), "\n".join((*lines, "")))
        return self.start(host, "env", *(f"{name}={value}" for name, value in env.items()), *command)

    def uri(
        self, to: str = "", login: str = "", settings: Mapping[str, Any] | None = None,
        direct: Mapping[str, str] = DIRECT,
    ) -> str:  # fmt: skip
        """Return a connection string; of the server, if TO is empty. DIRECT: for one server that is no member."""
        member = {"replicaSet": "lab"} if self.server and not to else direct
        words = "&".join(f"{name}={value}" for name, value in {**member, **(settings or {})}.items())
        return f"mongodb://{login or self.login}{to or self.endpoint}/?{words}"

    def compression(self, driver: str) -> dict[str, str]:
        """Draw what an application compresses with."""
        known = [one for one in mongo_workers.COMPRESSORS.get(driver, ()) if one in self.compressors]
        if not known or self.rng.random() > COMPRESSES:
            return {}
        wanted = ",".join(self.rng.sample(known, self.rng.randint(1, len(known))))
        self.asked.append(wanted)
        return {"compressors": wanted}

    def story(self, name: str, times: Sequence[float], beside: int) -> dict[str, Any]:
        """Return the truth, with the drivers that took part and what they asked to compress with."""
        truth = super().story(name, times, beside)
        if (truth["facts"]["host_busy"] or 0) >= BUSY:
            truth["allowed"] = [*truth["allowed"], "MON101"]  # the server is as slow as the rule says
        truth["facts"] |= {"libraries": sorted(set(self.taken)), "compressors": self.asked}
        return truth
