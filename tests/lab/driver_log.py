"""The log that the Node driver writes of its commands when MONGODB_LOG_COMMAND says so, as text for people.

In: its lines. Out: ended commands, with the fields of command_log. mongosh has this driver and no other monitoring.
The log does not tell the code of an error, only its message.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

HEAD = re.compile(r"c: 'command'.* commandName: '(\w+)', requestId: (\d+),.* databaseName: '([^']*)'")
TOLD = re.compile(r"message: 'Command (started|succeeded|failed)'(.*)")


def commands(text: str) -> list[dict[str, Any]]:
    """Return the commands of a log in the order of their ends."""
    begun: dict[int, dict[str, Any]] = {}
    found = []
    for line in text.splitlines():
        head, told = HEAD.search(line), TOLD.search(line)
        if head is None or told is None:
            continue
        kind, rest = told.groups()
        request_id = int(head.group(2))
        if kind == "started":
            known = {"request_id": request_id, "command": head.group(1), "database": head.group(3)}
            begun[request_id] = {**known, **asked(head.group(1), document_of(rest, "command"))}
        else:
            found.append({**begun.pop(request_id), **answered(kind, document_of(rest, "reply"))})
    return found


def asked(name: str, command: dict[str, Any]) -> dict[str, Any]:
    """Return what a command's document tells."""
    collection = command.get("collection", command.get(name))
    lsid = command.get("lsid")
    return {
        "collection": collection if isinstance(collection, str) else None,
        "lsid": None if lsid is None else base64.b64decode(lsid["id"]["$binary"]["base64"]).hex(),
        "acknowledged": command.get("writeConcern", {}).get("w") != 0,
    }


def answered(kind: str, reply: dict[str, Any]) -> dict[str, Any]:
    """Return what the end of a command tells."""
    cursor = reply.get("cursor", {})
    batch = cursor.get("firstBatch", cursor.get("nextBatch"))
    return {
        "answered": True, "ok": kind == "succeeded", "n": reply.get("n"), "cursor_id": cursor.get("id"),
        "returned": None if batch is None else len(batch), "error": None if kind == "succeeded" else "failed",
    }  # fmt: skip


def document_of(text: str, name: str) -> dict[str, Any]:
    """Return the JSON document that stands under NAME, quoted as JavaScript quotes; empty if it is not there."""
    found = re.search(rf"{name}: (['\"`])(.*)\1", text)
    if found is None:
        return {}
    value = json.loads(re.sub(r"\\(['`\\])", r"\1", found.group(2)))
    return value if isinstance(value, dict) else {}
