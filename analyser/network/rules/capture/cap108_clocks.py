"""CAP108 clocks: times that run backwards, and connections captured at two points.

Finds
    Captures in which the time of packets goes back, and connections that were captured at two points of their way, with
    the latency between the points and the offset of their clocks.

Why it matters
    Latencies and the order of events rest on the times of packets. Of a connection that was captured twice only one
    flow is decoded; the other one tells how long the way between the two points is.

How it decides
    A step back of a second or more (the remark `time_backwards`). Two flows with the same endpoints and initial
    sequence numbers, or overlapping ones, but another encapsulation. Latency is half the difference of the medians of
    both directions, the offset is half their sum.

False alarms
    None known. Files that overlap in time and are read one after another do not count as a step back.

References
    RFC 9293, initial sequence numbers. NTP steps the clock of a capturing machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, MOST_NAMED, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, flows_least: int = 1) -> Iterator[Finding]:
    """One finding for steps of the clock, one for connections seen twice, from `flows_least` of them on."""
    captures = rows_of(frames["captures"])
    steps = rows_of(frames["expert_infos"])
    times = [c[name] for c in captures for name in ("ts_first", "ts_last") if c[name] is not None]
    if steps and times:
        yield RULE.finding(
            subject={"clock": "steps"},
            title=f"The clock of the capture goes back {count(len(steps), 'time')}",
            sentence=(
                f"The time of packets goes back {count(len(steps), 'time')}, first at packet "
                f"{shown(steps[0]['packet'])} of {shown(steps[0]['file'])}. Latencies and orders that span "
                "such a step are wrong."
            ),
            next_step="Trust packet numbers more than times there; keep the clock of the capturing machine steady.",
            proof=Proof(min(times), max(times), (Evidence(s["file"], s["packet"], None) for s in steps)),
            numbers={"steps": len(steps)},
        )
    twice = sorted(rows_of(frames["flows"]), key=lambda f: (f["ts_first"], f["flow_id"]))
    if twice and len(twice) >= flows_least:
        first = next((f for f in twice if f["hop_latency_ms"] is not None), twice[0])
        measured = (
            ""
            if first["hop_latency_ms"] is None
            else (
                f" The way between the points takes {first['hop_latency_ms']:.3f} ms, "
                f"their clocks are {shown(first['clock_offset_ms'], '.3f')} ms apart."
            )
        )
        yield RULE.finding(
            severity="info",
            subject={"points": 2},
            title=f"{count(len(twice), 'connection')} captured at two points",
            sentence=(
                f"{count(len(twice), 'connection was', 'connections were')} captured at two points, for example "
                f"between {endpoints_text(first)} ({first['encapsulation'] or 'without encapsulation'}); each is "
                f"decoded once.{measured}"
            ),
            next_step="Nothing. Packet counts of other tools are too high here.",
            proof=Proof(
                min(f["ts_first"] for f in twice),
                max(f["ts_first"] for f in twice),
                (Evidence(f["file"], f["first_packet"], None) for f in twice),
            ),
            numbers={
                "flows": len(twice),
                "examples": [
                    {name: f[name] for name in ("flow_id", "duplicate_of", "hop_latency_ms", "clock_offset_ms")}
                    for f in twice[:MOST_NAMED]
                ],
            },
        )


RULE = Rule(
    code="CAP108",
    question="capture",
    name="clocks",
    severity="warning",
    confidence="high",
    reads={
        "captures": ("file", "ts_first", "ts_last"),
        "expert_infos": ("ts", "file", "packet"),
        "flows": (
            *FLOW_COLUMNS, "encapsulation",
            "ts_first", "file", "first_packet", "duplicate_of", "hop_latency_ms", "clock_offset_ms",
        ),
    },
    partition_by=(),
    signs={"expert_infos": "bool_or(code = 'time_backwards')", "flows": "count(duplicate_of) > 0"},
    detect=detect,
    rows={
        "captures": "EXISTS (SELECT 1 FROM expert_infos WHERE code = 'time_backwards')",
        "expert_infos": "code = 'time_backwards'",
        # A request log is no second point: it tells nothing of the way.
        "flows": "duplicate_of IS NOT NULL AND identified_by IS DISTINCT FROM 'request log'",
    },
)  # fmt: skip
