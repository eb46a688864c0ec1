"""CAP102 one-sided-flows: of some connections only one direction was captured.

Finds
    Identified connections with messages of one side only, whose handshake was not seen.

Why it matters
    A request without its response says neither whether it was accepted nor when; a response alone cannot be decoded.
    Rules that need both sides stay silent on these flows. From requests alone KAF112, KAF128 and KAF309 still speak.

How it decides
    No stream byte in one direction, no other packet from there (an ACK of the other side's bytes shows that its
    direction is captured: it had nothing to say, as an MQTT server to a client that publishes with QoS 0), and not both
    SYNs in the capture, nor a FIN or RST of the silent side. All such flows are one finding for the whole capture.

False alarms
    A connection of few packets, of which no ACK fell into the capture.

References
    Typical causes: a mirror port that mirrors one direction, asymmetric routing, a capture filter on one address.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.facts.gaps import IS_ONE_SIDED
from wirewitness.analyser.engine.rules.evidence import proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, MOST_NAMED, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

_ONE_SIDED_SQL = f"protocol IS NOT NULL AND duplicate_of IS NULL AND {IS_ONE_SIDED}"


def detect(frames: Frames, *, flows_least: int = 1) -> Iterator[Finding]:
    """At most one finding, from `flows_least` flows on."""
    flows = rows_of(frames["flows"])
    messages = rows_of(frames["messages"])
    named = {m["flow_id"] for m in messages}
    one_sided = [f for f in flows if f["flow_id"] in named]
    if not one_sided or len(one_sided) < flows_least:
        return
    no_answer = [f for f in one_sided if not f["bytes_to_client"]]
    yield RULE.finding(
        provisional=True,
        subject={"capture": "all"},
        title=f"Only one direction of {count(len(one_sided), 'connection')} is in the capture",
        sentence=(
            f"Of {count(len(one_sided), 'connection')} only one direction is in the capture ({len(no_answer)} without "
            f"any byte from the server), for example between {endpoints_text(one_sided[0])}. Whether these "
            "requests were accepted is not known."
        ),
        next_step="Capture both directions: check the mirror port, the routing, and the capture filter.",
        proof=proof_of(messages, ("file", "packet_last", "message_id")),
        numbers={
            "flows": len(one_sided),
            "without_server_bytes": len(no_answer),
            "examples": [{"flow_id": f["flow_id"], "endpoints": endpoints_text(f)} for f in one_sided[:MOST_NAMED]],
        },
    )


RULE = Rule(
    code="CAP102",
    question="capture",
    name="one-sided-flows",
    severity="warning",
    confidence="medium",
    reads={
        "flows": (*FLOW_COLUMNS, "bytes_to_server", "bytes_to_client"),
        "messages": ("ts", "file", "packet_last", "message_id", "flow_id"),
    },
    partition_by=(),
    signs={"flows": f"bool_or({_ONE_SIDED_SQL})"},
    detect=detect,
    rows={
        "flows": _ONE_SIDED_SQL,
        "messages": "message_id IN (SELECT arg_min(message_id, (ts, message_id)) FROM messages "
        f"WHERE flow_id IN (SELECT flow_id FROM flows WHERE {_ONE_SIDED_SQL}) GROUP BY flow_id)",
    },
)
