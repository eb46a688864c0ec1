"""How handshakes by OpenSSL come out is told by columns of `flows`: with keys and, but for names, without."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tls_certificates import Authority
from tests.support.tls_failures import NAME, Ends, spoken, talk_of
from tests.support.wire import Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.tls_handshake import Handshake, Seen, handshake
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tcp.chunks import Run, Segments
from wirewitness.analyser.tcp.tls_records import MOST_RECORDS, RecordReader, TlsRecord
from wirewitness.dissectors.registry import PROTOCOLS

TABLES = ("flows", "expert_infos")
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
BOTH = pytest.mark.parametrize("version", [V12, V13], ids=["1.2", "1.3"])
KEYS = pytest.mark.parametrize("with_keys", [True, False], ids=["keys", "no keys"])


@cache
def authority(name: str = "Lab CA") -> Authority:
    return Authority(name)


@cache
def ends(case: str, version: ssl.TLSVersion) -> Ends:
    """Both sides of each case."""
    ours, other = authority(), authority("Other CA")
    good = ours.issue(NAME, [NAME, "10.0.0.2"])
    settings: Mapping[str, dict[str, Any]] = {
        "ok": {},
        "mutual": {"own": ours.issue("billing"), "wants_own": True},
        "no certificate": {"wants_own": True},
        "a certificate of another issuer": {"wants_own": True, "own": other.issue("billing")},
        "an expired one of the client": {"wants_own": True, "own": ours.issue("billing", expires_days=-1)},
        "an issuer that is not trusted": {"trusts": other},
        "expired": {"server": ours.issue(NAME, [NAME], expires_days=-1)},
        "another name": {"server": ours.issue("x", ["other.example"])},
        "another version": {"client_version": V12 if version == V13 else V13},
    }
    return Ends(version, ours, **{"server": good, **settings[case]})


def flow_of(talk: Talk, keylog: Sequence[str] = (), block_bytes: int = 1 << 20) -> dict[str, Any]:
    """Its row of `flows`, None for null."""
    options = ReadOptions(keylogs=tuple(keylog))
    decoded = decode(talk.packets, TABLES, options=options, block_bytes=block_bytes)
    with analysis_of(decoded, TABLES, options, PROTOCOLS.values()) as analysis:
        (row,) = analysis.table("flows").to_dict("records")
    return {name: None if pd.isna(value) else value for name, value in row.items()}


def read(
    case: str, version: ssl.TLSVersion, with_keys: bool, closed_by: str, block_bytes: int = 1 << 20
) -> dict[str, Any]:
    both = ends(case, version)
    wire = spoken(both)
    return flow_of(talk_of(wire, closed_by), [str(both.keylog)] if with_keys else [], block_bytes)


@BOTH
@KEYS
@pytest.mark.parametrize("block_bytes", [1 << 20, 400], ids=["at once", "in parts"])
def test_a_handshake_that_comes_out_well(version: ssl.TLSVersion, with_keys: bool, block_bytes: int) -> None:
    found = read("ok", version, with_keys, "client", block_bytes)
    assert (found["tls_handshake"], found["client_tls_alert"], found["server_tls_alert"]) == ("complete", None, None)
    assert (found["tls_answer_ms"], found["tls_handshake_ms"]) == (1.0, 3.0 if version == V12 else 2.0)
    assert (found["tls_client_certificate_requested"], found["tls_client_sent"] or False) == (False, False)
    assert found["tls_offered"] == ("up to TLS 1.2" if version == V12 else "TLS 1.3")
    assert found["port_protocol"] == "kafka"
    if with_keys or version == V12:
        assert found["tls_certificate_names"] == "broker1.example, 10.0.0.2"
        assert found["tls_certificate_issuer"] == "CN=Lab CA,O=Example"
        assert 359 < (found["tls_certificate_expires"] - found["tls_certificate_begins"]).days < 361
    else:
        assert found["tls_certificate_names"] is None


@BOTH
@KEYS
def test_a_certificate_of_the_client(version: ssl.TLSVersion, with_keys: bool) -> None:
    found = read("mutual", version, with_keys, "server")
    assert (found["tls_handshake"], found["tls_client_certificate_requested"], found["tls_client_sent"]) == (
        "complete",
        True,
        True,
    )
    seen = with_keys or version == V12
    assert found["tls_client_certificate"] == ("CN=billing,O=Example" if seen else None)
    assert (found["tls_client_certificate_expires"] is None) != seen


REFUSALS = {
    "no certificate": ("handshake_failure", "certificate_required", False),
    "a certificate of another issuer": ("unknown_ca", "unknown_ca", True),
    "an expired one of the client": ("certificate_expired", "certificate_expired", True),
}


@BOTH
@KEYS
@pytest.mark.parametrize("case", REFUSALS)
def test_a_server_that_refuses_a_client(case: str, version: ssl.TLSVersion, with_keys: bool) -> None:
    found = read(case, version, with_keys, "server")
    old, new, sent = REFUSALS[case]
    alert = f"fatal {old if version == V12 else new}"
    assert found["server_tls_alert"] == (alert if with_keys or version == V12 else None)
    assert (found["tls_handshake"], found["tls_handshake_ms"]) == ("refused by server", None)
    assert (found["tls_client_certificate_requested"], found["tls_client_sent"]) == (True, sent)


@BOTH
@pytest.mark.parametrize(
    ("case", "alert"),
    [
        ("an issuer that is not trusted", "unknown_ca"),
        ("expired", "certificate_expired"),
        ("another name", "bad_certificate"),
    ],
)
def test_a_client_that_refuses_a_server(case: str, alert: str, version: ssl.TLSVersion) -> None:
    found = read(case, version, True, "client")
    assert (found["tls_handshake"], found["client_tls_alert"]) == ("refused by client", f"fatal {alert}")
    assert found["tls_certificate_issuer"] == "CN=Lab CA,O=Example"


@BOTH
def test_no_version_in_common(version: ssl.TLSVersion) -> None:
    found = read("another version", version, False, "server")
    assert (found["tls_handshake"], found["server_tls_alert"]) == ("refused by server", "fatal protocol_version")
    assert (found["tls_version"], found["encrypted"], found["sni"]) == (None, True, NAME)
    assert found["tls_offered"] == ("TLS 1.3" if version == V12 else "up to TLS 1.2")


@BOTH
def test_where_nothing_ends_it_nothing_is_said(version: ssl.TLSVersion) -> None:
    wire = spoken(ends("ok", version))
    begun = [part for part in wire if part.from_client][:1] + [part for part in wire if not part.from_client][:1]
    assert flow_of(talk_of(begun))["tls_handshake"] is None
    assert flow_of(talk_of(begun, "client"))["tls_handshake"] == "broken off"


@BOTH
def test_a_handshake_with_a_gap_tells_nothing(version: ssl.TLSVersion) -> None:
    talk = talk_of(spoken(ends("ok", version)), "client")
    del talk.packets[4]  # of the server's first answer
    assert flow_of(talk)["tls_handshake"] is None


def test_time_is_counted_from_hello_to_finished() -> None:
    found = flow_of(talk_of(spoken(ends("ok", V13)), "client", delays={1: 2.0, 2: 3.0}))
    assert (found["tls_answer_ms"], found["tls_handshake_ms"]) == (2001.0, 5002.0)


def test_a_server_that_ends_a_quiet_connection_refuses_nobody() -> None:
    tag, hello, begin = 17, TlsRecord(22, 300, 0), 1_000_000
    client = [hello, TlsRecord(23, 52 + tag, begin)]
    server = [TlsRecord(22, 90, 1), TlsRecord(23, 900, 2), TlsRecord(23, 2 + tag, 60_000_000_000)]
    seen = Seen(True, "TLS_AES_256_GCM_SHA384", (False, False), 70_000_000_000, False, False)
    assert handshake(client, server, seen).state == "complete"
    soon = [*server[:2], TlsRecord(23, 2 + tag, 2 * begin)]
    assert handshake(client, soon, seen) == Handshake("refused by server", None, 1e-6, False, False)
    assert handshake(client, soon, seen._replace(closed_ns=begin)).state == "complete"  # the client had gone
    assert handshake(client, soon, seen._replace(decrypted=True)).state == "complete"  # the orderly end, as was read


@pytest.mark.parametrize("size", [19, 35], ids=["OpenSSL", "Java"])
def test_a_client_whose_alert_is_encrypted_refuses(size: int) -> None:
    """As soon as there are keys, alerts are under them. Sizes are those that were seen of Kafka's clients."""
    client, server = [TlsRecord(22, 300, 0), TlsRecord(23, size, 9)], [TlsRecord(22, 90, 1), TlsRecord(23, 900, 2)]
    seen = Seen(True, "TLS_AES_128_GCM_SHA256", (False, False), 20, False, False)
    assert handshake(client, server, seen).state == "refused by client"
    assert handshake([client[0], TlsRecord(23, 53, 9)], server, seen).state == "complete"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((25, 69, 85), (True, False)),
        ((93,), (True, False)),
        ((715, 95, 69), (True, True)),
        ((508, 86), (True, True)),
        ((69,), (False, False)),
        ((85,), (False, False)),
        ((40,), (None, None)),
    ],
)
@pytest.mark.parametrize("end", [19, 35], ids=["OpenSSL", "Java"])
def test_what_lengths_tell_of_the_certificate_of_a_client(
    sizes: tuple[int, ...], expected: tuple[bool | None, bool | None], end: int
) -> None:
    """Records of librdkafka and of Java's client before a broker that wants certificates (Kafka 4.3)."""
    client = [TlsRecord(22, 435, 0), TlsRecord(20, 1, 3), *(TlsRecord(23, size, 4) for size in sizes)]
    server = [TlsRecord(22, 122, 1), TlsRecord(20, 1, 1), TlsRecord(23, 707, 1), TlsRecord(23, end, 5)]
    found = handshake(client, server, Seen(True, "TLS_AES_256_GCM_SHA384", (False, False), 6, False, False))
    assert (found.state, found.client_asked, found.client_sent) == ("refused by server", *expected)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_records_however_the_bytes_are_cut(size: int) -> None:
    parts = [bytes([22, 3, 1]) + n.to_bytes(2) + bytes(n) for n in (5, 0, 700, 2)]
    data = b"".join(parts)
    reader = RecordReader()
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        reader.feed(Run([piece], len(piece), Segments([0], [1], [at], [1])))
    assert [record.size for record in reader.records] == [5, 0, 700, 2]
    begins = [0, 10, 15, 720]
    assert [record.ts_ns for record in reader.records] == [at // size * size for at in begins]


def test_records_are_bounded_and_noise_ends_them() -> None:
    reader = RecordReader()
    data = bytes([23, 3, 3, 0, 1, 0]) * 1000
    reader.feed(Run([data], len(data), Segments([0], [1], [1], [1])))
    assert (len(reader.records), reader.over) == (MOST_RECORDS, True)
    noise = RecordReader()
    noise.feed(Run([b"GET / HTTP/1.1"], 14, Segments([0], [1], [1], [1])))
    assert (noise.records, noise.over) == ([], True)


RECORDS = st.lists(
    st.builds(TlsRecord, st.integers(20, 23), st.sampled_from([0, 2, 19, 25, 35, 53, 69, 700]), st.integers(0, 10**10)),
    max_size=MOST_RECORDS,
)
SEEN = st.builds(
    Seen, st.booleans(), st.sampled_from([None, "TLS_AES_128_CCM_8_SHA256", "0xFEFE"]),
    st.tuples(st.booleans(), st.booleans()), st.none() | st.integers(0, 10**10), st.booleans(), st.booleans(),
)  # fmt: skip


@given(RECORDS.filter(bool), RECORDS, SEEN)
@settings(max_examples=300, deadline=None)
def test_any_records_tell_something_or_nothing(client: list[TlsRecord], server: list[TlsRecord], seen: Seen) -> None:
    found = handshake(client, server, seen)
    assert found.state in (None, "complete", "refused by client", "refused by server", "broken off")
    assert found.ms is None or found.ms >= 0
    assert found.ms is None or found.state == "complete"


@given(st.binary(max_size=300), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_records_or_none(noise: bytes, size: int) -> None:
    data = bytes([22, 3, 3]) + noise
    once, cut = RecordReader(), RecordReader()
    once.feed(Run([data], len(data), Segments([0], [1], [1], [1])))
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        cut.feed(Run([piece], len(piece), Segments([0], [1], [1], [1])))
    assert once.records == cut.records
    assert len(once.records) <= MOST_RECORDS
