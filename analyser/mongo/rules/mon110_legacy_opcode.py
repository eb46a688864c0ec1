"""MON110 legacy-opcode: messages in the form that servers no longer take.

Finds
    Clients that send OP_QUERY, OP_INSERT, OP_UPDATE, OP_DELETE, OP_GET_MORE, OP_KILL_CURSORS or OP_COMMAND.

Why it matters
    MongoDB 5.1 removed these opcodes: such a client stops working when the server is upgraded. Legacy writes are
    never answered, so their errors are lost.

How it decides
    The opcode of each request, compressed ones by what is inside. OP_QUERY that carries hello or isMaster is left
    out, as drivers still begin a connection with it, and servers answer it. So is what a server refuses for that
    (352, MON102), and what one answers that says in each hello that it is 5.1 or later (mongo_servers, wire version 14
    and above), as proxies and lookalikes do. Info, from the first one on (messages_least).

False alarms
    None known.

References
    MongoDB manual: wire protocol, opcodes deprecated in 5.0 and removed in 5.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import rows_of
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
    command_text,
    driver_text,
    listed,
    namespace,
)

_OPCODES = (
    "OP_QUERY", "OP_INSERT", "OP_UPDATE", "OP_DELETE", "OP_GET_MORE", "OP_KILL_CURSORS", "OP_COMMAND",
)  # fmt: skip
# Of 5.1, which removed them.
_WIRE_VERSION = 14
_TAKES_THEM = (
    "status = 'ok' AND coalesce((server_address, server_port) IN (SELECT (server_address, server_port) FROM "
    f"mongo_servers GROUP BY server_address, server_port HAVING min(max_wire_version) >= {_WIRE_VERSION}), false)"
)


def detect(frames: Frames, *, messages_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this application."""
    rows = rows_of(frames["mongo_commands"])
    if not rows or len(rows) < messages_least:
        return
    first = rows[0]
    opcodes = Counter(row["opcode"] for row in rows)
    counts = ", ".join(f"{opcode} ({count:,})" for opcode, count in opcodes.most_common())
    yield command_finding(
        RULE,
        rows,
        severity="info",
        subject=client_key(first),
        title=(
            f"{opcodes.most_common(1)[0][0]} {times(len(rows))}, which servers from 5.1 on refuse: "
            f"{client_title(first)} at {server_text(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} sends {counts} to {server_text(first)}, which servers from 5.1 on "
            f"do not take. Commands: {listed(command_text(row) for row in rows)}."
        ),
        next_step=f"Update {driver_text(first) or 'the driver'} before the server is upgraded to 5.1 or later.",
        numbers={
            "messages": len(rows),
            "opcodes": dict(opcodes),
            "where": namespace(first),
            "clients": [client_numbers(first, messages=len(rows))],
        },
    )


RULE = Rule(
    code="MON110",
    question="differs",
    name="legacy-opcode",
    severity="info",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "opcode", "error_code")},
    asks=("mongo_servers",),
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"opcode IN ({', '.join(repr(name) for name in _OPCODES)}) AND status <> 'orphan' AND "
        f"coalesce(command NOT IN {HELLOS}, true) AND error_code IS DISTINCT FROM 352 AND NOT ({_TAKES_THEM})"
    },
)
