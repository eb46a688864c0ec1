"""Scenarios of the rules about TLS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

DAY = 86_400.0
SERVER = {"server_address": "10.1.0.100", "server_port": 9093, "port_protocol": "kafka"}
# A server of which nothing tells that it speaks a protocol of ours.
WEB = {"server_address": "10.1.0.80", "server_port": 443, "port_protocol": None, "sni": "shop.example"}
MQTT = {"server_address": "10.1.0.70", "port_protocol": "mqtt", "sni": None}
CERTIFICATE = {
    "tls_certificate": "CN=broker1.example,O=Example", "tls_certificate_issuer": "CN=Lab CA,O=Example",
    "tls_certificate_names": "broker1.example, *.brokers.example", "tls_certificate_begins": at(-60 * DAY),
    "tls_certificate_expires": at(300 * DAY),
}  # fmt: skip
REFUSES = {"tls_handshake": "refused by client", "tls_handshake_ms": None, "bytes_to_client": 2000}
REFUSED = {"tls_handshake": "refused by server", "tls_handshake_ms": None, "closed_by": "server"}
ASKED = {"tls_client_certificate_requested": True, "tls_client_sent": True}
OWN = {
    "tls_client_certificate": "CN=billing,O=Example", "tls_client_certificate_issuer": "CN=Other CA,O=Example",
    "tls_client_certificate_expires": at(100 * DAY),
}  # fmt: skip


def tls(number: int, seconds: float = 0.0, **more: Any) -> Row:
    """One TLS connection that works, whose certificate is not seen; closed by the client after half a minute."""
    row = {
        **SERVER, "flow_id": f"t{number}", "ts_first": at(seconds), "ts_last": at(seconds + 30), "protocol": None,
        "ts_closed": at(seconds + 30), "closed_by": "client", "client_address": "10.1.0.7", "file": "incident.pcapng",
        "client_port": 50_000 + number, "first_packet": number * 10 + 1, "packets": 40, "data_segments": 30,
        "bytes_to_server": 9000, "bytes_to_client": 9000, "handshake": "complete", "handshake_seen": True,
        "handshake_ms": 0.4, "gap_bytes": 0, "encrypted": True, "sni": "broker1.example",
        "tls_offered": "TLS 1.2, TLS 1.3",
        "tls_version": "TLS 1.3", "tls_cipher": "TLS_AES_256_GCM_SHA384", "tls_handshake": "complete",
        "tls_handshake_ms": 4.0, "tls_answer_ms": 2.0, "tls_resumed": False, "tls_resumption_offered": False,
        "tls_client_certificate_requested": False, "tls_client_sent": False, "client_opening": "tls",
        "server_opening": "tls",
    }  # fmt: skip
    return row | more


def clear(number: int, seconds: float = 0.0, **more: Any) -> Row:
    """One connection in clear text that is answered."""
    plain = {name: None for name in tls(0) if name.startswith("tls_") or name.endswith("_opening") or name == "sni"}
    return tls(number, seconds, **{**plain, "encrypted": False, "protocol": "kafka", **more})


def unheard(number: int, seconds: float = 0.0, **more: Any) -> Row:
    """One whose server closes without a byte."""
    nothing = {"bytes_to_client": 0, "closed_by": "server", "ts_closed": at(seconds + 0.1), "server_opening": None}
    return tls(number, seconds, **{**nothing, "tls_version": None, "tls_cipher": None, "tls_handshake": "broken off",
                                   "tls_handshake_ms": None, **more})  # fmt: skip


def _both(code: str, name: str, rows: Sequence[Row], *expected: tuple[str, str]) -> Scenario:
    """The rule, and another that has its own to say."""
    tables: Mapping[str, Sequence[Row]] = {"flows": rows}
    return Scenario(name, code, tables, frozenset(expected))


def _ends(days: float, begins: float = -60) -> Row:
    return {**CERTIFICATE, "tls_certificate_begins": at(begins * DAY), "tls_certificate_expires": at(days * DAY)}


def headed(count: int = 3, **more: Any) -> list[Row]:
    """Connections that begin with a PROXY header, which the server closes, and one of another client that is served."""
    opening = {"encrypted": False, "client_opening": "proxy", "tls_offered": None, "server_port": 1883, **MQTT, **more}
    served = clear(9, **MQTT, server_port=1883, protocol="mqtt", client_address="10.1.0.8")
    return [*(unheard(n, n, **opening) for n in range(count)), served]


TLS_FIRES: list[Scenario] = [
    fires("TLS101", "critical", "a client that does not know the issuer", flows=[
        tls(n, n, **REFUSES, client_tls_alert="fatal unknown_ca") for n in range(3)]),
    fires("TLS101", "critical", "no version in common", flows=[
        tls(1, **REFUSED, tls_version=None, tls_cipher=None, tls_offered="up to TLS 1.1",
            server_tls_alert="fatal protocol_version")]),
    fires("TLS101", "critical", "an encrypted alert of the client", flows=[tls(1, **REFUSES)]),
    fires("TLS101", "warning", "a client that gets in at other times", flows=[
        tls(1, **REFUSES, client_tls_alert="fatal bad_certificate"), tls(2, 5)]),
    fires("TLS101", "warning", "broken off again and again", flows=[
        tls(n, n, tls_handshake="broken off", tls_handshake_ms=None) for n in range(3)]),
    fires("TLS101", "critical", "at a port that brokers are known at", kafka_brokers=[
        {"host": "10.1.0.100", "port": 19_999, "server_address": "10.1.0.1", "server_port": 9092}],
        flows=[tls(1, **REFUSES, server_port=19_999, port_protocol=None)]),
    _both("TLS102", "expired, and refused", [
        tls(1, **REFUSES, **_ends(-1), client_tls_alert="fatal certificate_expired")],
          ("TLS102", "critical"), ("TLS101", "critical")),
    _both("TLS102", "out of its time, says the client of TLS 1.3", [
        tls(1, **REFUSES, client_tls_alert="fatal certificate_expired")],
          ("TLS102", "critical"), ("TLS101", "critical")),
    _both("TLS102", "another name, and refused", [
        tls(1, **REFUSES, **CERTIFICATE | {"sni": "other.example"}, client_tls_alert="fatal bad_certificate")],
          ("TLS102", "critical"), ("TLS101", "critical")),
    fires("TLS102", "warning", "expired, and nobody cares", flows=[tls(1, **_ends(-1))]),
    fires("TLS102", "warning", "not valid yet", flows=[tls(1, **_ends(300, 1))]),
    fires("TLS102", "warning", "three days left of ninety", flows=[tls(1, **_ends(3, -87))]),
    fires("TLS102", "info", "another name, and nobody cares", flows=[
        tls(1, **CERTIFICATE | {"sni": "a.b.brokers.example"})]),
    fires("TLS102", "warning", "a client's that is expired", flows=[
        tls(1, **ASKED, **OWN | {"tls_client_certificate_expires": at(-DAY)})]),
    fires("TLS103", "warning", "TLS 1.0", flows=[
        tls(1, tls_version="TLS 1.0", tls_cipher="TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA")]),
    fires("TLS103", "warning", "3DES", flows=[
        tls(1, tls_version="TLS 1.2", tls_cipher="TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA")]),
    fires("TLS103", "info", "no forward secrecy", flows=[
        tls(1, tls_version="TLS 1.2", tls_cipher="TLS_RSA_WITH_AES_128_GCM_SHA256")]),
    fires("TLS104", "warning", "a slow server", flows=[
        *(tls(n, n, tls_handshake_ms=1400.0, tls_answer_ms=1300.0) for n in range(3)), tls(9, 9)]),
    fires("TLS104", "warning", "a very slow client", flows=[tls(1, tls_handshake_ms=8000.0, tls_answer_ms=2.0)]),
    fires("TLS105", "warning", "a client that never offers a session", flows=[
        tls(n, n * 0.5, ts_closed=at(n * 0.5 + 0.2)) for n in range(110)]),
    fires("TLS105", "warning", "a server that does not take it", flows=[
        tls(n, n, ts_closed=at(n + 0.2), tls_resumption_offered=n > 0) for n in range(36)]),
    fires("TLS106", "critical", "TLS to a clear-text port", flows=[
        unheard(1, **MQTT, server_port=1883),
        clear(2, **MQTT, server_port=1883, protocol="mqtt", client_address="10.1.0.8")]),
    fires("TLS106", "info", "TLS to a clear-text port, as is said of the client", flows=[
        unheard(1), clear(2, client_address="10.1.0.8")]),
    fires("TLS106", "critical", "TLS to a server that waits for more", flows=[
        unheard(1, **MQTT, server_port=1883, closed_by="client"), clear(2, **MQTT, server_port=1883, protocol="mqtt")]),
    fires("TLS106", "critical", "TLS to a usual port that closes", flows=[
        unheard(n, n, server_port=29_092) for n in range(2)]),
    fires("TLS106", "warning", "HTTP to a usual port", flows=[
        unheard(1, encrypted=False, client_opening="http", tls_offered=None, server_port=29_092)]),
    fires("TLS106", "critical", "clear text, and an alert", flows=[
        clear(1, **MQTT, server_port=8883, protocol="mqtt", bytes_to_client=7, server_opening="tls",
              server_tls_alert="fatal unexpected_message")]),
    fires("TLS106", "info", "clear text, and an alert, as is said of the client", flows=[
        clear(1, bytes_to_client=7, server_opening="tls", server_tls_alert="fatal unexpected_message")]),
    fires("TLS106", "critical", "clear text to a port where others speak TLS", flows=[
        clear(1, **MQTT, server_port=8884, protocol="mqtt", bytes_to_client=0, closed_by="server"),
        tls(2, **MQTT, server_port=8884, protocol="mqtt")]),
    fires("TLS106", "critical", "clear text to port 8883", flows=[
        clear(n, n, **MQTT, server_port=8883, protocol="mqtt", bytes_to_client=0, closed_by="server")
        for n in range(3)]),
    fires("TLS106", "critical", "a PROXY header to a server that does not know it", flows=headed()),
    fires("TLS106", "critical", "a PROXY header to a Kafka broker", flows=[
        unheard(n, n, encrypted=False, client_opening="proxy", tls_offered=None) for n in range(3)]),
    fires("TLS106", "critical", "a PROXY header, and a TLS alert", flows=[
        clear(n, protocol=None, client_opening="proxy", server_opening="tls", bytes_to_client=7, closed_by="server",
              server_tls_alert="fatal unexpected_message") for n in range(3)]),
    fires("TLS106", "warning", "HTTP to a TLS port", flows=[
        clear(1, protocol=None, client_opening="http", server_opening="tls",
              server_tls_alert="fatal unexpected_message")]),
    fires("TLS106", "critical", "MQTT to a web server", flows=[
        clear(n, n, **MQTT, server_port=1883, protocol="mqtt", server_opening="http") for n in range(3)]),
    _both("TLS107", "no certificate", [
        tls(1, **REFUSED, tls_client_certificate_requested=True, server_tls_alert="fatal certificate_required")],
          ("TLS107", "critical"), ("TLS101", "critical")),
    _both("TLS107", "no certificate, told by lengths", [
        tls(n, n, **REFUSED, tls_client_certificate_requested=True) for n in range(2)],
          ("TLS107", "critical"), ("TLS101", "critical")),
    _both("TLS107", "a certificate of somebody else's", [
        tls(1, **REFUSED, **ASKED, **OWN, server_tls_alert="fatal unknown_ca")],
          ("TLS107", "critical"), ("TLS101", "critical")),
]  # fmt: skip

TLS_NEAR_MISSES: list[Scenario] = [
    silent("TLS106", "PROXY headers that the server takes, but for some that it closes", flows=[
        *headed(), clear(8, **MQTT, server_port=1883, client_opening="proxy")]),
    silent("TLS106", "a check of a balancer that ends itself", flows=headed(closed_by="client")),
    silent("TLS106", "a PROXY header once", flows=headed(1)),
    silent("TLS101", "web traffic that fails", flows=[
        tls(n, n, **REFUSES, **WEB, client_tls_alert="fatal unknown_ca") for n in range(5)]),
    silent("TLS101", "a handshake that goes on", flows=[tls(1, tls_handshake=None, tls_handshake_ms=None)]),
    silent("TLS101", "given up once", flows=[tls(1, tls_handshake="broken off", tls_handshake_ms=None)]),
    silent("TLS101", "given up by a client that gets in", flows=[
        *(tls(n, n, tls_handshake="broken off", tls_handshake_ms=None) for n in range(4)), tls(9, 9)]),
    silent("TLS102", "a certificate like most", flows=[tls(1, **CERTIFICATE), tls(2, **OWN, **ASKED)]),
    silent("TLS102", "a name for all of one level", flows=[tls(1, **CERTIFICATE | {"sni": "B1.brokers.example"})]),
    silent("TLS102", "a third of ninety days left", flows=[tls(1, **_ends(30, -60))]),
    silent("TLS102", "a day's certificate, renewed each night", flows=[tls(1, **_ends(0.35, -0.65))]),
    silent("TLS102", "a client that names nobody", flows=[tls(1, **CERTIFICATE | {"sni": None})]),
    silent("TLS102", "too many names to compare", flows=[tls(1, **CERTIFICATE | {"tls_certificate_names": None})]),
    silent("TLS102", "web traffic", flows=[tls(1, **WEB | _ends(-1))]),
    silent("TLS103", "ordinary suites", flows=[
        tls(1), tls(2, tls_version="TLS 1.2", tls_cipher="TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
        tls(3, tls_version="TLS 1.2", tls_cipher="0xFEFE")]),
    silent("TLS103", "TLS 1.0 that comes to nothing", ("TLS101", "critical"), flows=[
        tls(1, **REFUSES, tls_version="TLS 1.0", client_tls_alert="fatal protocol_version")]),
    silent("TLS104", "a process that has just started", flows=[
        tls(1, tls_handshake_ms=1300.0), tls(2, 1, tls_handshake_ms=1100.0), tls(3, 2)]),
    silent("TLS104", "a way of 300 ms", flows=[
        tls(n, n, handshake_ms=300.0, tls_handshake_ms=1200.0) for n in range(5)]),
    silent("TLS105", "programs that run once each", flows=[
        tls(n, n, ts_closed=at(n + 0.2)) for n in range(60)]),
    silent("TLS105", "connections that stay", flows=[tls(n, n) for n in range(40)]),
    silent("TLS105", "sessions that go on", flows=[
        tls(n, n, ts_closed=at(n + 0.2), tls_resumption_offered=n > 0, tls_resumed=n > 0) for n in range(40)]),
    silent("TLS106", "TLS to a TLS port, clear text to another", flows=[tls(1), clear(2, server_port=9092)]),
    silent("TLS106", "web traffic that is refused", flows=[unheard(n, **WEB) for n in range(3)]),
    silent("TLS106", "a TLS server that is overloaded", flows=[tls(1), unheard(2, 1), unheard(3, 2)]),
    silent("TLS106", "a clear-text server that closes", flows=[
        clear(1), clear(2, bytes_to_client=0, closed_by="server")]),
    silent("TLS106", "TLS whose ServerHello was not captured", flows=[
        tls(1, **MQTT, server_port=8883, server_opening=None, tls_version=None, gap_bytes=127,
            tls_decryption="start not captured")]),
    silent("TLS106", "TLS whose ClientHello was not captured", flows=[
        tls(1, client_opening=None, encrypted=False, gap_bytes=517, closed_by="server", server_tls_alert="fatal bad")]),
    silent("TLS106", "TLS whose SYN was not captured", flows=[
        tls(1, client_opening=None, handshake="unexplained", handshake_seen=False)]),
    silent("TLS106", "nobody is seen to be answered", flows=[unheard(n, n, closed_by="client") for n in range(3)]),
    silent("TLS106", "MQTT over WebSocket", flows=[
        clear(1, **MQTT, server_port=8080, protocol="mqtt", client_opening="http", server_opening="http")]),
    silent("TLS106", "MQTT over WebSocket, whose begin is not in the capture", flows=[
        clear(1, **MQTT, server_port=8080, protocol="mqtt", carrier="websocket", server_opening="http")]),
    silent("TLS107", "mutual TLS that works", flows=[tls(1, **ASKED, **OWN, **CERTIFICATE)]),
    silent("TLS107", "a certificate is asked for, and not needed", flows=[
        tls(1, tls_client_certificate_requested=True)]),
    silent("TLS107", "refused for another reason", ("TLS101", "critical"), flows=[
        tls(1, **REFUSED, server_tls_alert="fatal handshake_failure")]),
]  # fmt: skip
