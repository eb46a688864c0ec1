"""TCP102 zero-window: a receiver did not read and advertised a zero window.

Finds
    Connections in which one side advertised a zero window: the other had to stop sending.

Why it matters
    The peer is ready and has to wait: an application that does not read its socket (a long poll loop, a full heap, a
    stopped process) slows itself down and blames the other side.

How it decides
    The time from a segment that gives a window of 0 to the next one from that side that gives more, above 100 ms
    (ms_above) in total for one side. Zero is zero whatever the window scale. Segments with SYN or RST do not count.

False alarms
    A client that is paused on purpose (back-pressure) and takes its time. A broker does not read from a client that a
    quota makes wait (KAF304): then this is a part of that incident.

What it cannot tell
    Why the application did not read.

References
    RFC 9293, 3.8.6.1, zero-window probing. KIP-219 (quotas).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import (
    FLOW_COLUMNS,
    client_names,
    endpoints_text,
    flow_numbers,
    named_by,
)
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule


def detect(frames: Frames, *, ms_above: float = 100.0) -> Iterator[Finding]:
    """One finding for each side of this flow whose window was closed for more than `ms_above` in total."""
    marks = rows_of(frames["expert_infos"])
    names = client_names(rows_of(frames["messages"]))
    for flow in rows_of(frames["flows"]):
        name = names.get(flow["flow_id"])
        for side, direction in (("client", "client_to_server"), ("server", "server_to_client")):
            closed_ms = flow[f"{side}_zero_window_ms"] or 0.0
            proof = [m for m in marks if m["direction"] == direction]
            if closed_ms <= ms_above or not proof:
                continue
            yield RULE.finding(
                subject={"flow": flow["flow_id"], "side": side},
                title=(
                    f"Zero window of the {side} for {ms_text(closed_ms)}: "
                    f"{who_title(name, flow['client_address'])} and {server_text(flow)}"
                ),
                sentence=(
                    f"The {side} of the connection between {endpoints_text(flow, name)} advertised a zero window "
                    f"for {ms_text(closed_ms)} in total. It did not read, and the other side had to wait."
                ),
                next_step=f"Look at the {side}: is it busy, paused, or stopped? Network and other side are fine.",
                proof=proof_of(proof),
                numbers={
                    **flow_numbers(flow, name),
                    "side": side,
                    "zero_window_ms": closed_ms,
                    "stood_still_ms": closed_ms,
                    "times": len(proof),
                },
            )


_CLOSED = "(client_zero_window_ms > 100 OR server_zero_window_ms > 100) AND duplicate_of IS NULL"

RULE = Rule(
    code="TCP102",
    question="waiting",
    name="zero-window",
    severity="warning",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "client_zero_window_ms", "server_zero_window_ms"),
        "expert_infos": (*REMARK_COLUMNS, "direction"),
        "messages": ("ts", "client_id"),
    },
    partition_by=("flow_id",),
    signs={"flows": f"bool_or({_CLOSED})"},
    detect=detect,
    rows={
        "flows": _CLOSED,
        "messages": named_by("messages", _CLOSED),
        "expert_infos": "code = 'zero_window'",
    },
    suspects=AnyRow("flows"),
)
