"""CAP101 gaps: stream bytes are missing from the capture.

Finds
    Connections of which bytes were sent, as the sequence numbers show, but are not in the capture.

Why it matters
    Messages inside a gap are lost to every rule. What was seen is sure, but "no response", "no commit" or "no seek"
    near a gap means nothing.

How it decides
    Any flow with missing bytes; all of them in one finding for the whole capture. The remark `gap` of each flow gives
    the packet at which the first gap was noticed. Bytes that the receiver's TCP never ACKed are none of these: it did
    not get them either, so they were lost on the way, and had not been sent again when the capture ended.

False alarms
    None known: a sequence number that jumps has bytes before it. A capture that starts in the middle of a connection
    has no gap by that alone.

What it cannot tell
    Bytes that the capture lost just before its end, together with their ACK, look like bytes that never arrived.

References
    RFC 9293, sequence numbers. tcpdump's "packets dropped by kernel"; mirror ports drop under load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.facts.gaps import BYTES_MISSING
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, capture_finding, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, gap_bytes_least: int = 1) -> Iterator[Finding]:
    """At most one finding, for the flows that miss at least `gap_bytes_least` bytes."""
    flows = rows_of(frames["flows"])
    marks = rows_of(frames["expert_infos"])
    acked = {f["flow_id"]: f for f in flows}
    arrived: list[Row] = []
    lost: Counter[str] = Counter()
    for mark in marks:
        if _never_arrived(mark, acked.get(mark["flow_id"], {})):
            lost[mark["flow_id"]] += _size(mark)
        else:
            arrived.append(mark)
    captured = [{**f, "gap_bytes": (f["gap_bytes"] or 0) - lost[f["flow_id"]]} for f in flows]
    gappy = {f["flow_id"]: f for f in captured if f["gap_bytes"] >= gap_bytes_least}
    proof = [m for m in arrived if m["flow_id"] in gappy]
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


def _span(mark: Row) -> tuple[int, int] | None:
    """The first and the last byte of a gap."""
    first, _, last = (mark["span"] or "").partition("-")
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None


def _size(mark: Row) -> int:
    span = _span(mark)
    return 0 if span is None else span[1] - span[0] + 1


def _never_arrived(mark: Row, flow: Row) -> bool:
    """The receiver's last ACK stands before it."""
    span, acked = _span(mark), flow.get(_ACKED.get(mark["direction"], ""))
    return span is not None and acked is not None and span[0] >= acked


# By direction of a gap: the column of flows that says up to where it was ACKed.
_ACKED = {"client_to_server": "acked_by_server", "server_to_client": "acked_by_client"}
_NEVER_ARRIVED = f"""(flow_id, direction, span) IN (
    SELECT (flow_id, direction, span) FROM expert_infos JOIN flows USING (flow_id)
    WHERE {BYTES_MISSING} AND try_cast(split_part(span, '-', 1) AS BIGINT)
        >= CASE direction WHEN 'client_to_server' THEN acked_by_server ELSE acked_by_client END)"""
RULE = Rule(
    code="CAP101",
    question="capture",
    name="gaps",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            *FLOW_COLUMNS, "gap_bytes", "bytes_to_server", "bytes_to_client", "acked_by_server", "acked_by_client",
        ),
        "expert_infos": (*REMARK_COLUMNS, "flow_id", "direction", "span"),
    },
    partition_by=(),
    signs={"flows": "bool_or(gap_bytes > 0)"},
    detect=detect,
    rows={
        "flows": "gap_bytes > 0 AND duplicate_of IS NULL",
        # The first of each flow, and all that never arrived.
        "expert_infos": f"{BYTES_MISSING} AND ((flow_id, ts) IN "
        f"(SELECT (flow_id, min(ts)) FROM expert_infos WHERE {BYTES_MISSING} GROUP BY flow_id) OR {_NEVER_ARRIVED})",
    },
)  # fmt: skip
