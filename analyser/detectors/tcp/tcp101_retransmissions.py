"""TCP101 retransmissions: the network loses packets of a connection.

Finds
    Flows of which many segments were sent more than once, with the exchanges that waited meanwhile.

Why it matters
    A lost segment costs at least 200 ms, often more. A broker that is slow only because the network loses packets must
    not be tuned.

How it decides
    More than 1 % of the segments with data (share_above) and more than 20 (segments_above) were sent again. Copies of
    packets and keep-alive probes do not count, nor do segments whose receiver reported that they had arrived before
    (D-SACK): they were sent again too early, or an overloaded host was late with its acknowledgement. An exchange was
    delayed when a retransmission lies between its request and its response.

False alarms
    A capture that lost many packets itself is told by CAP101; what it lost cannot be counted here. Not found: a
    loss below its thresholds; of the lab's incidents (docs/lab.md) it names 2 of 3.

References
    RFC 2883, D-SACK; RFC 6298 and RFC 8985, retransmission; Linux waits at least 200 ms (TCP_RTO_MIN).
"""

from __future__ import annotations

from collections.abc import Iterator

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.flow_rows import FLOW_COLUMNS, MOST_NAMED, endpoints_text, flow_numbers
from analyser.detectors.frame_rows import rows_of
from analyser.detectors.proof import REMARK_COLUMNS, proof_of
from analyser.words import count


def detect(frames: Frames, *, share_above: float = 0.01, segments_above: int = 20) -> Iterator[Finding]:
    """At most one finding for this flow: above `share_above` of its segments, and more than `segments_above`."""
    marks, delayed = rows_of(frames["expert_infos"]), rows_of(frames["exchanges"])
    for flow in rows_of(frames["flows"]):
        sent, arrived = flow["data_segments"], flow["spurious_retransmissions"] or 0
        again = flow["retransmitted_segments"] - arrived
        if not marks or again <= segments_above or again <= share_above * sent:
            continue
        slowest = max(delayed, key=lambda e: (e["latency_ms"] or 0, e["exchange_id"]), default=None)
        needless = f" {count(arrived, 'segment')} more had arrived and did not have to be." if arrived else ""
        waited = ""
        if slowest is not None:
            longest = f"{slowest['latency_ms'] or 0:.0f} ms ({slowest['operation'] or '?'})"
            waited = f" {count(len(delayed), 'exchange')} waited meanwhile, the longest {longest}."
        yield DETECTOR.finding(
            subject={"flow": flow["flow_id"]},
            sentence=(
                f"Between {endpoints_text(flow)} {again:,} of {sent:,} segments ({again / max(sent, 1):.1%}) were sent "
                f"again: the network loses packets.{needless}{waited}"
            ),
            next_step="Look at the network between the two (links, mirrors, overloaded hosts), not at the broker.",
            proof=proof_of(marks),
            numbers={
                **flow_numbers(flow),
                "retransmitted_segments": again,
                "spurious_retransmissions": arrived,
                "retransmitted_bytes": flow["retransmitted_bytes"],
                "data_segments": sent,
                "delayed_exchanges": [e["exchange_id"] for e in delayed[:MOST_NAMED]],
                "delayed_exchanges_count": len(delayed),
            },
        )


_AGAIN = "(retransmitted_segments - coalesce(spurious_retransmissions, 0))"
_SUSPECT = f"{_AGAIN} > 20 AND {_AGAIN} > 0.01 * data_segments AND duplicate_of IS NULL"

DETECTOR = Detector(
    code="TCP101",
    name="retransmissions",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            *FLOW_COLUMNS,
            "data_segments",
            "retransmitted_segments",
            "spurious_retransmissions",
            "retransmitted_bytes",
        ),
        "expert_infos": REMARK_COLUMNS,
        "exchanges": ("ts", "exchange_id", "operation", "latency_ms"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "flows": _SUSPECT,
        "expert_infos": f"code = 'retransmission' AND flow_id IN (SELECT flow_id FROM flows WHERE {_SUSPECT})",
        "exchanges": "exchange_id IN (SELECT e.exchange_id FROM exchanges e JOIN expert_infos x USING (flow_id) "
        "WHERE x.code = 'retransmission' AND x.ts BETWEEN e.ts AND e.ts_response "
        f"AND flow_id IN (SELECT flow_id FROM flows WHERE {_SUSPECT}))",
    },
    suspects="SELECT flow_id FROM r_flows",
)
