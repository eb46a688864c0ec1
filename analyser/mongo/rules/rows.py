"""What the rules about MongoDB share: how clients, namespaces and shapes are named, and how a finding is put together.

In: rows of a rule's frames as dicts, or frames. Out: words, the `clients` of a finding's numbers, evidence, findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wirewitness.analyser.base.addresses import server_of, who_is
from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.words import names_text, printable
from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.engine.rules.rule import Rule

MAX_NAME, MAX_SHAPE = 80, 160
# A name in a title, which has room for three.
TITLE_NAME = 28
# So many clients and namespaces are listed in the numbers of one finding.
MOST_LISTED = 20

# Who talks to whom: the key of rules about a client. An application is told from others at its address by its name.
CLIENT_KEY = ("server_address", "server_port", "client_address", "app_name", "driver")
# Columns of mongo_commands by which a command is named and proved; `exchange_id` is the id of the request's message.
COMMAND_COLUMNS = (
    "ts", "ts_response", "exchange_id", "flow_id", "file", "request_packet", "command", "database", "collection",
    "client_address", "app_name", "driver", "driver_version", "server_address", "server_port",
)  # fmt: skip
HELLO_NAMES = ("hello", "isMaster", "ismaster")
HELLOS = "(" + ", ".join(f"'{name}'" for name in HELLO_NAMES) + ")"
# What belongs to opening and closing a connection, besides hello.
AROUND = ("saslStart", "saslContinue", "authenticate", "getnonce", "endSessions", "killCursors")
# SQL on mongo_commands: the server was to wait for news. A getMore that leaves its cursor open and brings nothing has
# waited, too; so do those on a tailable cursor, whose opening says so (the rule reads mongo_cursors for it).
WAITING = (
    "coalesce(awaitable OR (command = 'getMore' AND (await_time_ms IS NOT NULL OR (documents_returned = 0 AND NOT "
    "cursor_exhausted) OR cursor_id IN (SELECT cursor_id FROM mongo_cursors WHERE tailable))), false)"
)
# SQL on flows: each connection once.
MONGO_FLOWS = "protocol = 'mongo' AND duplicate_of IS NULL"


def client_text(row: Mapping[str, Any]) -> str:
    """`application billing at 10.0.0.3 (PyMongo 4.20.0)`, as far as it is known."""
    return who_is(row["app_name"], row["client_address"], kind="application", detail=driver_text(row), most=MAX_NAME)


def client_title(row: Mapping[str, Any]) -> str:
    """`billing`; the address of an application without a name."""
    return printable(row["app_name"] or row["client_address"] or "?", TITLE_NAME)


def command_title(row: Mapping[str, Any]) -> str:
    """`find on shop.orders`, short enough for a title."""
    place = namespace(row)
    return printable(row["command"] or "?", TITLE_NAME) + (f" on {printable(place, TITLE_NAME)}" if place else "")


def driver_text(row: Mapping[str, Any]) -> str:
    """`PyMongo 4.20.0`; empty where the handshake is not in the capture."""
    words = (str(row.get(name) or "").strip("|") for name in ("driver", "driver_version"))
    return printable(" ".join(word for word in words if word), MAX_NAME)


def namespace(row: Mapping[str, Any]) -> str | None:
    """`shop.orders`, `shop` for a command on a database; None where neither is known."""
    return ".".join(name for name in (row["database"], row["collection"]) if name) or None


def command_text(row: Mapping[str, Any]) -> str:
    """`find on shop.orders`."""
    place = namespace(row)
    return printable(row["command"] or "?", MAX_NAME) + (f" on {printable(place, MAX_NAME)}" if place else "")


def shape_text(shape: str | None) -> str:
    """` Shape: {"filter":{"_id":"?number"}}.`; empty for commands without one."""
    return f" Shape: {printable(shape, MAX_SHAPE)}." if shape else ""


def listed(names: Iterable[str | None], most: int = 4) -> str:
    """Names, each once, with commas; what is too much is counted."""
    known = [printable(name, MAX_NAME) for name in dict.fromkeys(names) if name]
    return names_text(known, most)


def client_numbers(row: Mapping[str, Any], **more: Any) -> Row:
    """An element of `clients` in a finding's numbers; the application's name stands for a client id."""
    return {
        "address": row["client_address"],
        "client_id": row["app_name"],
        "driver": driver_text(row) or None,
        **more,
    }


def application_key(row: Mapping[str, Any]) -> Row:
    """What a finding about one application at one server is about."""
    return {"server": server_of(row), "address": row["client_address"], "application": row["app_name"]}


def client_key(row: Mapping[str, Any]) -> Row:
    """What a finding about one application and its driver is about."""
    return {**application_key(row), "driver": row["driver"]}


def by_client(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each address, application and driver, those with most rows first."""
    held: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        held.setdefault((row["client_address"], row["app_name"], row["driver"]), []).append(row)
    return sorted(held.values(), key=len, reverse=True)


def places_by_client(commands: Frame) -> list[list[int]]:
    """The same as `by_client`: the places of the rows of each."""
    held: dict[tuple[Any, ...], list[int]] = {}
    columns = (commands[name].values() for name in ("client_address", "app_name", "driver"))
    for place, client in enumerate(zip(*columns, strict=True)):
        held.setdefault(client, []).append(place)
    return sorted(held.values(), key=len, reverse=True)


def proof(row: Mapping[str, Any]) -> Evidence:
    """The request of a command, or the reply of an orphan."""
    return Evidence(row["file"], row["request_packet"], row["exchange_id"])


def last_seen(row: Mapping[str, Any]) -> int:
    """Time of a command's reply, of the command itself without one."""
    ts: int = row["ts"] if row["ts_response"] is None else row["ts_response"]
    return ts


def seen_of(made: Mapping[str, Any], commands: Mapping[str, Row]) -> list[Row]:
    """The first and last command of a cursor or transaction, from commands by their exchange_id."""
    names = dict.fromkeys((made["exchange_id"], made["last_exchange_id"]))
    return [commands[name] for name in names if name in commands]


def version_of(made: Mapping[str, Any], seen: Iterable[Mapping[str, Any]]) -> str | None:
    """The version of its driver, from commands of the same driver; None where no handshake of them is known."""
    return next(
        (row["driver_version"] for row in seen if row["driver"] == made["driver"] and row["driver_version"]), None
    )


def command_finding(
    rule: Rule,
    commands: Sequence[Row] | Frame,
    *,
    severity: Severity,
    subject: Mapping[str, Any],
    title: str,
    sentence: str,
    next_step: str,
    numbers: Mapping[str, Any],
    confidence: Confidence = "high",
    provisional: bool = False,
) -> Finding:
    """A finding that these commands prove. subject: its parts, which stand in the numbers, too."""
    return rule.finding(
        severity=severity,
        confidence=confidence,
        provisional=provisional,
        subject=subject,
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=_proof_of_frame(commands) if isinstance(commands, Frame) else _proof_of(commands),
        numbers={**subject, **numbers},
    )


def _proof_of(commands: Sequence[Row]) -> Proof:
    first = min((row["ts"] for row in commands), default=None)
    return Proof(first, max(map(last_seen, commands), default=None), map(proof, commands))


def _proof_of_frame(commands: Frame) -> Proof:
    """Of one command at least."""
    sent, answered = (commands[name].numbers() for name in ("ts", "ts_response"))
    last = np.where(answered == UNKNOWN, sent, answered)
    evidence = map(Evidence, *(commands[name].values() for name in ("file", "request_packet", "exchange_id")))
    return Proof(int(sent.min()), int(last.max()), evidence)
