"""Rows of the `captures` and `flows` tables, made from what the capture layer and the flow table counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from wirewitness.analyser.base.faults import CODE, LimitReached, counted, told
from wirewitness.analyser.base.words import count
from wirewitness.analyser.capture import CaptureStats, Endpoints, EndpointTable, Remark
from wirewitness.analyser.capture.opening import OF_DIRECTORIES
from wirewitness.analyser.capture.packing import TOO_MUCH
from wirewitness.analyser.capture.reader import LIMIT_REMARKS
from wirewitness.analyser.decoding.tls_handshake import Handshake, Seen, handshake
from wirewitness.analyser.tables.tables import arrow_schema
from wirewitness.analyser.tcp.flow import Flow, flow_id, window_shift
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.streams import Half
from wirewitness.analyser.tcp.tcp import MASK
from wirewitness.dissectors.core.encryption import DECRYPTED, LOST, SNAPPED, CertificateFacts, Encryption
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.rows import expert_row
from wirewitness.dissectors.registry import USUAL_PORTS

# The columns of `flows` about TLS, made from what the handshake told and from the records of both sides.

_SIDES = ("client", "server")
_FATAL = "fatal"
_TLS_13 = "TLS 1.3"


def tls_columns(flow: Flow, to_server: Half, to_client: Half) -> dict[str, Any]:
    """An alert inside TLS is later than one in the clear. to_server, to_client: what client and server sent."""
    known = flow.encryption
    alerts = [to_server.tls_alert, to_client.tls_alert]
    if known is not None:
        alerts = [inner or clear for inner, clear in zip(known.alerts, alerts, strict=True)]
    columns: dict[str, Any] = {f"{side}_tls_alert": alert for side, alert in zip(_SIDES, alerts, strict=True)}
    if known is None:
        return columns | {"encrypted": False}
    came_out = _handshake(flow, known, to_server, to_client, alerts)
    own, server = known.certificates
    return columns | {
        "encrypted": True,
        "sni": known.sni,
        "tls_offered": known.offered,
        "tls_version": known.version,
        "tls_cipher": known.cipher,
        "tls_alpn": known.alpn,
        "tls_handshake": came_out.state,
        "tls_handshake_ms": came_out.ms,
        "tls_answer_ms": came_out.answer_ms,
        "tls_retried": known.retried,
        "tls_resumption_offered": known.resumption_offered,
        "tls_resumed": known.resumed,
        "tls_early_data": known.early_data,
        "tls_tickets": known.tickets,
        "tls_ticket_lifetime_s": known.ticket_lifetime_s,
        **_certificate("tls_certificate", server),
        "tls_certificate_begins": None if server is None else server.begins_ns,
        "tls_certificate_names": None if server is None or server.names is None else ", ".join(server.names),
        "tls_client_certificate_requested": came_out.client_asked if known.client_asked is None else known.client_asked,
        "tls_client_sent": came_out.client_sent if known.client_sent is None else known.client_sent,
        **_certificate("tls_client_certificate", own),
        "tls_decryption": _decryption(known, to_server, to_client),
    }


def _decryption(known: Encryption, to_server: Half, to_client: Half) -> str | None:
    """What became of the records; where none was opened, and the snap length cut them, that is why."""
    found = known.decryption
    is_cut = to_server.truncated or to_client.truncated
    return SNAPPED if found == LOST and is_cut and not known.opened else found


def _certificate(name: str, held: CertificateFacts | None) -> dict[str, Any]:
    if held is None:
        return {}
    return {name: held.subject, f"{name}_issuer": held.issuer, f"{name}_expires": held.expires_ns}


def _handshake(flow: Flow, known: Encryption, client: Half, server: Half, alerts: list[str | None]) -> Handshake:
    if not client.tls_records or server.gap_bytes or client.gap_bytes:
        return Handshake()
    fatal = [(alert or "").startswith(_FATAL) for alert in alerts]
    seen = Seen(
        known.version == _TLS_13,
        known.cipher,
        (fatal[0], fatal[1]),
        None if flow.closed_by_low is None else flow.first_close_ns,
        bool(known.early_data_offered),
        known.decryption == DECRYPTED,
    )
    return handshake(client.tls_records, server.tls_records or (), seen)


_NS_PER_MS = 1e6

_LIMIT_CODES = (
    "too_many_pairs",
    "too_many_headers",
    "overlong_packet",
    "log_long",
    "segment_given_up",
    TOO_MUCH,
    *LIMIT_REMARKS,
)

LINK_NAMES = {
    0: "BSD loopback",
    1: "Ethernet",
    12: "raw IP",
    14: "raw IP",
    101: "raw IP",
    108: "BSD loopback",
    113: "Linux cooked",
    228: "raw IPv4",
    229: "raw IPv6",
    258: "Apple PKTAP",
    276: "Linux cooked v2",
}


def file_label(name: str) -> str:
    """A path as text that every format can hold: bytes that are not UTF-8 are shown as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def captures_table(captures: Sequence[CaptureStats]) -> pa.Table:
    """One row per capture file."""
    rows = [_capture_row(stats) for stats in captures]
    return pa.Table.from_pylist(rows, schema=arrow_schema("captures"))


