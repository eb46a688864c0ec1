"""CAP107 undecoded-messages: messages whose bodies this version cannot decode.

Finds
    Messages that were framed and counted while their body stayed bytes: an unknown API key or opcode, a version newer
    than the known ones, or one that is not decoded yet.

Why it matters
    Rules do not see what is inside. A tool that drops such messages silently lets traffic of newer clients vanish.

How it decides
    Messages that the dissector itself marked as undecoded, counted per protocol, operation and version. Damaged
    messages are not counted here.

False alarms
    Bytes of another protocol that pass for a frame after a gap.

References
    Kafka message definitions: API keys grow with every release.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.titles import short
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, messages_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this protocol, operation and version, from `messages_least` messages on."""
    messages = rows_of(frames["messages"])
    if not messages or len(messages) < messages_least:
        return
    key = {name: first_value(frames["messages"], name) for name in ("protocol", "operation", "version")}
    clients = sorted({m["client_id"] for m in messages if m["client_id"]})
    flows = {m["flow_id"] for m in messages}
    yield RULE.finding(
        subject=key,
        title=(
            f"{count(len(messages), 'message')} {short(key['operation'])} version {short(key['version'])} "
            f"({short(key['protocol'])}) not decoded"
        ),
        sentence=(
            f"{count(len(messages), 'message')} {key['operation'] or '?'} version {key['version'] or '?'} "
            f"({key['protocol'] or '?'}) in {count(len(flows), 'connection')} stayed undecoded: {messages[0]['error']}."
        ),
        next_step="Nothing, unless the answer is inside these messages; a newer wirewitness may decode them.",
        proof=proof_of(messages, ("file", "packet_last", "message_id")),
        numbers={**key, "messages": len(messages), "flows": len(flows), "client_ids": clients[:20]},
    )


RULE = Rule(
    code="CAP107",
    question="capture",
    name="undecoded-messages",
    severity="info",
    confidence="high",
    reads={"messages": ("ts", "file", "packet_last", "message_id", "flow_id", "client_id", "error")},
    signs={"expert_infos": "bool_or(\"group\" = 'undecoded')"},
    asks=("expert_infos",),
    partition_by=("protocol", "operation", "version"),
    detect=detect,
    rows={"messages": "error IN (SELECT text FROM expert_infos WHERE \"group\" = 'undecoded')"},
)
