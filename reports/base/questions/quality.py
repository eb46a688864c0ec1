"""What the capture could show and what it could not. In: an analysis; out: `Quality`."""

from __future__ import annotations

from dataclasses import dataclass

from wirewitness.analyser.base.faults import CODE
from wirewitness.analyser.engine.facts.gaps import IS_ONE_SIDED
from wirewitness.reports.base.questions.source import Source, all_rows, rows

_CAPTURES = """
    select file, format, packets, lines, batches, captured_bytes, epoch_ns(ts_first) as first_ns,
           epoch_ns(ts_last) as last_ns, undecoded_packets, truncated_packets, dropped_packets, remarks
    from captures order by ts_first, file"""

_FLOWS = f"""
    select protocol, count(*) as flows,
           count(*) filter (handshake_seen) as handshakes,
           count(*) filter ({IS_ONE_SIDED}) as one_sided,
           count(*) filter (gap_bytes > 0) as with_gaps,
           coalesce(sum(gap_bytes), 0)::bigint as gap_bytes,
           coalesce(sum(retransmitted_segments), 0)::bigint as retransmitted,
           coalesce(sum(duplicate_packets), 0)::bigint as duplicates,
           coalesce(sum(packets), 0)::bigint as packets,
           count(missing_requests) as numbered,
           count(*) filter (missing_requests > 0) as lacking,
           coalesce(sum(missing_requests), 0)::bigint as missing_requests
    from flows group by protocol order by flows desc, protocol"""

_ENCRYPTED = """
    select coalesce(tls_decryption, 'handshake not completed') as decryption, count(*) as flows,
           sum(bytes_to_server + bytes_to_client)::bigint as bytes
    from flows where encrypted and duplicate_of is null group by all order by bytes desc, decryption"""

_UNDECODED = """
    select protocol, operation, version, count(*) as messages, min(error) as error
    from messages where error is not null and complete
    group by all order by messages desc, protocol, operation, version"""

_MESSAGES = "select count(*) as messages, count(*) filter (not complete) as cut from messages"

# Connections of which a limit left out messages that nobody can count.
_LEFT_OUT = """
    select text, count(distinct flow_id) as connections from expert_infos
    where "group" = 'limit' and code in ('compressed_rows', 'compressed_message') group by text order by text"""

# Kafka promises the order of requests to their answers on one connection; the first one of each connection is told.
_OUT_OF_ORDER = """
    select arg_min(file, (ts, packet)) as file, arg_min(packet, (ts, packet)) as packet, flow_id,
           arg_min(text, (ts, packet)) as text, count(*) as answers
    from expert_infos where code = 'answer_out_of_order' group by flow_id order by answers desc, flow_id"""

# Of all rows, not of the selected ones: which protocol would have been read nobody knows.
_FAULTS = f"""
    select text, count(distinct flow_id) as connections, count(*) as times
    from expert_infos where code = '{CODE}' group by text order by connections desc, times desc, text"""


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One capture file; `*_ns` are Unix times, None for a capture without packets. lines: of a request log.
    batches: of a log segment."""

    file: str
    format: str | None
    packets: int
    lines: int | None
    batches: int | None
    captured_bytes: int
    first_ns: int | None
    last_ns: int | None
    undecoded_packets: int
    truncated_packets: int
    dropped_packets: int | None
    remarks: str | None


@dataclass(frozen=True, slots=True)
class ProtocolFlows:
    """Flows of one protocol (None: not identified) and what is missing from them.

    numbered, lacking: those of request logs whose lines are numbered, and those of them whose log lacks
    `missing_requests` in all.
    """

    protocol: str | None
    flows: int
    handshakes: int
    one_sided: int
    with_gaps: int
    gap_bytes: int
    retransmitted: int
    duplicates: int
    packets: int
    numbered: int
    lacking: int
    missing_requests: int


@dataclass(frozen=True, slots=True)
class Encrypted:
    """Flows that speak TLS, by what became of them, in the words of `flows.tls_decryption`."""

    decryption: str
    flows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Undecoded:
    """Whole messages that could not be decoded in full, and the reason of one of them."""

    protocol: str | None
    operation: str | None
    version: str | None
    messages: int
    error: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why a limit left messages out, and of how many connections."""

    text: str
    connections: int


@dataclass(frozen=True, slots=True)
class OutOfOrder:
    """A connection on which answers came in another order than their requests: how many, and the first of them."""

    file: str | None
    packet: int | None
    flow_id: str | None
    text: str
    answers: int


@dataclass(frozen=True, slots=True)
class OwnFault:
    """A fault of wirewitness itself while captures were read: on how many connections it came up, how often in all."""

    text: str
    connections: int
    times: int


@dataclass(frozen=True, slots=True)
class Quality:
    """All of it; totals are sums over `captures` and `flows`."""

    captures: tuple[CaptureFile, ...]
    flows: tuple[ProtocolFlows, ...]
    encrypted: tuple[Encrypted, ...]
    undecoded: tuple[Undecoded, ...]
    left_out: tuple[LeftOut, ...]
    messages: int
    cut_messages: int
    out_of_order: tuple[OutOfOrder, ...]
    faults: tuple[OwnFault, ...]

    @property
    def packets(self) -> int:
        """Packets of all captures."""
        return sum(capture.packets for capture in self.captures)

    @property
    def lines(self) -> int | None:
        """Lines of all request logs; None where there is none."""
        known = [capture.lines for capture in self.captures if capture.lines is not None]
        return sum(known) if known else None

    @property
    def batches(self) -> int | None:
        """Record batches of all log segments; None where there is none."""
        known = [capture.batches for capture in self.captures if capture.batches is not None]
        return sum(known) if known else None

    @property
    def has_packets(self) -> bool:
        """Is any of the captures more than a request log or a log segment?"""
        return any(capture.lines is None and capture.batches is None for capture in self.captures)

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Unix times of the first and last packet; None without packets."""
        firsts = [c.first_ns for c in self.captures if c.first_ns is not None]
        lasts = [c.last_ns for c in self.captures if c.last_ns is not None]
        return (min(firsts), max(lasts)) if firsts and lasts else None


def quality(source: Source) -> Quality:
    """Capture quality of the whole analysis."""
    counts = rows(source, _MESSAGES)[0]
    return Quality(
        captures=tuple(CaptureFile(**row) for row in rows(source, _CAPTURES)),
        flows=tuple(ProtocolFlows(**row) for row in rows(source, _FLOWS)),
        encrypted=tuple(Encrypted(**row) for row in rows(source, _ENCRYPTED)),
        undecoded=tuple(Undecoded(**row) for row in rows(source, _UNDECODED)),
        left_out=tuple(LeftOut(**row) for row in rows(source, _LEFT_OUT)),
        messages=counts["messages"],
        cut_messages=counts["cut"],
        out_of_order=tuple(OutOfOrder(**row) for row in rows(source, _OUT_OF_ORDER)),
        faults=tuple(OwnFault(**row) for row in all_rows(source, _FAULTS)),
    )
