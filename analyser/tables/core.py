"""Tables that every protocol shares: captures, flows, messages, exchanges, remarks, findings."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.analyser.tables.owners import CLIENT_BESIDE, CLIENT_OWNER, SERVER_OWNER
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    CLUSTER,
    FLOW_COLUMNS,
    FLOW_ID,
    LINE,
    PROTOCOL_NAMES,
    SERVER_ADDRESS,
    SERVER_PORT,
    number,
    packet_column,
    text,
    time,
    ts_column,
)
from wirewitness.dissectors.core.fields import Kind
from wirewitness.dissectors.core.model import EXCHANGES, EXPERT_INFOS, MESSAGES

_CAPTURES = Table(
    "captures",
    "one row per capture file",
    (
        Column("file", "string", "path as given; - is standard input", nullable=False),
        Column("format", "string", "pcap, pcapng or what kind of log, with the compression it was read through"),
        Column("link_types", "string", "link layers seen, comma separated"),
        Column("packets", "int64", "packets read", nullable=False),
        Column(
            "captured_bytes", "int64", "bytes captured of these packets; of a log its own", unit="bytes", nullable=False
        ),
        Column("wire_bytes", "int64", "bytes these packets had on the wire", unit="bytes", nullable=False),
        Column("ts_first", "time", "time of the earliest packet", unit="UTC"),
        Column("ts_last", "time", "time of the latest packet", unit="UTC"),
        Column("tcp_segments", "int64", "packets that are TCP segments", nullable=False),
        Column("other_packets", "int64", "packets of other protocols", nullable=False),
        Column("undecoded_packets", "int64", "packets whose layers could not be read", nullable=False),
        Column("truncated_packets", "int64", "packets cut by the snap length", nullable=False),
        Column("snaplen", "int64", "snap length in the file header", unit="bytes"),
        Column("dropped_packets", "int64", "packets the kernel or interface dropped, where the file says so"),
        Column("remarks", "string", "damage and oddities met while reading, joined by '; '"),
        Column("lines", "int64", "lines of a request in a request log; null where there are packets"),
        Column("batches", "int64", "record batches of a log segment; null of other files"),
    ),
    ("file",),
)

_FLOWS = Table(
    "flows",
    "one row per TCP connection seen",
    (
        *FLOW_COLUMNS,
        Column("file", "string", "capture file of the first packet", "derived"),
        packet_column("first_packet", "first packet seen"),
        Column("identified_by", "string", "content, port, user or request log: what decided the protocol", "flow"),
        Column(
            "carrier",
            "string",
            "what the protocol travels in, inside TCP: websocket (inside TLS where `encrypted`), tls; null for nothing",
            "flow",
        ),
        CLIENT_ADDRESS,
        CLIENT_PORT,
        SERVER_ADDRESS,
        SERVER_PORT,
        *CLIENT_OWNER,
        *SERVER_OWNER,
        Column("encapsulation", "string", "VLANs and tunnels around the flow, outermost first", "flow"),
        Column("ts_first", "time", "time of the first packet", "flow", unit="UTC", nullable=False),
        Column("ts_last", "time", "time of the last packet", "flow", unit="UTC", nullable=False),
        Column(
            "observed_until",
            "time",
            "until when more of it would have been seen: until it was closed, given up, or a limit ended its decoding, "
            "else until the captures end or break off for more than 10 s",
            "flow",
            unit="UTC",
        ),
        Column("packets", "int64", "TCP packets of both directions", "flow"),
        Column("data_segments", "int64", "packets with payload, copies not counted", "flow"),
        Column("bytes_to_server", "int64", "stream bytes from client to server", "flow", "bytes"),
        Column("bytes_to_client", "int64", "stream bytes from server to client", "flow", "bytes"),
        Column(
            "acked_by_server",
            "int64",
            "stream bytes from the client that the server's TCP ACKed; null where no ACK was seen",
            "flow",
            "bytes",
        ),
        Column("acked_by_client", "int64", "likewise of the server's stream, by the client's TCP", "flow", "bytes"),
        Column("handshake_seen", "bool", "the SYN of both sides is in the capture", "flow", nullable=False),
        Column("handshake", "string", "complete, refused, unanswered or unexplained (SYN-ACK alone)", "flow"),
        Column("handshake_ms", "float64", "time from the first SYN to the first SYN-ACK", "flow", "ms"),
        Column(
            "closed_by",
            "string",
            "client, server (who sent the first FIN or RST), null while open and behind `observed_until`",
            "flow",
        ),
        Column("ts_closed", "time", "time of that FIN or RST", "flow", unit="UTC"),
        Column("reset_by", "string", "client, server (who sent the first RST), or null", "flow"),
        Column(
            "reset_ttl",
            "int64",
            "hop limit (TTL) of that RST; not the sender's usual one: somebody between sent it",
            "flow",
        ),
        Column("client_reset_ttl", "int64", "hop limit (TTL) of the first RST in the client's name", "flow"),
        Column("server_reset_ttl", "int64", "likewise in the server's name", "flow"),
        Column(
            "client_reset_step",
            "int64",
            "by how much the IP id of that RST is above that of the client's last packet before, modulo 65,536: few "
            "where the client itself sent it; null without ids",
            "flow",
        ),
        Column("server_reset_step", "int64", "likewise of the server", "flow"),
        Column("client_packets", "int64", "packets of the client but for RSTs and copies", "flow"),
        Column("server_packets", "int64", "likewise of the server", "flow"),
        Column(
            "client_ttl", "int64", "hop limit (TTL) of the client's first packet that shows it, but for a RST", "flow"
        ),
        Column("server_ttl", "int64", "likewise of the server", "flow"),
        Column("client_ttl_lowest", "int64", "the lowest hop limit of the client's packets but for a RST", "flow"),
        Column("server_ttl_lowest", "int64", "likewise of the server", "flow"),
        Column("client_ttl_last", "int64", "hop limit of the client's last packet but for a RST", "flow"),
        Column("server_ttl_last", "int64", "likewise of the server", "flow"),
        Column("ts_last_from_client", "time", "time of the client's last packet but for a RST", "flow", unit="UTC"),
        Column("ts_last_from_server", "time", "likewise of the server", "flow", unit="UTC"),
        Column("gap_bytes", "int64", "stream bytes missing from the capture", "flow", "bytes"),
        Column(
            "missing_requests",
            "int64",
            "of a connection in a request log: requests that its log lacks, as their numbers show; null where none do",
            "flow",
        ),
        Column("retransmitted_segments", "int64", "segments whose bytes had been sent before", "flow"),
        Column("retransmitted_bytes", "int64", "stream bytes that were sent again", "flow", "bytes"),
        Column(
            "spurious_retransmissions",
            "int64",
            "retransmitted segments that had arrived before, as their receiver said (D-SACK, RFC 2883)",
            "flow",
        ),
        Column(
            "unheard_sends_to_server",
            "int64",
            "how often the client sent bytes that the server never ACKed, where it sent them again",
            "flow",
        ),
        Column("ts_unheard_to_server", "time", "when it sent them again first", "flow", unit="UTC"),
        Column("unheard_sends_to_client", "int64", "likewise of the server's bytes", "flow"),
        Column("ts_unheard_to_client", "time", "likewise of the server's bytes", "flow", unit="UTC"),
        Column("out_of_order_segments", "int64", "segments that came before their predecessor", "flow"),
        Column("duplicate_packets", "int64", "packets captured twice (same IP id, ports, sequence)", "flow"),
        Column("truncated_packets", "int64", "segments cut by the snap length", "flow"),
        Column("client_first_seq", "int64", "TCP sequence number of the client's first stream byte (offset 0)", "flow"),
        Column("server_first_seq", "int64", "TCP sequence number of the server's first stream byte (offset 0)", "flow"),
        Column("client_window_scale", "int64", "bits by which the client's windows are scaled; null: not seen", "flow"),
        Column("server_window_scale", "int64", "bits by which the server's windows are scaled; null: not seen", "flow"),
        Column("client_zero_window_ms", "float64", "how long the client's receive window was closed", "flow", "ms"),
        Column("server_zero_window_ms", "float64", "how long the server's receive window was closed", "flow", "ms"),
        Column("encrypted", "bool", "the flow speaks TLS", "flow"),
        Column("sni", "string", "server name that the TLS client asked for", "flow"),
        Column(
            "client_opening",
            "string",
            "tls, http or proxy (PROXY protocol), where the client's first bytes are; null: else",
            "flow",
        ),
        Column("server_opening", "string", "likewise of the server", "flow"),
        Column(
            "client_tls_alert",
            "string",
            "level and name of a TLS alert that the client sent, in the clear or decrypted",
            "flow",
        ),
        Column("server_tls_alert", "string", "likewise of the server", "flow"),
        Column(
            "port_protocol",
            "string",
            "protocol that --decode-as names for the port, or that the server's port is usual for",
            "flow",
        ),
        Column("tls_offered", "string", "versions of TLS that the client offers", "flow"),
        Column("tls_version", "string", "version that the server chose, such as TLS 1.3", "flow"),
        Column("tls_cipher", "string", "cipher suite that the server chose, by its name at IANA", "flow"),
        Column("tls_alpn", "string", "protocol that the server chose by ALPN", "flow"),
        Column(
            "tls_handshake",
            "string",
            "complete, refused by client, refused by server (an alert, also an encrypted one, as its length shows) "
            "or broken off (closed without one); null: it goes on, or is not known",
            "flow",
        ),
        Column(
            "tls_handshake_ms",
            "float64",
            "time from the ClientHello until both sides can send data, at the place of the capture",
            "flow",
            unit="ms",
        ),
        Column("tls_answer_ms", "float64", "of this until the server's first record", "flow", unit="ms"),
        Column("tls_retried", "bool", "the server asked for another ClientHello (HelloRetryRequest)", "flow"),
        Column("tls_resumption_offered", "bool", "the client wants an earlier session to go on", "flow"),
        Column("tls_resumed", "bool", "an earlier TLS session goes on, so no certificate is sent", "flow"),
        Column("tls_early_data", "bool", "the server takes data that the client sends before its response", "flow"),
        Column(
            "tls_tickets",
            "int64",
            "tickets for later sessions that the server gave; in TLS 1.3 with a key only",
            "flow",
        ),
        Column("tls_ticket_lifetime_s", "int64", "how long the last of them is good for", "flow", unit="s"),
        Column("tls_certificate", "string", "subject of the server's certificate; in TLS 1.3 with a key only", "flow"),
        Column("tls_certificate_issuer", "string", "who issued it", "flow"),
        Column("tls_certificate_begins", "time", "from when on it is valid", "flow", unit="UTC"),
        Column("tls_certificate_expires", "time", "when that certificate ends", "flow", unit="UTC"),
        Column("tls_certificate_names", "string", "DNS names and addresses it is for, by commas", "flow"),
        Column(
            "tls_client_certificate_requested",
            "bool",
            "the server asked for a certificate of the client; in TLS 1.3 without a key by the lengths of its records",
            "flow",
        ),
        Column("tls_client_sent", "bool", "the client sent one; likewise", "flow"),
        Column("tls_client_certificate", "string", "subject of the client's certificate", "flow"),
        Column("tls_client_certificate_issuer", "string", "who issued it", "flow"),
        Column("tls_client_certificate_expires", "time", "when it ends", "flow", unit="UTC"),
        Column(
            "tls_decryption",
            "string",
            "decrypted, records lost, no key, wrong key, start not captured, start lost, cut by snap length, cipher "
            "suite not supported or version not supported: the worse of both directions; null while nothing was "
            "encrypted",
            "flow",
        ),
        Column(
            "duplicate_of", "string", "flow_id of the same connection seen at another point; only that one has rows"
        ),
        Column("hop_latency_ms", "float64", "latency of the way between the two points", unit="ms"),
        Column("clock_offset_ms", "float64", "how far this point's clock is ahead of the other's", unit="ms"),
    ),
    ("ts_first", "flow_id"),
)

_MESSAGES = Table(
    "messages",
    "one row per protocol message",
    columns_of(
        MESSAGES,
        {
            "": (
                Column(
                    "message_id", "string", "flow id, direction (c or s) and stream offset", "derived", nullable=False
                ),
                FLOW_ID,
                Column(
                    "file", "string", "capture file of the packet that completes the message", "derived", nullable=False
                ),
            ),
            "ts": (Column("protocol", "string", PROTOCOL_NAMES, "flow"), "direction"),
            "client_id": (
                Column("src_address", "string", "IP address of the sender", "flow"),
                Column("src_port", "int64", "TCP port of the sender", "flow"),
                Column("dst_address", "string", "IP address of the receiver", "flow"),
                Column("dst_port", "int64", "TCP port of the receiver", "flow"),
                "stream_offset",
                "length_bytes",
                LINE,
            ),
        },
    ),
    ("ts", "file", "packet_last", "stream_offset", "line"),
)

_EXCHANGES = Table(
    "exchanges",
    "one row per request with its response, unanswered request, or orphan response",
    columns_of(
        EXCHANGES,
        {
            "": (
                Column(
                    "exchange_id",
                    "string",
                    "message id of the request, else of the response",
                    "derived",
                    nullable=False,
                ),
                FLOW_ID,
                Column("protocol", "string", PROTOCOL_NAMES, "flow"),
                CLUSTER,
            ),
            "direction": (
                "operation",
                "version",
                "client_id",
                CLIENT_ADDRESS,
                CLIENT_PORT,
                *CLIENT_BESIDE,
                SERVER_ADDRESS,
                SERVER_PORT,
                Column("request_message_id", "string", "messages.message_id of the request", "derived"),
                Column("response_message_id", "string", "messages.message_id of the response", "derived"),
                Column("request_file", "string", "file of the request, of the response for an orphan", "derived"),
                LINE,
            ),
            "ts_response": (
                Column(
                    "answer_due",
                    "bool",
                    "a response was due: the request needs one, was sent whole, and nobody left before it; true where "
                    "one came; null: not known (bytes or a direction missing, open for less than 30 s at the end)",
                    "derived",
                ),
                Column(
                    "late",
                    "bool",
                    "the response came when the requester had closed already, and nobody read it",
                    "derived",
                ),
                Column(
                    "latency_ms",
                    "float64",
                    "ts_response minus ts; of an awaitable request how long it waited, or null where that says nothing",
                    "derived",
                    unit="ms",
                ),
            ),
        },
    ),
    ("ts", "request_file", "request_packet", "exchange_id"),
)

_EXPERT_INFOS = Table(
    "expert_infos",
    "notes of capture layer and dissectors on bytes",
    columns_of(
        EXPERT_INFOS,
        {
            "": (
                Column("message_id", "string", "the message it is about, where there is one", "derived"),
                Column("flow_id", "string", "the flow it is about", "flow"),
            ),
            "direction": (Column("file", "string", "capture file", "derived"), LINE),
        },
    ),
    ("ts", "file", "packet", "code"),
)

_TCP_WAITS = Table(
    "tcp_waits",
    "one row per wait that TCP imposed: delayed acknowledgements, full receive windows",
    (
        FLOW_ID,
        Column("file", "string", "capture file of packet_first", "derived", nullable=False),
        packet_column("packet_first", "packet after which the sender waited"),
        Column("file_last", "string", "capture file of packet_last", "derived", nullable=False),
        packet_column("packet_last", "packet that ends the wait"),
        ts_column("time of the packet after which the sender waited"),
        Column("ts_last", "time", "time of the packet that ends the wait", unit="UTC", nullable=False),
        Column("direction", "string", "client_to_server or server_to_client: whose bytes waited", "derived"),
        Column(
            "kind",
            "string",
            "delayed_ack: a segment had to be ACKed first; full_window: the receiver had no room",
            nullable=False,
        ),
        Column("stream_offset", "int64", "offset of the first byte that waited", unit="bytes", nullable=False),
        Column(
            "wait_ms", "float64", "time until the acknowledgement; time with a full window", unit="ms", nullable=False
        ),
        Column("answer_ms", "float64", "delayed_ack: from the acknowledgement to the next segment", unit="ms"),
        Column(
            "sent_bytes",
            "int64",
            "delayed_ack: segment not ACKed; full_window: sent meanwhile",
            unit="bytes",
            nullable=False,
        ),
        Column("next_bytes", "int64", "delayed_ack: size of the segment that waited", unit="bytes"),
        Column("window_least_bytes", "int64", "full_window: the smallest window meanwhile", unit="bytes"),
        Column("window_most_bytes", "int64", "full_window: the largest window meanwhile", unit="bytes"),
        Column("segment_limit_bytes", "int64", "largest segment (MSS) that both SYNs allow", unit="bytes"),
    ),
    ("ts", "file", "packet_first", "kind"),
)

_FINDINGS = Table(
    "findings",
    "conclusions of the rules",
    (
        Column("finding_id", "string", "digest of code, subject and first evidence", nullable=False),
        Column("code", "string", "detector code", nullable=False),
        Column("name", "string", "detector name", nullable=False),
        Column("title", "string", "what happened, to what, by whom: a heading of a few words", nullable=False),
        Column("severity", "string", "info, warning or critical", nullable=False),
        Column("confidence", "string", "low, medium or high", nullable=False),
        Column("provisional", "bool", "later packets could overturn it", nullable=False),
        Column("subject", "string", "what it is about, key=value pairs", nullable=False),
        Column("sentence", "string", "the conclusion in one sentence", nullable=False),
        Column("next_step", "string", "what to do next", nullable=False),
        Column("ts_first", "time", "time of the first evidence", unit="UTC"),
        Column("ts_last", "time", "time of the last evidence", unit="UTC"),
        Column("evidence", "string", "JSON list of {file, packet, message_id, line}", nullable=False, json=True),
        Column("numbers", "string", "JSON object of the measured numbers", nullable=False, json=True),
        Column(
            "incident_id", "string", "finding_id of the cause this follows from; its own where it follows from none"
        ),
        Column(
            "incident_order",
            "string",
            "text by which findings sort as reports show them: the worst incident first, in it the cause first",
        ),
    ),
    ("incident_order", "code", "subject", "finding_id"),
)

_STANDS_OUT = Table(
    "stands_out",
    "what differs from its likes or from what is usual for it, ten rows at most, without what findings tell",
    (
        number("rank", "1 for the surest line", nullable=False),
        text("measure", "what was measured"),
        text("subject", "what it is about, key=value pairs"),
        Column("protocol", "string", PROTOCOL_NAMES, "context"),
        Column("value", "float64", "the value, in `unit`", "context"),
        Column("usual", "float64", "median of the others, else what is usual for the subject itself", "context"),
        number("others", "likes that it was compared with; 0: with the subject's own usual value"),
        text("unit", "ms, bytes, or what was counted; null: times"),
        Column("score", "float64", "how sure it is: the further apart and the more rows, the higher", "context"),
        text("sentence", "the line in words"),
        time("ts_first", "time of the first row behind it"),
        time("ts_last", "time of the last row behind it"),
        text("evidence", "JSON list of {file, packet, message_id, line} to look at", json=True),
    ),
    ("rank",),
    on_request=True,
)


def _end(name: str, kind: Kind, meaning: str, unit: str = "") -> Column:
    return Column(name, kind, meaning, "context", unit)


_ENDS = Table(
    "connection_ends",
    "one row per connection whose protocol is known: who ended it, how, and what was pending then",
    (
        ts_column("time of the first FIN or RST; of an open one the last time it was observed", "context"),
        FLOW_ID,
        Column("protocol", "string", PROTOCOL_NAMES, "context"),
        CLIENT_ADDRESS,
        CLIENT_PORT,
        SERVER_ADDRESS,
        SERVER_PORT,
        _end("ended_by", "string", "client or server, who ended it first; null: nobody did in the capture"),
        _end("how", "string", "fin or reset; null while open"),
        _end("pending", "int64", "requests of the client that were sent whole and had no response"),
        _end("pending_due", "int64", "of these, those to which a response was due (exchanges.answer_due)"),
        _end("pending_cut", "int64", "requests that were not sent whole, or whose end is not in the capture"),
        _end("pending_of_server", "int64", "requests of the server that the client had not answered"),
        _end("pending_operations", "string", "operations of all these, each once, comma separated"),
        _end("ts_pending", "time", "when the oldest of these was sent", "UTC"),
        _end("late_responses", "int64", "responses that came when the client had closed already"),
        _end("unacked_by_server", "int64", "bytes of the client that the server's TCP never ACKed", "bytes"),
        _end("unacked_by_client", "int64", "bytes of the server that the client's TCP never ACKed", "bytes"),
        _end("unheard_sends_to_server", "int64", "how often the client sent such bytes, where more than once"),
        _end("unheard_sends_to_client", "int64", "likewise of the server's bytes"),
        _end("gap_bytes", "int64", "stream bytes missing from the capture", "bytes"),
        _end("idle_ms", "float64", "from the last message of an exchange until the end; null while open", "ms"),
    ),
    ("ts", "flow_id"),
)

_GAPS = Table(
    "gaps",
    "one row per place where something of a connection is missing",
    (
        ts_column("time at which it was noticed; of a missing start the time of the first packet", "context"),
        FLOW_ID,
        CLIENT_ADDRESS,
        CLIENT_PORT,
        Column(
            "direction",
            "string",
            "client_to_server or server_to_client: whose bytes are missing; null where that is not known",
            "context",
        ),
        Column(
            "reason",
            "string",
            "bytes missing (of a TCP stream, which its receiver confirmed), requests missing (of a request log), start "
            "missing (a connection without its handshake: it began before the capture, or unseen)",
            "context",
            nullable=False,
        ),
        Column("bytes", "int64", "how many bytes; null where it is not known", "context"),
        Column("file", "string", "file of the packet", "context"),
        Column("packet", "int64", "the packet at which it was noticed", "context"),
    ),
    ("ts", "flow_id", "reason", "packet", "direction", "bytes"),
)

CORE_TABLES = (
    _CAPTURES,
    _FLOWS,
    _MESSAGES,
    _EXCHANGES,
    _EXPERT_INFOS,
    _GAPS,
    _TCP_WAITS,
    _ENDS,
    _FINDINGS,
    _STANDS_OUT,
)
