"""The columns of `flows` about TLS, made from what the handshake told and from the records of both sides."""

from __future__ import annotations

from typing import Any

from wirewitness.analyser.decoding.tls_handshake import Handshake, Seen, handshake
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.streams import Half
from wirewitness.dissectors.core.encryption import DECRYPTED, CertificateFacts, Encryption

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
        "tls_client_asked": came_out.client_asked if known.client_asked is None else known.client_asked,
        "tls_client_sent": came_out.client_sent if known.client_sent is None else known.client_sent,
        **_certificate("tls_client_certificate", own),
        "tls_decryption": known.decryption,
    }


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
