"""CAP104 doubled-packets: packets are in the capture twice.

Finds
    Connections of which many packets were captured more than once.

Why it matters
    Nothing is lost: copies are told from retransmissions and left out. But packet counts of other tools are too high,
    and they show retransmissions where there are none.

How it decides
    Copies have the same header fields and the same IP identification within 3 s; without an identification, data
    that comes again within 5 ms. At least 1 % of the packets (share_least) and 10 copies (copies_least) over all
    flows.

False alarms
    A sender that gives all packets one IP identification other than 0 and sends again within 3 s.

References
    The "any" interface of Linux; mirror ports that copy both the way in and the way out of a switch.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, capture_finding, endpoints_text
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, share_least: float = 0.01, copies_least: int = 10) -> Iterator[Finding]:
    """At most one finding: from `copies_least` copies on that are `share_least` of the packets of their flows."""
    flows = rows_of(frames["flows"])
    doubled = [f for f in flows if f["duplicate_packets"]]
    copies, packets = sum(f["duplicate_packets"] for f in doubled), sum(f["packets"] or 0 for f in flows)
    proof = rows_of(frames["expert_infos"])
    if not proof or copies < copies_least or copies < share_least * packets:
        return
    worst = sorted(doubled, key=lambda f: (-f["duplicate_packets"], f["flow_id"]))
    sentence = (
        f"{count(copies, 'packet')} of {packets:,} are captured copies of others, in "
        f"{count(len(doubled), 'connection')}, most ({worst[0]['duplicate_packets']:,}) between "
        f"{endpoints_text(worst[0])}. They are left out and are no retransmissions."
    )
    next_step = "Nothing. To avoid them, capture on one interface instead of any, or mirror one direction per port."
    title = f"{copies:,} of {count(packets, 'packet')} are captured copies of others"
    counted = {"copies": "duplicate_packets"}
    yield capture_finding(RULE, worst, proof, counted, sentence, next_step, title=title, copies=copies, packets=packets)


RULE = Rule(
    code="CAP104",
    question="capture",
    name="doubled-packets",
    severity="info",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "packets", "duplicate_packets"),
        "expert_infos": (*REMARK_COLUMNS, "flow_id"),
    },
    partition_by=(),
    signs={"expert_infos": "bool_or(code = 'copy')"},
    detect=detect,
    rows={
        "flows": "EXISTS (SELECT 1 FROM expert_infos WHERE code = 'copy')",
        "expert_infos": "code = 'copy' AND ts IS NOT NULL",
    },
)
