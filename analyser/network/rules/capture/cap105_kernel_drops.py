"""CAP105 kernel-drops: the capturing machine dropped packets.

Finds
    Captures whose own statistics count dropped packets.

Why it matters
    What was dropped was on the wire but is not in the capture: gaps and missing answers may be the capture's fault.

How it decides
    Any drop that an interface statistics block states, per capture file.

False alarms
    Some drivers count packets that the capture filter would have left out.

References
    pcapng, Interface Statistics Block (isb_ifdrop, isb_osdrop). pcap files cannot say it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.titles import short
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


def detect(frames: Frames, *, packets_least: int = 1) -> Iterator[Finding]:
    """One finding for this file, from `packets_least` dropped packets on."""
    for capture in rows_of(frames["captures"]):
        dropped, seen = capture["dropped_packets"], capture["packets"]
        if dropped < packets_least:
            continue
        yield RULE.finding(
            subject={"file": capture["file"]},
            title=f"{count(dropped, 'packet')} dropped while {short(capture['file'])} was captured",
            sentence=(
                f"{count(dropped, 'packet')} were dropped while {capture['file']} was captured "
                f"({dropped / (dropped + seen):.2%} of all). What is missing in it may have been on the wire."
            ),
            next_step="Capture again with a larger buffer (tcpdump -B), a tighter filter, or a shorter snap length.",
            proof=Proof(capture["ts_first"], capture["ts_last"], [Evidence(capture["file"], seen, None)]),
            numbers={"file": capture["file"], "dropped_packets": dropped, "packets": seen},
        )


RULE = Rule(
    code="CAP105",
    question="capture",
    name="kernel-drops",
    severity="warning",
    confidence="high",
    reads={"captures": ("file", "packets", "dropped_packets", "ts_first", "ts_last")},
    partition_by=("file",),
    detect=detect,
    rows={"captures": "dropped_packets > 0 AND packets > 0"},
)
