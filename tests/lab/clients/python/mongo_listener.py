"""What pymongo's own monitoring says of each command, as JSON lines on standard output.

In: events of pymongo.monitoring. Out: one line for each command that ended, fields as tests/lab/command_log.py names
them. Imported by the client programs beside it; nothing of wirewitness is used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from pymongo import monitoring


def say(event: str, **known: Any) -> None:
    """Print one event."""
    # One write for the line and its end, as threads of an application may speak at the same time.
    sys.stdout.write(json.dumps({"event": event, **known}) + "\n")
    sys.stdout.flush()


def collection_of(name: str, command: Mapping[str, Any]) -> str | None:
    """Return the collection that a command names."""
    found = command.get("collection", command.get(name))
    return found if isinstance(found, str) else None


class Listener(monitoring.CommandListener):
    """Joins each command's beginning with its end."""

    def __init__(self) -> None:
        self._begun: dict[int, dict[str, Any]] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Keep what the reply does not say."""
        command = event.command
        lsid = command.get("lsid")
        self._begun[event.request_id] = {
            "database": event.database_name,
            "collection": collection_of(event.command_name, command),
            "lsid": None if lsid is None else lsid["id"].hex(),
            "txn_number": command.get("txnNumber"),
            "acknowledged": command.get("writeConcern", {}).get("w") != 0,
        }

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Print a command that was answered; the answer may still say ok: 0."""
        self._end(event, event.reply, {})

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Print a command that was answered with an error, or not answered."""
        failure = event.failure
        self._end(event, failure if "ok" in failure else {}, {"error": failure.get("errtype", "OperationFailure")})

    def _end(self, event: Any, reply: Mapping[str, Any], more: dict[str, Any]) -> None:
        cursor = reply.get("cursor", {})
        batch = cursor.get("firstBatch", cursor.get("nextBatch"))
        # pymongo hides the replies of commands that carry credentials; that they came is known.
        hidden = not reply and not more
        say("command", request_id=event.request_id, command=event.command_name,
            **self._begun.pop(event.request_id), answered="ok" in reply or hidden,
            ok=True if hidden else reply["ok"] == 1 if "ok" in reply else None, code=reply.get("code"),
            n=reply.get("n"), n_modified=reply.get("nModified"), cursor_id=cursor.get("id"),
            write_errors=[one["code"] for one in reply.get("writeErrors", ())],
            returned=None if batch is None else len(batch), duration_us=event.duration_micros, **more)  # fmt: skip


class Heartbeats(monitoring.ServerHeartbeatListener):
    """Prints the server monitor's hellos; awaited ones are those of the streaming protocol."""

    def started(self, event: monitoring.ServerHeartbeatStartedEvent) -> None:
        """Only the ends are told."""

    def succeeded(self, event: monitoring.ServerHeartbeatSucceededEvent) -> None:
        """Print an answered hello."""
        say("heartbeat", awaited=event.awaited, ok=True, primary=event.reply.is_writable)

    def failed(self, event: monitoring.ServerHeartbeatFailedEvent) -> None:
        """Print a hello that ended without an answer."""
        say("heartbeat", awaited=event.awaited, ok=False)
