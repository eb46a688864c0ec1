"""TCP103 reset-with-requests: connections were reset while requests waited for their responses.

Finds
    Connections that ended with an RST although requests had no response yet (connection_ends: what was pending).

Why it matters
    The sender cannot know whether these requests were carried out. It will connect again and may send them twice.

How it decides
    The first RST of the flow, and requests without a response (requests_least). One finding for each client, server,
    side that reset and operation, with counts; one for all clients where a server resets connections of at least 3
    of them (clients_least) within 2 s (together_s): it was stopped, or it crashed. Requests whose response is not due
    (exchanges.answer_due) are none that wait: a client that resets while only long polls wait (a Fetch), or within 5 s
    of questions that change nothing (Metadata, Heartbeat), is shutting down. A reset by the client with other requests
    waiting is info, one by the server a warning if more than these waited of the client, else info.
    Whether a request arrived is judged by the ACKs of the side that it went to: the server for requests of the client,
    the client for messages of the server (a PUBLISH). A request that was not sent whole never arrived.
    Nothing is said where the answers may be missing from the capture: of the side that owes them there is no packet but
    the reset, or the other side ACKed more of its bytes than were captured. Where bytes are missing it is info. A
    server that answers in another protocol (HTTP, TLS) is left to TLS106.

False alarms
    An answer that the capture lost: CAP101 tells about gaps. A load balancer that resets idle connections.

What it cannot tell
    Whether the requests were carried out. Whether the peer itself sent the reset: NET101 looks at its hop limit.

References
    RFC 9293, 3.5.2, reset generation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import client_endpoint_text, server_of, server_text, who_is
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, seconds_text
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.delivery import (
    OTHER,
    REQUEST_COLUMNS,
    STREAM_COLUMNS,
    asker,
    counted,
    sent_and_acked,
    which_side,
)
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import FLOW_COLUMNS, MAX_NAME, MOST_NAMED, client_names, named_by
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.dissectors.registry import dissector_of


class _Reset(NamedTuple):
    """One connection that was reset, and the requests that waited on it."""

    flow: Row
    name: str | None
    waiting: Sequence[Row]
    marks: Sequence[Row]

    @property
    def operations(self) -> Counter[str]:
        return Counter(row["operation"] or "?" for row in self.waiting)

    @property
    def client(self) -> tuple[object, object]:
        """Who it is, as far as it is known."""
        return self.flow["client_address"], self.name

    @property
    def key(self) -> tuple[object, ...]:
        """Client, server, who reset, who asked, and what most of the requests are."""
        flow, operation = self.flow, min(self.operations.items(), key=lambda one: (-one[1], one[0]))[0]
        return (
            *self.client,
            flow["server_address"],
            flow["server_port"],
            flow["reset_by"],
            asker(self.waiting[0]),
            operation,
        )

    @property
    def at_ns(self) -> int:
        """When it was reset."""
        return min((mark["ts"] for mark in self.marks if mark["ts"] is not None), default=0)


def detect(
    frames: Frames, *, requests_least: int = 1, clients_least: int = 3, together_s: float = 2.0
) -> Iterator[Finding]:
    """One finding for each client, server and operation, from `requests_least` waiting requests of a flow on.

    A server that resets connections of `clients_least` clients within `together_s` gets one for all of them.
    """
    exchanges = rows_of(frames["exchanges"])
    names = client_names(exchanges)
    waiting, marks = (
        _by_flow([e for e in exchanges if e["status"] == "unanswered"]),
        _by_flow(rows_of(frames["expert_infos"])),
    )
    alone: list[_Reset] = []
    for flow in rows_of(frames["flows"]):
        owed: dict[str, list[Row]] = {}
        for row in waiting.get(flow["flow_id"], ()):
            if _is_waited_for(row, flow) and not _may_be_answered(flow, asker(row)):
                owed.setdefault(asker(row), []).append(row)
        for rows in owed.values():
            one = _Reset(flow, names.get(flow["flow_id"]), rows, marks.get(flow["flow_id"], ()))
            if one.marks and len(rows) >= requests_least:
                alone.append(one)
    found: dict[tuple[object, ...], list[_Reset]] = {}
    for resets in _at_once(alone, int(together_s * NS_PER_S)):
        if len({one.client for one in resets}) >= clients_least:
            yield _finding(resets)
        else:
            for one in resets:
                found.setdefault(one.key, []).append(one)
    for resets in found.values():
        yield _finding(resets)


def _at_once(resets: Sequence[_Reset], within_ns: int) -> Iterator[list[_Reset]]:
    """Resets of one side of a server, each at most so long after the one before; of clients each alone."""
    by_server: dict[tuple[object, ...], list[_Reset]] = {}
    for one in resets:
        if one.flow["reset_by"] != "server":
            yield [one]
        else:
            by_server.setdefault((server_text(one.flow), asker(one.waiting[0])), []).append(one)
    for own in by_server.values():
        own.sort(key=lambda one: (one.at_ns, one.flow["flow_id"]))
        held = own[:1]
        for one in own[1:]:
            if one.at_ns - held[-1].at_ns > within_ns:
                yield held
                held = []
            held.append(one)
        yield held


def _by_flow(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["flow_id"], []).append(row)
    return found


def _is_waited_for(row: Row, flow: Row) -> bool:
    """Was a response due, as far as that is known? Of what was not sent whole none is, but somebody waited for it."""
    return row["answer_due"] is not False or not sent_and_acked(row, flow)[0]


def _asks_only(row: Row, flow: Row) -> bool:
    known = dissector_of(flow["protocol"])
    return known is not None and row["operation"] in known.left_open


def _may_be_answered(flow: Row, by: str) -> bool:
    """Does the capture lack bytes of the side that owes the answer, or all of them, other than by gaps it knows of?"""
    return flow[f"ts_last_from_{OTHER[by]}"] is None or (flow[f"acked_by_{by}"] or 0) > (flow[f"bytes_to_{by}"] or 0)


def _finding(resets: Sequence[_Reset]) -> Finding:
    first = resets[0]
    flow, name, by = first.flow, first.name, asker(first.waiting[0])
    lost = [row for one in resets for row in one.waiting]
    states = [sent_and_acked(row, one.flow) for one in resets for row in one.waiting]
    arrived = [acked for is_whole, acked in states if is_whole]
    cut = [row for row, (is_whole, _) in zip(lost, states, strict=True) if not is_whole]
    operations = Counter(row["operation"] or "?" for row in lost)
    what = count(len(lost), "request" if by == "client" else "message")
    many = len({one.client for one in resets}) > 1
    whose = {"clients": "all"} if many else {"client": flow["client_address"], **({"name": name} if name else {})}
    return RULE.finding(
        severity=_severity(resets),
        confidence="medium" if any(one.flow["gap_bytes"] for one in resets) else "high",
        subject={
            **whose, "server": server_text(flow),
            "reset_by": flow["reset_by"], "operation": operations.most_common(1)[0][0],
        },
        title=_title(resets, what, many=many),
        sentence=(
            f"{_who(first, resets)} while {what} of the {by} had no response "
            f"({_named(operations)}).{_cut_text(cut, len(lost))}"
            f"{which_side(arrived, OTHER[by], closed=flow['reset_by'] == OTHER[by], cut_short=True)}"
        ),
        next_step=f"Look into the log of the {flow['reset_by']} at that time, and at load balancers on the way."
        + (" Whether the requests were carried out is not known." if len(cut) < len(lost) else ""),
        proof=Proof(
            min(row["ts"] for row in lost),
            max(m["ts"] for one in resets for m in (*one.marks, *one.waiting) if m["ts"] is not None),
            [e for one in resets for e in (
                *evidence_of(one.waiting, ("request_file", "request_packet", "request_message_id")),
                *evidence_of(one.marks),
            )],
        ),
        numbers={
            "flow_id": flow["flow_id"],
            "flows": [one.flow["flow_id"] for one in resets[:MOST_NAMED]],
            **({} if many else {"address": flow["client_address"], **({"client_id": name} if name else {})}),
            "clients": _clients(resets),
            "server": server_of(flow),
            "reset_by": flow["reset_by"],
            "connections": len(resets),
            "operations": dict(operations),
            "waiting_requests": len(lost),
            "requests_refused": len(lost),
            "requests_cut": len(cut),
            "gap_bytes": sum(one.flow["gap_bytes"] or 0 for one in resets),
            **counted(arrived),
        },
    )  # fmt: skip


def _title(resets: Sequence[_Reset], what: str, *, many: bool) -> str:
    flow = resets[0].flow
    whose = who_title(resets[0].name, flow["client_address"])
    if many:
        whose = f"{len({one.client for one in resets})} clients"
    connections = "Reset" if len(resets) == 1 else f"{len(resets)} resets"
    return f"{connections} by the {flow['reset_by']}, {what} pending: {whose} at {server_text(flow)}"


def _severity(resets: Sequence[_Reset]) -> Severity:
    reset_by = resets[0].flow["reset_by"]
    if reset_by != "server" or asker(resets[0].waiting[0]) == reset_by or all(one.flow["gap_bytes"] for one in resets):
        return "info"
    return "info" if all(_asks_only(row, one.flow) for one in resets for row in one.waiting) else "warning"


def _clients(resets: Sequence[_Reset]) -> list[Row]:
    return [{"address": address, "client_id": name} for address, name in dict.fromkeys(one.client for one in resets)][
        :MOST_NAMED
    ]


def _who(first: _Reset, resets: Sequence[_Reset]) -> str:
    """`The server 10.0.0.9:9092 (kafka) reset 7 connections of client billing-1 at 10.0.0.1`."""
    flow, clients = first.flow, len({one.client for one in resets})
    if clients > 1:
        return (
            f"The server {server_text(flow)} ({flow['protocol']}) reset {len(resets)} connections of {clients} clients "
            f"within {seconds_text(resets[-1].at_ns - first.at_ns)}"
        )
    connections = "a connection" if len(resets) == 1 else count(len(resets), "connection")
    place = client_endpoint_text(flow) if len(resets) == 1 else flow["client_address"]
    client = who_is(first.name, place, most=MAX_NAME)
    server = f"{server_text(flow)} ({flow['protocol']})"
    if flow["reset_by"] == "server":
        return f"The server {server} reset {connections} of {client}"
    return f"{sentence_start(client)} reset {connections} to {server}"


def _named(operations: Counter[str]) -> str:
    return names_text([name if len(operations) == 1 else f"{n} {name}" for name, n in operations.most_common()], 3)


def _cut_text(cut: Sequence[Row], lost: int) -> str:
    """Requests that were not sent whole, and how large they would have been."""
    if not cut:
        return ""
    sizes = sorted(row["request_bytes"] for row in cut)
    large = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    which = ("It was" if lost == 1 else "They were") if len(cut) == lost else f"{len(cut)} of them were"
    return f" {which} not sent whole ({large} bytes by their length)."


# A server that answers in another protocol is TLS106's.
_RESET = (
    "reset_by IS NOT NULL AND protocol IS NOT NULL "
    "AND (carrier IS NOT NULL OR coalesce(encrypted, false) OR server_opening IS NULL)"
)
_PENDING = "pending + pending_cut + pending_of_server > 0"
_SUSPECT = f"{_RESET} AND flow_id IN (SELECT flow_id FROM connection_ends WHERE {_PENDING})"
_ON_SUSPECTS = f"flow_id IN (SELECT flow_id FROM flows WHERE {_SUSPECT})"

RULE = Rule(
    code="TCP103",
    question="ended",
    name="reset-with-requests",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            *FLOW_COLUMNS, "reset_by", "gap_bytes", *STREAM_COLUMNS, "ts_last_from_server", "ts_last_from_client",
        ),
        "expert_infos": (*REMARK_COLUMNS, "flow_id"),
        "exchanges": (
            "ts", "flow_id", "client_id", "operation", "status", "answer_due", "request_file", "request_packet",
            *REQUEST_COLUMNS,
        ),
    },
    asks=("connection_ends",),
    partition_by=(),
    detect=detect,
    rows={
        "flows": _SUSPECT,
        "expert_infos": f"code = 'reset' AND {_ON_SUSPECTS}",
        "exchanges": f"(status = 'unanswered' AND {_ON_SUSPECTS}) OR {named_by('exchanges', _SUSPECT)}",
    },
    signs={"flows": "bool_or(reset_by IS NOT NULL AND protocol IS NOT NULL)"},
)  # fmt: skip
