"""CAP101 gaps: stream bytes are missing from the capture.

Finds
    Connections of which bytes were sent, as the sequence numbers show, but are not in the capture.

Why it matters
    Messages inside a gap are lost to every rule. What was seen is sure, but "no response", "no commit" or "no seek"
    near a gap means nothing.

How it decides
    Any flow with missing bytes; all of them in one finding for the whole capture. The remark `gap` of each flow gives
    the packet at which the first gap was noticed.

False alarms
    None known: a sequence number that jumps has bytes before it. A capture that starts in the middle of a connection
    has no gap by that alone.

References
    RFC 9293, sequence numbers. tcpdump's "packets dropped by kernel"; mirror ports drop under load.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.facts.gaps import BYTES_MISSING
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, capture_finding, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, gap_bytes_least: int = 1) -> Iterator[Finding]:
    """At most one finding, for the flows that miss at least `gap_bytes_least` bytes."""
    flows = rows_of(frames["flows"])
    marks = rows_of(frames["expert_infos"])
    gappy = {f["flow_id"]: f for f in flows if (f["gap_bytes"] or 0) >= gap_bytes_least}
    proof = [m for m in marks if m["flow_id"] in gappy]
    if not proof:
        return
    worst = sorted(gappy.values(), key=lambda f: (-f["gap_bytes"], f["flow_id"]))
    missing = sum(f["gap_bytes"] for f in worst)
    seen = sum((f["bytes_to_server"] or 0) + (f["bytes_to_client"] or 0) for f in worst)
    sentence = (
        f"{count(missing, 'stream byte')} of {count(len(worst), 'connection')} are missing from the capture; "
        f"most ({worst[0]['gap_bytes']:,}) between {endpoints_text(worst[0])}. What was seen is sure; what was not "
        "seen there proves nothing."
    )
    next_step = (
        "Capture again with a larger buffer (tcpdump -B), a tighter filter, or nearer to the broker, if a "
        "conclusion rests on something missing in these connections."
    )
    title = f"{count(missing, 'byte')} missing from the capture, in {count(len(worst), 'connection')}"
    counted = {"gap_bytes": "gap_bytes"}
    yield capture_finding(
        RULE, worst, proof, counted, sentence, next_step, title=title, gap_bytes=missing, seen_bytes=seen
    )


RULE = Rule(
    code="CAP101",
    question="capture",
    name="gaps",
    severity="warning",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "gap_bytes", "bytes_to_server", "bytes_to_client"),
        "expert_infos": (*REMARK_COLUMNS, "flow_id"),
    },
    partition_by=(),
    signs={"flows": "bool_or(gap_bytes > 0)"},
    detect=detect,
    rows={
        "flows": "gap_bytes > 0 AND duplicate_of IS NULL",
        "expert_infos": f"{BYTES_MISSING} AND (flow_id, ts) IN "
        f"(SELECT (flow_id, min(ts)) FROM expert_infos WHERE {BYTES_MISSING} GROUP BY flow_id)",
    },
)
