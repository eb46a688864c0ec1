"""TCP109 slow-to-come: requests take long from their first to their last packet, and the server could take them.

Finds
    Clients whose requests of several packets come slowly, while others send as much in a fraction of the time.
    Question: who waits for whom.

Why it matters
    The latency of a request counts from its last packet, so the server looks well and the application waits. A link
    with little bandwidth upwards (radio, VPN, a shaped or shared line) does so, a host without processor time, or a
    program that writes a request bit by bit.

How it decides
    Of one client and operation, at least 5 requests (requests_least) of more than one packet. Half of them take 100 ms
    (ms_least) or more from their first to their last packet. The fact `request_arrivals` gives bounds of that time: of
    the slow ones the lower, of the others the upper is used. Other addresses sent as many requests of at least half the
    size in a fifth (ratio) of that time. It is more than three times (turns_above) what the distance explains: round
    trips of a TCP that begins with ten segments and doubles them each time. Requests during which the receive window of
    the server was full or closed (TCP102, TCP106), a delayed acknowledgement was waited for (TCP105) or bytes were sent
    again (TCP101) are at most three tenths of them (held_most), so neither the server nor a loss explains it.

False alarms
    A program that begins to send a request before it has made all of it, on purpose.

What it cannot tell
    Whether the link or the program is slow. Where the capture has little else in it, nothing bounds the time of a
    first packet; without the first exchange of a connection nobody knows the distance.

References
    RFC 6928 (initial window of ten segments), RFC 5681 (slow start, also after a pause).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text, who_is
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import MAX_NAME
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule

# What TCP sends before the first acknowledgement: ten segments of Ethernet.
_FIRST_BYTES = 14_600


def detect(
    frames: Frames,
    *,
    requests_least: int = 5,
    ms_least: float = 100.0,
    ratio: float = 5.0,
    turns_above: float = 3.0,
    held_most: float = 0.3,
) -> Iterator[Finding]:
    """One finding for each client and operation of this protocol whose requests come slowly."""
    rows = [row for row in rows_of(frames["request_arrivals"]) if row["requests"] >= requests_least]
    compared(len(rows) ** 2)
    for row in rows:
        least_ms = row["median_least_ms"]
        held = row["held_by_window"] + row["sent_again"]
        if least_ms < ms_least or held > held_most * row["requests"] or row["round_trip_ms"] is None:
            continue
        if least_ms <= turns_above * _turns(row["median_bytes"]) * row["round_trip_ms"]:
            continue
        likes = [
            other
            for other in rows
            if other["client_address"] != row["client_address"]
            and other["median_bytes"] >= row["median_bytes"] / 2
            and other["median_most_ms"] is not None
            and other["median_most_ms"] * ratio <= least_ms
        ]
        if likes:
            yield _finding(row, likes)


def _turns(size: float) -> int:
    """Round trips until so many bytes are on their way, where the first one carries ten segments."""
    return 1 + math.ceil(math.log2(size / _FIRST_BYTES + 1))


def _finding(row: Row, likes: Sequence[Row]) -> Finding:
    name, address, server = row["client_id"], row["client_address"], server_text(row)
    who = who_is(name, address, most=MAX_NAME)
    operation, least_ms = printable(row["operation"] or "?", MAX_NAME), row["median_least_ms"]
    pace = row["median_bytes"] / least_ms
    others = names_text([who_is(other["client_id"], other["client_address"], most=MAX_NAME) for other in likes], 3)
    usual_ms = max(other["median_most_ms"] for other in likes)
    answered = "" if row["median_latency_ms"] is None else (
        f" The response came {ms_text(row['median_latency_ms'])} after the last packet (median)."
    )  # fmt: skip
    again = "no byte was sent again" if not row["sent_again"] else (
        f"bytes were sent again in {row['sent_again']} of them only"
    )  # fmt: skip
    return RULE.finding(
        subject={"server": server_of(row), "client_address": address, "client_id": name, "operation": row["operation"]},
        title=f"{operation} requests come slowly: {who_title(name, address)} to {server}",
        sentence=(
            f"{sentence_start(who)}: {count(row['requests'], f'{operation} request')} of {row['median_bytes']:,.0f} "
            f"bytes to {server} took {ms_text(least_ms)} or more from the first packet to the last (medians), "
            f"{pace:,.0f} kB/s at most. As large ones of {others} took {ms_text(usual_ms)} at most. The server had "
            f"room for them and {again}: the link of the client is slow, or its program writes slowly.{answered}"
        ),
        next_step=(
            f"Look at {address or 'the client'}, not at the server: bandwidth of its link upwards (radio, VPN, "
            "shaping, who else sends there), processor time, and whether the program writes a request at once."
        ),
        proof=Proof(
            row["ts"],
            row["ts_last"],
            (
                Evidence(row["file"], row["packet"], row["message_id"]),
                Evidence(row["last_file"], row["last_packet"], row["last_message_id"]),
            ),
        ),
        numbers={
            "server": server_of(row),
            "address": address,
            "operation": row["operation"],
            "requests": row["requests"],
            "median_bytes": row["median_bytes"],
            "median_least_ms": round(least_ms, 3),
            "others_most_ms": round(usual_ms, 3),
            "kb_per_s": round(pace, 1),
            "wasted_ms": round((least_ms - usual_ms) * row["requests"], 3),
            "clients": [{"address": address, "client_id": name}],
        },
    )


RULE = Rule(
    code="TCP109",
    question="waiting",
    name="slow-to-come",
    severity="warning",
    confidence="medium",
    reads={
        "request_arrivals": (
            "ts", "ts_last", "server_address", "server_port", "client_address", "client_id", "operation", "requests",
            "median_bytes", "median_least_ms", "median_most_ms", "held_by_window", "sent_again", "round_trip_ms",
            "median_latency_ms", "message_id", "file", "packet", "last_message_id", "last_file", "last_packet",
        ),
    },
    signs={
        "messages": "count(*) FILTER (packet_first < packet_last AND direction = 'client_to_server' "
        "AND length_bytes > 1460) >= 5"
    },
    partition_by=("protocol",),
    detect=detect,
    rows={"request_arrivals": "requests >= 5"},
    suspects="SELECT protocol FROM r_request_arrivals WHERE median_least_ms >= 100",
)  # fmt: skip
