"""CAP103 snaplen-cuts: segments were cut by the snap length of the capture.

Finds
    Connections with segments of which only the first bytes were captured.

Why it matters
    The cut bytes are gaps: messages that reach into them are lost to every rule, and large messages always do.

How it decides
    Any segment whose headers say more payload than was captured; all in one finding for the whole capture.

False alarms
    None known. Segments whose payload is whole although the packet was longer on the wire (padding, a checksum) are not
    counted.

References
    tcpdump -s, dumpcap -s; 0 captures whole packets.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, capture_finding, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, segments_least: int = 1) -> Iterator[Finding]:
    """At most one finding, for the flows with at least `segments_least` cut segments."""
    marks = rows_of(frames["expert_infos"])
    named = {m["flow_id"] for m in marks}
    flows = [f for f in rows_of(frames["flows"]) if f["truncated_packets"] >= segments_least and f["flow_id"] in named]
    if not flows:
        return
    worst = sorted(flows, key=lambda f: (-f["truncated_packets"], f["flow_id"]))
    cut = {f["flow_id"] for f in worst}
    proof = [m for m in marks if m["flow_id"] in cut]
    segments = sum(f["truncated_packets"] for f in worst)
    sentence = (
        f"{count(segments, 'segment')} of {count(len(worst), 'connection')} were cut by the snap length; most "
        f"({worst[0]['truncated_packets']:,}) between {endpoints_text(worst[0])}. Messages that reach into the cut "
        "bytes are lost."
    )
    next_step = "Capture whole packets (tcpdump -s 0)."
    title = f"{count(segments, 'segment')} of {count(len(worst), 'connection')} cut by the snap length"
    counted = {"segments": "truncated_packets"}
    yield capture_finding(RULE, worst, proof, counted, sentence, next_step, title=title, segments=segments)


RULE = Rule(
    code="CAP103",
    question="capture",
    name="snaplen-cuts",
    severity="warning",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "truncated_packets"),
        "expert_infos": (*REMARK_COLUMNS, "flow_id"),
    },
    partition_by=(),
    signs={"flows": "bool_or(truncated_packets > 0)"},
    detect=detect,
    rows={"flows": "truncated_packets > 0", "expert_infos": "code = 'cut_segment' AND ts IS NOT NULL"},
)
