"""Why the two sides may differ although we are right: what tshark cannot do, and what both do by other rules.

In: a message of both sides or of one, and what differs. Out: the first reason that applies, or None. A limit is only
believed where tshark's own output shows it, so one that a later version lifts stops applying by itself; `seen` says
with which version it was seen, `source` where it can be read.
"""

from __future__ import annotations

from wirewitness.reports.report.tshark.case import MISSING, Case, Limit, apart, only_ours, protocol_of, remarked
from wirewitness.reports.report.tshark.message import HEAD
from wirewitness.reports.report.tshark.protocols import COMPARED


def reason(case: Case) -> Limit | None:
    """The first limit that explains the case."""
    return next((limit for limit in LIMITS if limit.protocol in {"", protocol_of(case)} and limit.applies(case)), None)


def seen_with() -> frozenset[str]:
    """Versions of tshark with which reasons were seen."""
    return frozenset(limit.seen.partition(":")[0] for limit in LIMITS)


def _late(case: Case) -> bool:
    ours, theirs = case.ours, case.theirs
    late = ours is not None and theirs is not None and ours.flow.disorder and theirs.packet > ours.packet
    return late and case.differing <= {"packet"}


def _in_earlier_file(case: Case) -> bool:
    """The request, the beginning of the message, or what says how to read it, may lie there."""
    if not case.continued:
        return False
    lacks_request = remarked(case, MISSING) and not case.differing & HEAD - {"request"}
    lacks_version = case.ours is not None and COMPARED[protocol_of(case)].needs_start(case.ours)
    return lacks_request or lacks_version or (not case.started and apart(case))


# Reasons of any protocol, the surest first; those of one protocol stand between them.
_FIRST = (
    Limit(
        "late_packet", "", "both",
        "packets came out of order: we name the packet with the message's last bytes, tshark the one that closes the "
        "gap before it",
        "4.0.17", "packet-tcp.c, preference tcp.reassemble_out_of_order", _late,
    ),
    Limit(
        "cut_message", "", "capture",
        "a gap or the end of the capture cuts the message: its beginning is a row of ours, tshark shows whole ones",
        "4.0.17", "packet-tcp.c, tcp_dissect_pdus", lambda case: only_ours(case) and bool(case.ours and case.ours.cut),
    ),
    Limit(
        "damaged_file", "", "tshark",
        "the file is damaged before this message: it stops there, we go on with the next whole packet",
        "4.0.17", "wiretap: libpcap.c, pcapng.c", lambda case: only_ours(case) and case.damaged,
    ),
    Limit(
        "tls_on_port", "", "both",
        "TLS is spoken on this port; told to decode the port, tshark takes encrypted bytes for messages",
        "4.0.17", "option -d", lambda case: case.ours is None and case.encrypted,
    ),
    Limit(
        "shared_port", "", "tshark",
        "several protocols are spoken on this port, by other hosts perhaps; it can be told one for a port",
        "4.0.17", "option -d", lambda case: case.shared and (case.ours is None or case.theirs is None),
    ),
)  # fmt: skip
_LAST = (
    Limit(
        "earlier_file", "", "both",
        "the connection goes on from an earlier file: tshark reads each file by itself, we read them as one capture; "
        "mergecap makes one file of them",
        "4.0.17", "packet-tcp.c and the protocols' own: what is remembered of a connection", _in_earlier_file,
    ),
    Limit(
        "after_gap", "", "capture",
        "bytes of the flow are missing: tshark waits for them, or takes any packet after them for the start of a "
        "message; we go on with what must be one",
        "4.0.17", "packet-tcp.c",
        lambda case: case.gap and apart(case),
    ),
    Limit(
        "before_capture", "", "capture",
        "the connection began before the capture: tshark takes its first packet for the start of a message, we look "
        "for one",
        "4.0.17", "packet-tcp.c", lambda case: case.midstream and not case.started and apart(case),
    ),
)  # fmt: skip

LIMITS: tuple[Limit, ...] = (
    *_FIRST,
    *(limit for compared in COMPARED.values() for limit in compared.limits),
    *_LAST,
)
