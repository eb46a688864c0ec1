"""TCP101 retransmissions: the network loses packets of a connection.

Finds
    Connections of which many segments were sent more than once, with the exchanges that waited meanwhile.

Why it matters
    A lost segment costs at least 200 ms, often more. A broker that is slow only because the network loses packets must
    not be tuned.

How it decides
    More than 1 % of the segments with data (share_above) and more than 20 (segments_above) were sent again. Copies of
    packets and keep-alive probes do not count, nor do segments whose receiver reported that they had arrived before
    (D-SACK): they were sent again too early, or an overloaded host was late with its acknowledgement. A connection on
    which such reports were seen proves by their absence that the others were lost, so that 0.3 % (proven_above) is
    enough there: at 50 ms round trip time that holds a connection to some 0.6 megabytes per second. An exchange was
    delayed when a retransmission lies between its request and its response. Nothing is said of a connection of which
    the capture has one direction: without the receiver's acknowledgements, what was lost is not told from what a loop,
    a mirror of two ports or a late acknowledgement made twice.

False alarms
    A capture that lost many packets itself is told by CAP101; what it lost cannot be counted here. Not found: a
    loss below its thresholds.

What it cannot tell
    Where on the way packets are lost.

References
    RFC 2883, D-SACK; RFC 6298 and RFC 8985, retransmission; Linux waits at least 200 ms (TCP_RTO_MIN). RFC 3649
    section 2: what a connection gets through falls with the square root of the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import (
    FLOW_COLUMNS,
    MOST_NAMED,
    client_names,
    endpoints_text,
    flow_numbers,
    named_by,
)
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule


def detect(
    frames: Frames, *, share_above: float = 0.01, proven_above: float = 0.003, segments_above: int = 20
) -> Iterator[Finding]:
    """At most one finding for this flow: above a share of its segments, and more than `segments_above`."""
    marks, delayed = rows_of(frames["expert_infos"]), rows_of(frames["exchanges"])
    names = client_names(rows_of(frames["messages"]))
    for flow in rows_of(frames["flows"]):
        name = names.get(flow["flow_id"])
        sent, arrived = flow["data_segments"], flow["spurious_retransmissions"] or 0
        again = flow["retransmitted_segments"] - arrived
        share = proven_above if arrived else share_above
        if not marks or again <= segments_above or again <= share * sent:
            continue
        slowest = max(delayed, key=lambda e: (e["latency_ms"] or 0, e["exchange_id"]), default=None)
        needless = f" {count(arrived, 'segment')} more had arrived and did not have to be." if arrived else ""
        waited = ""
        if slowest is not None:
            longest = f"{slowest['latency_ms'] or 0:.0f} ms ({slowest['operation'] or '?'})"
            waited = f" {count(len(delayed), 'exchange')} waited meanwhile, the longest {longest}."
        yield RULE.finding(
            subject={"flow": flow["flow_id"]},
            title=(
                f"{again:,} of {sent:,} segments retransmitted: {who_title(name, flow['client_address'])} and "
                f"{server_text(flow)}"
            ),
            sentence=(
                f"Between {endpoints_text(flow, name)} {again:,} of {sent:,} segments ({again / max(sent, 1):.1%}) "
                f"were sent again: the network loses packets.{needless}{waited}"
            ),
            next_step="Look at the network between the two (links, mirrors, overloaded hosts), not at the broker.",
            proof=proof_of(marks),
            numbers={
                **flow_numbers(flow, name),
                "retransmitted_segments": again,
                "spurious_retransmissions": arrived,
                "retransmitted_bytes": flow["retransmitted_bytes"],
                "bytes": flow["retransmitted_bytes"],
                "data_segments": sent,
                "delayed_exchanges": [e["exchange_id"] for e in delayed[:MOST_NAMED]],
                "delayed_exchanges_count": len(delayed),
            },
        )


_AGAIN = "(retransmitted_segments - coalesce(spurious_retransmissions, 0))"
_BOTH_WAYS = "ts_last_from_server IS NOT NULL AND ts_last_from_client IS NOT NULL"
_SUSPECT = f"{_AGAIN} > 20 AND {_AGAIN} > 0.003 * data_segments AND duplicate_of IS NULL AND {_BOTH_WAYS}"

RULE = Rule(
    code="TCP101",
    question="waiting",
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
        "messages": ("ts", "client_id"),
    },
    partition_by=("flow_id",),
    signs={"flows": f"bool_or({_SUSPECT})"},
    detect=detect,
    rows={
        "flows": _SUSPECT,
        "messages": named_by("messages", _SUSPECT),
        "expert_infos": f"code = 'retransmission' AND flow_id IN (SELECT flow_id FROM flows WHERE {_SUSPECT})",
        # The first retransmission since its request came before its response.
        "exchanges": "exchange_id IN (SELECT e.exchange_id FROM exchanges AS e ASOF JOIN (SELECT flow_id, ts FROM "
        f"expert_infos WHERE code = 'retransmission' AND flow_id IN (SELECT flow_id FROM flows WHERE {_SUSPECT})) AS x "
        "ON e.flow_id = x.flow_id AND e.ts <= x.ts WHERE x.ts <= e.ts_response)",
    },
    suspects=AnyRow("flows"),
)