def _capture_row(stats: CaptureStats) -> dict[str, Any]:
    drops = [
        count for interface in stats.interfaces for count in (interface.if_drop, interface.os_drop) if count is not None
    ]
    return {
        "file": file_label(stats.file),
        "format": stats.format + (f" ({stats.compression})" if stats.compression else ""),
        "link_types": ", ".join(LINK_NAMES.get(number, f"link type {number}") for number in stats.link_types),
        "packets": stats.packets,
        "lines": stats.lines,
        "batches": stats.batches,
        "captured_bytes": stats.captured_bytes,
        "wire_bytes": stats.wire_bytes,
        "ts_first": stats.ts_first_ns,
        "ts_last": stats.ts_last_ns,
        "tcp_segments": stats.tcp_segments,
        "other_packets": stats.other_packets,
        "undecoded_packets": sum(stats.undecoded_packets.values()),
        "truncated_packets": stats.truncated_packets,
        "snaplen": stats.snaplen or None,
        "dropped_packets": sum(drops) if drops else None,
        "remarks": "; ".join(remark.text for remark in stats.remarks) or None,
    }


def capture_remarks(captures: Sequence[CaptureStats]) -> pa.RecordBatch:
    """What was remarked on the captures themselves, as rows of `expert_infos` without a time."""
    rows = [
        {
            "file": file_label(stats.file),
            "packet": remark.packet,
            "severity": remark.severity,
            "group": "limit" if remark.code in _LIMIT_CODES else "capture",
            "code": remark.code,
            "text": remark.text,
        }
        for stats in captures
        for remark in stats.remarks
    ]
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema("expert_infos"))


def remark_line(file: str, remark: Remark) -> str:
    """A remark as a sentence that names what it is about: the capture, or the directory."""
    return remark.text if remark.code in OF_DIRECTORIES else f"{file_label(file)}: {remark.text}"


def reading_faults(faults: Mapping[str, int], captures: Sequence[CaptureStats]) -> Iterator[str]:
    """A sentence for each fault of our own while captures were read. faults: see `Sink`."""
    yield from (counted(text, times) for text, times in faults.items())
    yield from (remark_line(one.file, remark) for one in captures for remark in one.remarks if remark.code == CODE)


def packing_limits(captures: Sequence[CaptureStats]) -> Iterator[str]:
    """A sentence where compressed inputs are not read whole; their remarks name them."""
    number = sum(any(remark.code == TOO_MUCH for remark in one.remarks) for one in captures)
    if number:
        limit = LimitReached("what is compressed becomes far more than its size tells")
        yield told(limit, "what reads captures", f"the rest of {count(number, 'input')} is not read")


def note_row(direction: int | None, packet: int | None, note: Note) -> Row:
    """A remark on a stream as a raw row of `expert_infos`."""
    span = None if note.span is None else f"{note.span[0]}-{note.span[1]}"
    remark = (note.severity, note.group, note.code, note.text)
    return expert_row(direction=direction, packet=packet, ts=note.ts_ns, remark=remark, span=span)


def client_is_low(flow: Flow, ends: Endpoints) -> bool:
    """Is the pair's low endpoint the client? Where nothing tells: servers listen on the lower port more often."""
    return ends.low_port > ends.high_port if flow.client_is_low is None else flow.client_is_low


