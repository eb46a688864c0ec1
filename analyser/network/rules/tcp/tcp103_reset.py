"""TCP103 reset-with-requests: a connection was reset while requests waited for their responses.

Finds
    Connections that ended with an RST although requests had no response yet.

Why it matters
    The client cannot know whether these requests were carried out. It will connect again and may send them twice.

How it decides
    The first RST of the flow, and requests without a response (requests_least). A client that resets while only long
    polls wait (a Fetch) or questions that change nothing (Metadata, Heartbeat) is shutting down: several clients do so,
    and it is no finding. A reset by the client with other requests waiting is info, one by the server a warning if more
    than these waited, else info. Requests that the server's TCP confirmed had arrived.
    Nothing is said where the answers may be missing from the capture: of the server there is no packet but the reset,
    or its client confirmed more of its bytes than were captured.

False alarms
    An answer that the capture lost: CAP101 tells about gaps. A load balancer that resets idle connections.

What it cannot tell
    Whether the requests were carried out. Whether the peer itself sent the reset: NET101 looks at its hop limit.

References
    RFC 9293, 3.5.2, reset generation.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.delivery import REQUEST_COLUMNS, counted, request_delivered, which_side
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import (
    FLOW_COLUMNS,
    client_names,
    endpoints_text,
    flow_numbers,
    named_by,
)
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

# What a client need not wait for when it ends: long polls, and questions that change nothing at the server.
_LONG_POLLS = frozenset({"Fetch", "ShareFetch", "hello", "getMore"})
_QUESTIONS = frozenset({
    "ApiVersions", "DescribeCluster", "DescribeConfigs", "DescribeGroups", "FindCoordinator", "Heartbeat",
    "ListGroups", "ListOffsets", "Metadata", "OffsetFetch", "OffsetForLeaderEpoch",
})  # fmt: skip
_MAY_STAY_OPEN = _LONG_POLLS | _QUESTIONS


def detect(frames: Frames, *, requests_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this flow, from `requests_least` waiting requests on."""
    marks, waiting = rows_of(frames["expert_infos"]), rows_of(frames["exchanges"])
    names = client_names(rows_of(frames["messages"]))
    for flow in rows_of(frames["flows"]):
        name = names.get(flow["flow_id"])
        by_server = flow["reset_by"] == "server"
        lost = [e for e in waiting if by_server or e["operation"] not in _MAY_STAY_OPEN]
        if not marks or len(lost) < requests_least or not lost or _may_be_answered(flow):
            continue
        states = [request_delivered(e, flow["acked_by_server"]) for e in lost]
        harmless = all(e["operation"] in _MAY_STAY_OPEN for e in lost)
        operations = ", ".join(sorted({e["operation"] or "?" for e in lost}))
        yield RULE.finding(
            severity="warning" if by_server and not harmless else "info",
            confidence="medium" if flow["gap_bytes"] else "high",
            subject={"flow": flow["flow_id"]},
            sentence=(
                f"The {flow['reset_by']} reset the connection between {endpoints_text(flow, name)} while "
                f"{count(len(lost), 'request')} had no response ({operations}). Whether "
                f"{'it was' if len(lost) == 1 else 'they were'} carried out is not known.{which_side(states)}"
            ),
            next_step=f"Look into the log of the {flow['reset_by']} at that time, and at load balancers on the way.",
            proof=Proof(
                min(e["ts"] for e in lost),
                max(m["ts"] for m in (*marks, *lost) if m["ts"] is not None),
                [
                    *evidence_of(lost, ("request_file", "request_packet", "request_message_id")),
                    *evidence_of(marks),
                ],
            ),
            numbers={
                **flow_numbers(flow, name),
                "reset_by": flow["reset_by"],
                "waiting_requests": len(lost),
                "requests_refused": len(lost),
                "gap_bytes": flow["gap_bytes"],
                **counted(states),
            },
        )


def _may_be_answered(flow: Row) -> bool:
    """The capture lacks bytes of the server, or all of them, other than by gaps that it knows of."""
    return flow["ts_last_from_server"] is None or (flow["acked_by_client"] or 0) > (flow["bytes_to_client"] or 0)


_RESET = "reset_by IS NOT NULL AND protocol IS NOT NULL AND duplicate_of IS NULL"

RULE = Rule(
    code="TCP103",
    question="ended",
    name="reset-with-requests",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            *FLOW_COLUMNS, "reset_by", "gap_bytes", "acked_by_server", "acked_by_client", "bytes_to_client",
            "ts_last_from_server",
        ),
        "expert_infos": REMARK_COLUMNS,
        "messages": ("ts", "client_id"),
        "exchanges": ("ts", "operation", "request_file", "request_packet", *REQUEST_COLUMNS),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "flows": _RESET,
        "messages": named_by("messages", _RESET),
        "expert_infos": "code = 'reset'",
        "exchanges": f"status = 'unanswered' AND flow_id IN (SELECT flow_id FROM flows WHERE {_RESET})",
    },
    suspects="SELECT flow_id FROM r_flows SEMI JOIN r_exchanges USING (flow_id)",
)  # fmt: skip
