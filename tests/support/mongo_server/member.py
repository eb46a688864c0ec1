"""What the test server says of itself: a member of a replica set, primary unless it follows another or stepped down.

In: hello commands, step-downs. Out: hello replies; an awaitable hello waits here until something changes. Sources: the
server discovery and monitoring specification, its streaming protocol.
"""

from __future__ import annotations

import datetime
import threading
import time
from typing import Any

import bson
from bson.timestamp import Timestamp

from tests.support.mongo_server.errors import CommandError
from tests.support.mongo_server.wire import MAX_MESSAGE_BYTES

SET_NAME = "lab"
MAX_WIRE_VERSION = 25  # MongoDB 8.0


class Member:
    """Role and topology version, with waiting for their change."""

    def __init__(self, address: str, compressors: tuple[str, ...], users: dict[str, str], follows: str = "") -> None:
        self._address = address
        self.max_wire_version = MAX_WIRE_VERSION
        self._hosts = [follows, address] if follows else [address]
        self._follows = follows
        self._compressors = compressors
        self._users = users
        self._process = bson.ObjectId()
        self._election = bson.ObjectId()
        self._changed = threading.Condition()
        self._counter = 6
        self._secondary_until = 0.0
        self._increment = 0

    @property
    def primary(self) -> bool:
        """Whether writes are taken now."""
        return not self._follows and not self._secondary_until

    def calls_itself(self, address: str) -> None:
        """Go by another address than that where it listens, as a member does whose configuration names it so."""
        self._hosts = [address if one == self._address else one for one in self._hosts]
        self._address = address

    def joined_by(self, address: str) -> None:
        """Another member follows this one."""
        self._hosts.append(address)

    def version(self) -> dict[str, Any]:
        """Return the topologyVersion."""
        return {"processId": self._process, "counter": bson.Int64(self._counter)}

    def check_writable(self) -> None:
        """Raise CommandError 10107 while stepped down."""
        if not self.primary:
            raise CommandError(10107, "not primary", ("RetryableWriteError",))

    def step_down(self, seconds: float) -> None:
        """Be a secondary for that long; waiting hellos are answered at both changes."""
        self._change(time.monotonic() + seconds)
        timer = threading.Timer(seconds, self._change, (0.0,))
        timer.daemon = True
        timer.start()

    def _change(self, secondary_until: float) -> None:
        with self._changed:
            self._secondary_until = secondary_until
            self._counter += 1
            self._changed.notify_all()

    def await_change(self, seen: dict[str, Any], limit_ms: int) -> None:
        """Return when the topology version is newer than the SEEN one, after limit_ms at the latest."""
        with self._changed:
            self._changed.wait_for(lambda: self._counter > seen["counter"], limit_ms / 1000)

    def cluster_time(self) -> dict[str, Any]:
        """Return $clusterTime and operationTime as replies carry them."""
        self._increment += 1
        now = Timestamp(int(time.time()), self._increment)
        signature = {"hash": bytes(20), "keyId": bson.Int64(0)}
        return {"$clusterTime": {"clusterTime": now, "signature": signature}, "operationTime": now}

    def hello(self, command: dict[str, Any], connection_id: int) -> dict[str, Any]:
        """Return the reply to hello or its legacy names."""
        name = "isWritablePrimary" if "hello" in command else "ismaster"
        known: dict[str, Any] = {"helloOk": True} if command.get("helloOk") else {}
        known |= {
            "topologyVersion": self.version(), "hosts": self._hosts, "setName": SET_NAME, "setVersion": 1,
            name: self.primary, "secondary": not self.primary, "me": self._address, "electionId": self._election,
            "maxBsonObjectSize": 16777216, "maxMessageSizeBytes": MAX_MESSAGE_BYTES, "maxWriteBatchSize": 100000,
            "localTime": datetime.datetime.now(datetime.UTC), "logicalSessionTimeoutMinutes": 30,
            "connectionId": connection_id, "minWireVersion": 0, "maxWireVersion": self.max_wire_version,
            "readOnly": False,
        }  # fmt: skip
        if self.primary or self._follows:
            known["primary"] = self._follows or self._address
        common = [offered for offered in command.get("compression", ()) if offered in self._compressors]
        if common:
            known["compression"] = common
        if command.get("saslSupportedMechs", "").partition(".")[2] in self._users:
            known["saslSupportedMechs"] = ["SCRAM-SHA-256"]
        return known