def flow_row(flow: Flow, endpoints: EndpointTable) -> dict[str, Any]:
    """The columns of `flows` that a flow tells by itself."""
    pair = endpoints[flow.pair]
    low, high = (pair.low_address, pair.low_port), (pair.high_address, pair.high_port)
    low_is_client = client_is_low(flow, pair)
    client, server = (low, high) if low_is_client else (high, low)
    to_server, to_client = flow.halves[low_is_client], flow.halves[not low_is_client]

    def side(is_low: bool | None) -> str | None:
        return None if is_low is None else "client" if is_low == low_is_client else "server"

    return {
        "flow_id": flow_id(flow, pair),
        "protocol": flow.protocol,
        "identified_by": flow.identified_by,
        "carrier": flow.carrier,
        "client_address": client[0],
        "client_port": client[1],
        "server_address": server[0],
        "server_port": server[1],
        "encapsulation": pair.encapsulation or None,
        "ts_first": flow.ts_first_ns,
        "ts_last": flow.ts_last_ns,
        "observed_until": flow.observed_until_ns,
        "packets": flow.packets,
        "data_segments": flow.data_segments,
        "client_first_seq": to_server.base & MASK if to_server.started else None,
        "server_first_seq": to_client.base & MASK if to_client.started else None,
        "bytes_to_server": to_server.stream_bytes,
        "bytes_to_client": to_client.stream_bytes,
        "handshake_seen": flow.handshake == "complete",
        "handshake": flow.handshake,
        "handshake_ms": _ms(flow.syn_ns, flow.syn_ack_ns),
        **({} if _is_left_open(flow) else _end(flow, side)),
        "duplicate_packets": flow.duplicates,
        "client_window_scale": window_shift(flow, low_is_client),
        "server_window_scale": window_shift(flow, not low_is_client),
        "port_protocol": flow.named or USUAL_PORTS.get(server[1]),
        **_of_halves(to_server, to_client),
        **tls_columns(flow, to_server, to_client),
    }


def _is_left_open(flow: Flow) -> bool:
    """Did a limit end decoding before the end of the connection? Then rules would see silence and requests without an
    answer before that end."""
    until, end = flow.observed_until_ns, flow.first_close_ns
    return until is not None and end is not None and until < end


def _end(flow: Flow, side: Callable[[bool | None], str | None]) -> dict[str, Any]:
    """The columns of how it ended."""
    return {
        "closed_by": side(flow.closed_by_low),
        "ts_closed": None if flow.closed_by_low is None else flow.first_close_ns,
        "reset_by": side(flow.reset_by_low),
        "reset_ttl": None if flow.reset_by_low is None else flow.halves[flow.reset_by_low].reset_ttl,
    }


def _of_halves(to_server: Half, to_client: Half) -> dict[str, Any]:
    """The columns that each direction tells by itself."""
    return {
        "client_reset_ttl": to_server.reset_ttl,
        "server_reset_ttl": to_client.reset_ttl,
        "client_reset_step": to_server.reset_step,
        "server_reset_step": to_client.reset_step,
        "client_packets": to_server.packets,
        "server_packets": to_client.packets,
        "client_ttl": to_server.ttl,
        "server_ttl": to_client.ttl,
        "client_ttl_lowest": to_server.ttl_lowest,
        "server_ttl_lowest": to_client.ttl_lowest,
        "client_ttl_last": to_server.ttl_last,
        "server_ttl_last": to_client.ttl_last,
        "ts_last_from_client": to_server.last_ns,
        "ts_last_from_server": to_client.last_ns,
        "acked_by_server": to_server.confirmed_bytes,
        "acked_by_client": to_client.confirmed_bytes,
        "gap_bytes": to_server.gap_bytes + to_client.gap_bytes,
        "retransmitted_segments": to_server.retransmitted + to_client.retransmitted,
        "unheard_sends_to_server": _sends(to_server),
        "unheard_sends_to_client": _sends(to_client),
        "ts_unheard_to_server": None if to_server.unheard is None else to_server.unheard.first_ns,
        "ts_unheard_to_client": None if to_client.unheard is None else to_client.unheard.first_ns,
        "retransmitted_bytes": to_server.retransmitted_bytes + to_client.retransmitted_bytes,
        "spurious_retransmissions": to_server.spurious + to_client.spurious,
        "out_of_order_segments": to_server.out_of_order + to_client.out_of_order,
        "truncated_packets": to_server.truncated + to_client.truncated,
        "client_zero_window_ms": to_server.zero_window_ns / _NS_PER_MS,
        "server_zero_window_ms": to_client.zero_window_ns / _NS_PER_MS,
        "client_opening": to_server.opening,
        "server_opening": to_client.opening,
    }


def _sends(half: Half) -> int | None:
    return None if half.unheard is None else half.unheard.times + 1


def _ms(first_ns: int | None, last_ns: int | None) -> float | None:
    return None if first_ns is None or last_ns is None else max(last_ns - first_ns, 0) / _NS_PER_MS
