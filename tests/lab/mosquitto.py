"""Eclipse Mosquitto as the distribution's package brings it: one broker on one host, over TCP and WebSocket.

In: a host, a directory and what a scenario wants (Mosquitto). Out: a running broker that logs every packet. The
package's own service is not used: the broker runs with the lab's configuration, in the host's namespace.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab import mosquitto_log, prerequisites
from tests.lab.net import Host
from tests.lab.processes import LabError, Process, wait_until

PORT = 1883
WEBSOCKET_PORT = 9001
PLUGIN = "mosquitto_dynamic_security.so"
START_S = 20
SALT = b"wirewitness1"
ITERATIONS = 101
CONFIG = """\
user root
log_type all
log_dest file {directory}/mosquitto.log
connection_messages true
sys_interval 0
listener {websocket_port}
socket_domain ipv4
protocol websockets
listener {port}
socket_domain ipv4
"""


class User(NamedTuple):
    """A user of the broker and the topic filters of which nothing is allowed to it."""

    name: str
    password: str
    forbidden: tuple[str, ...] = ()
    iterations: int = ITERATIONS  # of PBKDF2: how much work a login is for the broker
    operates: bool = False  # it may change users and their rights


def user_entry(user: User) -> dict[str, object]:
    """Return a user as the security plugin's file has it."""
    password = hashlib.pbkdf2_hmac("sha512", user.password.encode(), SALT, user.iterations)
    return {"username": user.name, "password": base64.b64encode(password).decode(),
            "salt": base64.b64encode(SALT).decode(), "iterations": user.iterations,
            "roles": [{"rolename": user.name}]}  # fmt: skip


def security(users: Sequence[User]) -> str:
    """Return the security plugin's file: everything is allowed that is not forbidden to a user."""
    acts = ("publishClientSend", "publishClientReceive", "subscribe", "unsubscribe")
    roles = [{"rolename": user.name, "acls": [
        {"acltype": kind, "topic": topic, "priority": 0, "allow": False}
        for topic in user.forbidden for kind in ("publishClientSend", "subscribePattern")
    ] + [
        {"acltype": "publishClientSend", "topic": "$CONTROL/#", "priority": 0, "allow": True}
        for _ in range(user.operates)
    ]} for user in users]  # fmt: skip
    return json.dumps({"defaultACLAccess": dict.fromkeys(acts, True), "groups": [], "roles": roles,
                       "clients": [user_entry(user) for user in users]})  # fmt: skip


@functools.cache
def plugin_path() -> Path:
    """Return where the package has put its security plugin."""
    for folder in sorted(Path("/usr/lib").glob(f"*/{PLUGIN}")):
        return folder
    raise LabError(f"{PLUGIN} is not below /usr/lib; the package mosquitto brings it")


class Broker(NamedTuple):
    """A broker that runs."""

    host: Host
    directory: Path
    process: Process

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"{self.host.address}:{PORT}"

    @property
    def websocket_endpoint(self) -> str:
        """Where clients find it with WebSocket."""
        return f"{self.host.address}:{WEBSOCKET_PORT}"

    @property
    def log_files(self) -> tuple[Path, ...]:
        """Its log."""
        return (self.directory / "mosquitto.log",)


class Mosquitto(NamedTuple):
    """What a scenario wants of its broker (a servers.Server); nothing said: everybody may do everything."""

    settings: tuple[str, ...] = ()  # lines of mosquitto.conf for the broker or its TCP listener
    users: tuple[User, ...] = ()  # none: no login

    @property
    def protocol(self) -> str:
        """The protocol, for names of samples."""
        return "mqtt"

    @property
    def name(self) -> str:
        """The product."""
        return "Eclipse Mosquitto"

    @property
    def version(self) -> str:
        """The version of the installed program."""
        found = re.search(r"mosquitto version (\S+)", prerequisites.output_of(["mosquitto", "-h"]))
        if found is None:
            raise LabError("mosquitto is not installed")
        return found.group(1)

    @property
    def host_names(self) -> tuple[str, ...]:
        """The broker's host."""
        return ("broker",)

    def prepare(self) -> None:
        """Look whether the program is there."""
        assert self.version

    def configure(self, directory: Path) -> Path:
        """Write the configuration and what it names; return its path."""
        config = CONFIG.format(directory=directory, port=PORT, websocket_port=WEBSOCKET_PORT)
        lines = [*self.settings, f"allow_anonymous {'false' if self.users else 'true'}"]
        if self.users:
            (directory / "security.json").write_text(security(self.users))
            lines += [f"plugin {plugin_path()}", f"plugin_opt_config_file {directory / 'security.json'}"]
        path = directory / "mosquitto.conf"
        path.write_text(config + "".join(f"{line}\n" for line in lines))
        return path

    @contextlib.contextmanager
    def running(self, hosts: Sequence[Host], directory: Path) -> Iterator[Broker]:
        """Hold a fresh broker; configuration and log are in DIRECTORY."""
        config = self.configure(directory)
        process = Process("mosquitto", hosts[0].command("mosquitto", "-c", str(config)), directory)
        broker = Broker(hosts[0], directory, process)

        def ready() -> bool:
            process.check_alive("the broker was ready")
            [log] = broker.log_files
            return log.exists() and " running" in log.read_text(errors="replace")

        try:
            wait_until(ready, "mosquitto is ready", START_S)
            yield broker
            process.check_alive("the clients had left")
        finally:
            process.stop()

    def read_logs(self, paths: Iterable[Path]) -> list[mosquitto_log.LogEntry]:
        """Return the packets and events of the log."""
        return [entry for path in paths for entry in mosquitto_log.load(path)]

    def save_log(self, records: Iterable[mosquitto_log.LogEntry], path: Path) -> None:
        """Store entries as gzipped JSON lines."""
        mosquitto_log.save(records, path)
