"""Authentication on a connection: mechanism, user and result are told, secrets are not."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.kafka.test_decoder import HEARTBEAT_OK, HEARTBEAT_V0, Wire
from wirewitness.dissectors.core.closed import closed_user
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.kafka.framing import framer, probe
from wirewitness.dissectors.kafka.sasl_tokens import Who, auth_bytes, gssapi_token, mechanism_of, who

SECRET = b"correct-horse-battery"
PLAIN = b"\0alice\0" + SECRET
SCRAM_1 = b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL"
SCRAM_2 = b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
SCRAM_ANSWERS = (b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096", b"v=rmF9pqV8S7suAoZWja4")
BEARER = b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.\x01\x01"
# Tag, length 15, object identifier of Kerberos 5, AP-REQ, the beginning of a ticket
KERBEROS = bytes.fromhex("60 0f 06 09 2a864886f712010202 0100 6e81")
SPNEGO = bytes.fromhex("60 81 0b 06 06 2b0601050502 a0030a")

EXCHANGES = ("operation", "version", "status", "error_code")
ROW = ("mechanism", "user_name", "form", "round_trips", "accepted", "reauthentication", "error_code")


@pytest.mark.parametrize(
    ("mechanism", "token", "expected"),
    [
        pytest.param("PLAIN", PLAIN, Who("alice", False), id="PLAIN"),
        pytest.param("PLAIN", b"admin\0alice\0" + SECRET, Who("alice", False), id="PLAIN with authzid"),
        pytest.param("PLAIN", "\0ålice\0x".encode(), Who("ålice", False), id="PLAIN in UTF-8"),
        pytest.param("PLAIN", b"\0alice", Who(None, None), id="PLAIN without password"),
        pytest.param("PLAIN", b"\0alice\0a\0b", Who(None, None), id="PLAIN with a part too many"),
        pytest.param("PLAIN", b"\0\0" + SECRET, Who(None, None), id="PLAIN without user"),
        pytest.param("PLAIN", b"", Who(None, None), id="empty"),
        pytest.param("SCRAM-SHA-512", SCRAM_1, Who("alice", False), id="SCRAM"),
        pytest.param("SCRAM-SHA-256", b"y,a=boss,n=al=2Cice=3D,r=n", Who("al,ice=", False), id="SCRAM escapes"),
        pytest.param("SCRAM-SHA-256", b"p=tls-unique,,n=alice,r=n", Who("alice", False), id="SCRAM channel binding"),
        pytest.param("SCRAM-SHA-512", b"n,,n=id-7,r=n,tokenauth=true", Who("id-7", True), id="delegation token"),
        pytest.param("SCRAM-SHA-512", SCRAM_2, Who(None, None), id="SCRAM, second token"),
        pytest.param("OAUTHBEARER", BEARER, Who(None, None), id="OAUTHBEARER"),
        pytest.param("GSSAPI", KERBEROS, Who(None, None), id="GSSAPI"),
        pytest.param(None, PLAIN, Who(None, None), id="unknown"),
    ],
)
def test_who(mechanism: str | None, token: bytes, expected: Who) -> None:
    assert who(mechanism, token) == expected


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (PLAIN, "PLAIN"),
        (SCRAM_1, "SCRAM"),
        (BEARER, "OAUTHBEARER"),
        (KERBEROS, "GSSAPI"),
        (SPNEGO, "GSSAPI"),
        (SCRAM_2, None),
        (b"", None),
        (b"\x60", None),
    ],
)
def test_mechanism_of_a_token_without_handshake(token: bytes, expected: str | None) -> None:
    assert mechanism_of(token) == expected


@given(st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", None]), st.binary(max_size=80))
def test_any_bytes_are_a_token(mechanism: str | None, token: bytes) -> None:
    who(mechanism, token)
    mechanism_of(token)
    auth_bytes(2, token, 0, len(token))
    auth_bytes(0, token, 0, len(token))


def test_gssapi_tokens_are_whole() -> None:
    assert gssapi_token(KERBEROS, 0, len(KERBEROS))
    assert not gssapi_token(KERBEROS, 0, len(KERBEROS) - 1)
    assert not gssapi_token(KERBEROS + b"\0", 0, len(KERBEROS) + 1)


def _said(value: bytes) -> bytes:
    """A bare token: its size, then its bytes."""
    return struct.pack(">i", len(value)) + value


def _handshake(wire: Wire, version: int, mechanism: str, code: int = 0, correlation: int = 1) -> Wire:
    name = mechanism.encode()
    wire.request(17, version, correlation, struct.pack(">h", len(name)) + name)
    return wire.response(correlation, struct.pack(">hi", code, 0))


def _bare(mechanism: str, asked: Sequence[bytes], answers: Sequence[bytes]) -> Wire:
    wire = _handshake(Wire(), 0, mechanism)
    for number, token in enumerate(asked):
        wire.raw(CLIENT_TO_SERVER, token)
        if number < len(answers):
            wire.raw(SERVER_TO_CLIENT, answers[number])
    return wire


def _visible(wire: Wire) -> str:
    """Everything that leaves the decoder."""
    return repr({table: list(rows) for table, rows in wire.out.tables().items()})


@pytest.mark.parametrize(
    ("mechanism", "asked", "answers", "user", "statuses"),
    [
        pytest.param("PLAIN", [PLAIN], [b""], "alice", ["ok"], id="PLAIN"),
        pytest.param("PLAIN", [b"\0a\0b"], [b""], "a", ["ok"], id="PLAIN as short as can be"),
        pytest.param("SCRAM-SHA-512", [SCRAM_1, SCRAM_2], SCRAM_ANSWERS, "alice", ["ok", "ok"], id="SCRAM"),
        pytest.param(
            "GSSAPI",
            [KERBEROS, b"", b"\x05\x04\x04\xff" + bytes(28)],
            [b"\x60\x05abcde", b"\x05\x04\x05\xff" + bytes(28)],
            None,
            ["ok", "ok", "one_way"],
            id="GSSAPI",
        ),
        pytest.param("OAUTHBEARER", [BEARER], [b""], None, ["ok"], id="OAUTHBEARER"),
    ],
)
def test_bare_tokens_until_requests_begin_again(
    mechanism: str, asked: list[bytes], answers: Sequence[bytes], user: str | None, statuses: list[str]
) -> None:
    wire = _bare(mechanism, asked, answers).request(12, 0, 2, HEARTBEAT_V0).response(2, HEARTBEAT_OK).finish()
    assert sorted(row for row in wire.rows("exchanges", *EXCHANGES) if row[0] == "SaslToken") == sorted(
        ("SaslToken", None, status, None) for status in statuses
    )
    assert wire.rows("exchanges", *EXCHANGES)[-1] == ("Heartbeat", "0", "ok", 0)
    assert wire.rows("kafka_authentications", *ROW) == [
        (mechanism, user, "bare_tokens", len(answers), True, False, None)
    ]
    assert wire.remarks() == []
    words = f"mechanism={mechanism}" + (f" user_name={closed_user(user)}" if user else "")
    assert {row[0] for row in wire.rows("messages", "summary", "operation") if row[1] == "SaslToken"} == {words}
    seen = _visible(wire)
    for token in (*asked, *answers):
        assert len(token) < 8 or (repr(token)[2:-1] not in seen and token.hex() not in seen)
    assert SECRET.decode() not in seen


def test_gssapi_without_handshake() -> None:
    wire = Wire().raw(CLIENT_TO_SERVER, KERBEROS).raw(SERVER_TO_CLIENT, b"\x60\x05abcde")
    wire.raw(CLIENT_TO_SERVER, b"").raw(SERVER_TO_CLIENT, bytes(32)).raw(CLIENT_TO_SERVER, bytes(36))
    wire.request(12, 0, 2, HEARTBEAT_V0).response(2, HEARTBEAT_OK).finish()
    assert wire.rows("kafka_authentications", *ROW) == [("GSSAPI", None, "bare_tokens", 2, True, False, None)]
    assert [row[0] for row in wire.rows("exchanges", "operation")][-1] == "Heartbeat"
    assert wire.remarks() == []


def test_a_wrong_password_in_a_bare_token_is_left_unanswered() -> None:
    wire = _bare("PLAIN", [PLAIN], []).finish()
    assert wire.rows("kafka_authentications", *ROW) == [("PLAIN", "alice", "bare_tokens", 0, None, False, None)]
    assert ("SaslToken", None, "unanswered", None) in wire.rows("exchanges", *EXCHANGES)


@pytest.mark.parametrize("version", [0, 1], ids=["v0", "v1"])
def test_a_refused_mechanism(version: int) -> None:
    wire = _handshake(Wire(), version, "PLAIN", 33)
    form = "sasl_authenticate" if version else "bare_tokens"
    assert wire.rows("kafka_authentications", *ROW) == [("PLAIN", None, form, 0, False, False, 33)]


def _authenticate(wire: Wire, correlation: int, token: bytes, code: int, lifetime: int, version: int = 1) -> Wire:
    answer = struct.pack(">hhiq", code, -1, 0, lifetime)
    body = struct.pack(">i", len(token)) + token
    if version >= 2:
        answer = struct.pack(">BhBBqB", 0, code, 0, 1, lifetime, 0)
        body = b"\0" + bytes([len(token) + 1]) + token + b"\0"
    return wire.request(36, version, correlation, body).response(correlation, answer)


@pytest.mark.parametrize("version", [1, 2])
def test_sasl_authenticate_and_again_before_the_session_ends(version: int) -> None:
    wire = _handshake(Wire(), 1, "SCRAM-SHA-512")
    _authenticate(wire, 2, SCRAM_1, 0, 0, version)
    _authenticate(wire, 3, SCRAM_2, 0, 60_000, version)
    wire.request(12, 0, 4, HEARTBEAT_V0).response(4, HEARTBEAT_OK)
    _authenticate(_handshake(wire, 1, "PLAIN", correlation=5), 6, PLAIN, 58, 0, version).finish()
    assert wire.rows("kafka_authentications", *ROW, "session_lifetime_ms") == [
        ("SCRAM-SHA-512", "alice", "sasl_authenticate", 2, True, False, 0, 60_000),
        ("PLAIN", "alice", "sasl_authenticate", 1, False, True, 58, 0),
    ]
    assert wire.remarks() == []
    assert SECRET.decode() not in _visible(wire)
    assert "v0X8v3Bz2T0CJGbJQyF0X" not in _visible(wire)


def test_an_authentication_without_handshake_is_told_by_its_token() -> None:
    wire = _authenticate(Wire(), 2, PLAIN, 0, 0).finish()
    assert wire.rows("kafka_authentications", *ROW) == [("PLAIN", "alice", "sasl_authenticate", 1, True, False, 0)]


def test_half_an_exchange_proves_nothing() -> None:
    wire = _authenticate(_handshake(Wire(), 1, "SCRAM-SHA-256"), 2, SCRAM_1, 0, 0).finish()
    assert wire.rows("kafka_authentications", "accepted", "round_trips") == [(None, 1)]


def test_a_bare_token_whose_handshake_is_not_in_the_capture_shows_nothing() -> None:
    # Read as a header, a long password behind a name of seven letters would be the client id.
    token = b"\0service\0" + b"\x70" + SECRET * 8
    wire = Wire().raw(CLIENT_TO_SERVER, bytes(8)).raw(CLIENT_TO_SERVER, token).finish()
    assert SECRET.decode() not in _visible(wire)


def test_waiting_tokens_are_bounded() -> None:
    wire = _bare("PLAIN", [PLAIN] * 100, []).finish()
    found = wire.rows("exchanges", *EXCHANGES)
    assert found.count(("SaslToken", None, None, None)) == 84
    assert found.count(("SaslToken", None, "unanswered", None)) == 16


@pytest.mark.parametrize("direction", [CLIENT_TO_SERVER, SERVER_TO_CLIENT])
def test_short_tokens_are_frames_where_the_stream_is_seen_from_its_start(direction: int) -> None:
    data = _said(b"") + _said(b"\0a\0b") + _said(bytes(20))
    cut = framer(direction, True, Limits()).feed(data, [0], lambda position: False)
    assert (cut.starts, cut.ends) == ([0, 4, 12], [4, 12, 36])
    pieces = framer(direction, True, Limits())
    held, sizes = b"", []
    for at in range(len(data)):
        held += data[at : at + 1]
        found = pieces.feed(held, [0], lambda position: False)
        sizes += [end - start for start, end in zip(found.starts, found.ends, strict=True)]
        held = held[found.position :]
    assert sizes == [4, 8, 24]


def test_zeros_are_no_endless_row_of_tokens() -> None:
    cut = framer(CLIENT_TO_SERVER, True, Limits()).feed(bytes(4000), [0], lambda position: False)
    assert len(cut.starts) == 16


def test_a_connection_that_begins_with_a_ticket_is_kafka() -> None:
    assert probe(_said(KERBEROS), b"", True) >= 50
    assert probe(_said(KERBEROS)[:20], b"", True) >= 50
    assert probe(KERBEROS, b"", True) < 50
