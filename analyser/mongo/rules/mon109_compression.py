"""MON109 compression: compression that was asked for and is not used, or used where it must not be.

Finds
    Clients that offer compressors which the server does not take; clients that agreed on one and send everything
    uncompressed; commands with credentials that were compressed.

Why it matters
    Someone switched compression on and pays for a network that is no faster. Compressed authentication lets an
    observer guess secrets from sizes, which is why the specification forbids it.

How it decides
    From the handshake (`none` is no compressor): offered, but the answer names none; or agreed, and none of at
    least 5 commands (commands_least) was compressed. Requests of hello, saslStart, saslContinue, getnonce,
    authenticate, createUser, updateUser and copydb with its helpers that are compressed; a server may compress its
    answers. All of it is info.

False alarms
    None known.

References
    OP_COMPRESSED specification: handshake, messages not allowed to be compressed.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
    COMMAND_COLUMNS,
    HELLOS,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    listed,
)

_SECRETS = (
    "saslStart", "saslContinue", "getnonce", "authenticate", "createUser", "updateUser", "copydb", "copydbgetnonce",
    "copydbsaslstart",
)  # fmt: skip
_NEVER = f"(command IN {HELLOS} OR command IN ({', '.join(repr(name) for name in _SECRETS)}))"
_HELLO_NAMES = ("hello", "isMaster", "ismaster")


def detect(frames: Frames, *, commands_least: int = 5) -> Iterator[Finding]:
    """At most one finding of each kind for this application."""
    rows = rows_of(frames["mongo_commands"])
    forbidden = [row for row in rows if row["compressor"] and row["command"] in (*_HELLO_NAMES, *_SECRETS)]
    if forbidden:
        yield _finding(
            forbidden,
            "forbidden",
            f"compressed {listed(row['command'] for row in forbidden)} to {server_text(forbidden[0])}, which the "
            "specification forbids",
            "Update the driver: it must not compress the handshake and what carries credentials.",
        )
    refused = [row for row in rows if row["command"] in _HELLO_NAMES and not row["compressors_agreed"]]
    if refused:
        yield _finding(
            refused,
            "refused",
            f"offered the compressors {_names(refused[0], 'compressors_offered')} to {server_text(refused[0])}, which "
            "took none of them",
            "Look at net.compression.compressors of the server, or take compressors out of the connection string.",
        )
    usable = [row for row in rows if row["command"] not in (*_HELLO_NAMES, *_SECRETS) and row["compressors_agreed"]]
    if len(usable) >= commands_least and not any(row["compressor"] for row in usable):
        yield _finding(
            usable,
            "unused",
            f"agreed with {server_text(usable[0])} on {_names(usable[0], 'compressors_agreed')} and sent all of "
            f"{len(usable):,} commands uncompressed",
            "Look at the driver: its compression library may be missing.",
        )


def _names(row: Row, column: str) -> str:
    return printable(str(row[column]).replace(",", ", "), 80)


_TITLES = {
    "forbidden": "Compressed what must not be",
    "refused": "Compressors offered, none taken",
    "unused": "Compression agreed on, not used",
}


def _finding(rows: list[Row], kind: str, done: str, next_step: str) -> Finding:
    first = rows[0]
    return command_finding(
        RULE,
        rows,
        severity="info",
        subject={
            **client_key(first),
            "kind": kind,
        },
        title=f"{_TITLES[kind]}: {client_title(first)} at {server_text(first)}",
        sentence=f"{sentence_start(client_text(first))} {done}.",
        next_step=next_step,
        numbers={
            "commands": len(rows),
            "compressors_offered": first["compressors_offered"],
            "compressors_agreed": first["compressors_agreed"],
            "where": server_text(first),
            "clients": [client_numbers(first, commands=len(rows))],
        },
    )


RULE = Rule(
    code="MON109",
    question="growing",
    name="compression",
    severity="info",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "compressor", "compressors_offered", "compressors_agreed")},
    partition_by=CLIENT_KEY,
    detect=detect,
    # Requests that are compressed although they must not be, handshakes that agreed on nothing, and all that could be
    # compressed on connections where it was agreed on and not done once.
    rows={
        "mongo_commands": f"(compressor IS NOT NULL AND {_NEVER}) "
        f"OR (command IN {HELLOS} AND status = 'ok' AND compressors_offered NOT IN ('', 'none') "
        "AND compressors_agreed IS NULL) "
        f"OR (compressors_agreed <> '' AND compressor IS NULL AND NOT {_NEVER} AND flow_id NOT IN (SELECT flow_id FROM "
        f"mongo_commands WHERE compressor IS NOT NULL AND NOT {_NEVER}))",
    },
)
