"""MON108 framing: messages that break the wire protocol.

Finds
    Messages with a wrong CRC-32C, larger than servers take, with documents above 16 MiB, with another size after
    decompression than they state, or with required flag bits that nobody defined.

Why it matters
    A server answers such a message with an error or closes the connection. A wrong checksum means that bytes
    changed on the way or in memory; a wrong size after decompression, a fault in a driver, a proxy, or an attack.

How it decides
    The dissector's remarks, one finding for each kind and side of a connection (remarks_least of them). All are
    warnings, but for compressed messages that only our own limits kept closed: info.

False alarms
    None known; a message that the capture cut is not remarked.

References
    OP_MSG specification: checksumPresent, required bits; OP_COMPRESSED specification; MongoDB limits:
    maxBsonObjectSize 16 MiB, maxMessageSizeBytes 48,000,000.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    client_numbers,
    client_text,
    client_title,
)

_SIZES = "Look at the application for documents or batches that grow without end."
_BYTES = "Look at the two hosts and at what lies between them (proxy, network card, memory)."
_SENDER = "Look at the version of the sender, and at proxies between the two."
# Code of the remark -> what was done, next step.
_KINDS = {
    "checksum_wrong": ("a message with a wrong checksum", _BYTES),
    "message_too_large": ("a message that is too large", _SIZES),
    "document_too_large": ("a document that is too large", _SIZES),
    "decompression_limit": ("a compressed message that holds more than it may", _SENDER),
    "decompression_failed": ("a compressed message that cannot be opened", _BYTES),
    "uncompressed_size": ("a compressed message of another size than it states", _SENDER),
    "unknown_required_flag": ("a message with required flag bits that are not defined", _SENDER),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of remark and side of this connection."""
    commands = rows_of(frames["mongo_commands"])
    by_kind: dict[tuple[str, str | None, Severity], list[Row]] = {}
    for remark in rows_of(frames["expert_infos"]):
        # A warning about the limit is about ours; an error is about the message.
        ours = remark["code"] == "decompression_limit" and remark["severity"] != "error"
        by_kind.setdefault((remark["code"], remark["direction"], "info" if ours else "warning"), []).append(remark)
    for (_, _, severity), remarks in by_kind.items():
        if commands and len(remarks) >= remarks_least:
            yield _finding(commands[-1], remarks, severity)


def _finding(command: Row, remarks: list[Row], severity: Severity) -> Finding:
    """command: any one of this connection, for the names."""
    code = remarks[0]["code"]
    done, next_step = _KINDS[code]
    by_server = remarks[0]["direction"] == "server_to_client"
    client, server = client_text(command), server_text(command)
    sender, receiver = (f"the server {server}", client) if by_server else (client, server)
    return RULE.finding(
        severity=severity,
        subject={"flow": command["flow_id"], "side": "server" if by_server else "client", "remark": code},
        title=(f"Sent {done}: {f'server {server}' if by_server else client_title(command)}, {times(len(remarks))}"),
        sentence=(
            f"{sentence_start(sender)} sent {done} to {receiver} {times(len(remarks))}. First: "
            f"{remarks[0]['text'].rstrip('.')}."
        ),
        next_step=next_step,
        proof=proof_of(remarks),
        numbers={
            "flow": command["flow_id"],
            "side": "server" if by_server else "client",
            "remark": code,
            "count": len(remarks),
            "breaches": len(remarks),
            "where": server,
            "clients": [client_numbers(command)],
        },
    )


_CODES = "code IN (" + ", ".join(f"'{code}'" for code in _KINDS) + ")"

RULE = Rule(
    code="MON108",
    question="differs",
    name="framing",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": COMMAND_COLUMNS,
        "expert_infos": (*REMARK_COLUMNS, "direction", "severity", "code", "text"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "expert_infos": f"{_CODES} AND flow_id IS NOT NULL",
        # The last command of a connection knows most of it.
        "mongo_commands": "(flow_id, ts) IN (SELECT (flow_id, max(ts)) FROM mongo_commands WHERE flow_id IN "
        f"(SELECT flow_id FROM expert_infos WHERE {_CODES}) GROUP BY flow_id)",
    },
    suspects="SELECT flow_id FROM r_expert_infos SEMI JOIN r_mongo_commands USING (flow_id)",
)
