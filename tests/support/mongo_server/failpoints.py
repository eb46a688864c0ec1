"""The fail point failCommand: failures and delays that a client orders with configureFailPoint, as drivers' tests do.

In: configureFailPoint commands, then each command. Out: a sleep, a CommandError, or a connection to close. Source: the
fail command fail point of MongoDB, as the driver specifications describe it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.support.mongo_server.errors import RETRYABLE_WRITE_CODES, CommandError


class CloseConnection(Exception):
    """The server closes the connection without an answer."""


class FailPoints:
    """The one fail point failCommand: which commands it hits, how often yet, and what happens to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0
        self._data: dict[str, Any] = {}

    def configure(self, command: dict[str, Any]) -> None:
        """Take over what configureFailPoint says; mode is "off", "alwaysOn" or {times: n}."""
        if command["configureFailPoint"] != "failCommand":
            raise CommandError(2, f"unknown fail point {command['configureFailPoint']}")
        mode = command["mode"]
        with self._lock:
            self._left = mode["times"] if isinstance(mode, dict) else 0 if mode == "off" else 1 << 62
            self._data = command.get("data", {})

    def _meant(self, name: str, command: dict[str, Any], app_name: str) -> bool:
        data = self._data
        namespace = f"{command.get('$db')}.{next(iter(command.values()))}"
        return (
            name in data.get("failCommands", ())
            and data.get("appName", app_name) == app_name
            and data.get("namespace", namespace) == namespace
        )

    def strike(self, name: str, command: dict[str, Any], app_name: str = "") -> dict[str, Any]:
        """Do to this command what is ordered for it; return what its reply has beside its own."""
        with self._lock:
            if not self._left or not self._meant(name, command, app_name):
                return {}
            self._left -= 1
            data = self._data
        block_ms = data.get("blockTimeMS", 0) if data.get("blockConnection") else 0
        limit_ms = command.get("maxTimeMS", block_ms)
        time.sleep(min(block_ms, limit_ms) / 1000)
        if limit_ms < block_ms:
            raise CommandError(50, "operation exceeded time limit")
        if data.get("closeConnection"):
            raise CloseConnection
        if "errorCode" in data:
            code = data["errorCode"]
            labels = data.get("errorLabels", ["RetryableWriteError"] if code in RETRYABLE_WRITE_CODES else [])
            said = data.get("errmsg", f"Failing command '{name}' via 'failCommand' failpoint")
            raise CommandError(code, said, tuple(labels))
        return {"writeConcernError": data["writeConcernError"]} if "writeConcernError" in data else {}
