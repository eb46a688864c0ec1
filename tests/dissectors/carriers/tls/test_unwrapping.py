"""TLS by OpenSSL is read to the last byte, with all that may happen to bytes on their way, and nothing is made up."""

from __future__ import annotations

import hmac
import pickle
import random
import ssl
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.dissectors.carriers.tls.reading import Piece, pieces, read, ring_of
from tests.support.tls_twin import SUBJECT, SUITES_12, TLS_12, TLS_13, Pair, Sides
from wirewitness.dissectors.carriers.tls import opening_records
from wirewitness.dissectors.carriers.tls.carrier import tls
from wirewitness.dissectors.core.carrier import Carried, Told
from wirewitness.dissectors.core.encryption import (
    DECRYPTED,
    LOST,
    NO_KEY,
    UNSUPPORTED,
    UNSUPPORTED_VERSION,
    WRONG_KEY,
    Encryption,
)
from wirewitness.dissectors.core.limits import Limits

KINDS = [(TLS_13, None), *((TLS_12, suite) for suite in SUITES_12)]
NAMES = ["1.3", *SUITES_12]
HEADER = 5
_NO_ENCRYPT_THEN_MAC = 1 << 19  # SSL_OP_NO_ENCRYPT_THEN_MAC, which the module ssl has no name for


def subject_of(facts: Encryption, side: int) -> str | None:
    """Of the certificate of client (0) or server (1)."""
    held = facts.certificates[side]
    return None if held is None else held.subject


def talked(sides: Sides, seed: int = 1, turns: int = 12, longest: int = 40_000) -> tuple[Pair, dict[bool, list[bytes]]]:
    """A connection on which both sides said something."""
    dice = random.Random(seed)
    pair = Pair(sides).handshake()
    said: dict[bool, list[bytes]] = {True: [], False: []}
    for _ in range(turns):
        from_client = dice.random() < 0.5
        data = dice.randbytes(dice.choice((1, 30, 700, 16_384, longest)))
        pair.send(from_client, data)
        said[from_client].append(data)
    return pair, said


def records(stream: bytes) -> list[tuple[int, int]]:
    """Where each record begins and ends."""
    found, at = [], 0
    while at < len(stream):
        end = at + HEADER + int.from_bytes(stream[at + 3 : at + 5])
        found.append((at, end))
        at = end
    return found


@pytest.mark.parametrize(("version", "suite"), KINDS, ids=NAMES)
@pytest.mark.parametrize("size", [1, 1460, 1 << 20])
def test_every_byte_of_every_suite(version: ssl.TLSVersion, suite: str | None, size: int) -> None:
    sides = Sides(version, suite)
    pair, said = talked(sides, turns=4 if size == 1 else 12, longest=20_000)
    found = read(pair, sides.keylog, pieces(pair.stream(True), size), pieces(pair.stream(False), size))
    for side in (True, False):
        assert found.data(side) == b"".join(said[side])
    assert found.codes() == []
    assert found.facts.decryption == DECRYPTED
    assert found.facts.version == ("TLS 1.3" if version == TLS_13 else "TLS 1.2")
    assert found.facts.cipher is not None
    assert (found.facts.sni, found.facts.resumed) == ("broker1.example", False)
    assert subject_of(found.facts, 1) == SUBJECT


@pytest.mark.parametrize(("version", "suite"), KINDS, ids=NAMES)
def test_inner_bytes_have_their_places(version: ssl.TLSVersion, suite: str | None) -> None:
    """What a stream cipher did to a byte stands at its place: changing that byte changes the record, no other one."""
    sides = Sides(version, suite)
    pair, _ = talked(sides)
    for item in read(pair, sides.keylog).items[0]:
        assert isinstance(item, Carried)
        assert len(item.data) == item.end - item.start
        start, end = next(bounds for bounds in records(pair.stream(True)) if bounds[0] <= item.start < bounds[1])
        assert start + HEADER <= item.start < item.end <= end
        lead = item.start - start - HEADER
        assert lead == (16 if "SHA" in str(suite) and "GCM" not in str(suite) else 0 if version == TLS_13 or "CHACHA" in
                        str(suite) else 8)  # fmt: skip


@pytest.mark.parametrize("version", [TLS_12, TLS_13])
def test_alpn_a_certificate_of_the_client_and_a_resumed_session(version: ssl.TLSVersion) -> None:
    sides = Sides(version, mutual=True, alpn="kafka")
    first = Pair(sides).handshake()
    first.send(False, b"ticket is read with this")
    facts = read(first, sides.keylog).facts
    assert (facts.alpn, subject_of(facts, 0), facts.resumed) == ("kafka", SUBJECT, False)
    again = Pair(sides, first.client.session).handshake()
    again.send(True, b"once more")
    found = read(again, sides.keylog)
    assert (found.facts.resumed, subject_of(found.facts, 1), found.data(True)) == (True, None, b"once more")


def test_another_hello_is_asked_for() -> None:
    sides = Sides(TLS_13)
    sides.server.set_ecdh_curve("secp384r1")  # the client's first offer is another one
    pair, said = talked(sides)
    assert pair.stream(True).count(b"\x16\x03") >= 2
    found = read(pair, sides.keylog)
    assert found.data(True) == b"".join(said[True])
    assert found.facts.decryption == DECRYPTED


def test_a_refusal_inside_the_handshake_has_its_name() -> None:
    sides = Sides(TLS_13, mutual=True)
    bare = Sides(TLS_13)
    sides.client = bare.client
    pair = Pair(sides)
    with pytest.raises(ssl.SSLError):
        refused(pair)
    found = read(pair, bare.keylog)
    assert found.facts.alerts == [None, "fatal certificate_required"]
    assert "tls_alert" in found.codes()
    told = next(item for item in found.items[1] if isinstance(item, Told))
    assert "handshake ended with an alert: certificate_required" in told.text


def refused(pair: Pair) -> None:
    """The client of TLS 1.3 thinks that all is well until it hears of it."""
    pair.handshake()
    pair.send(True, b"hello")


@pytest.mark.parametrize(("version", "suite"), KINDS, ids=NAMES)
def test_what_is_missing_is_named(version: ssl.TLSVersion, suite: str | None) -> None:
    sides = Sides(version, suite)
    pair, _ = talked(sides)
    without = read(pair, b"")
    assert without.facts.decryption == NO_KEY
    assert without.codes() == []  # nobody gave keys, so that there is none needs no remark
    assert subject_of(without.facts, 1) == (SUBJECT if version == TLS_12 else None)
    other = Sides(version, suite)
    talked(other)
    assert read(pair, other.keylog).codes() == ["tls_no_key"] * 2
    wrong = read(pair, b"".join(changed(line) for line in sides.keylog.splitlines(keepends=True)))
    assert wrong.facts.decryption == WRONG_KEY
    assert wrong.data(True) == wrong.data(False) == b""
    assert set(wrong.codes()) == {"tls_wrong_key"}  # where there were enough records to be certain


def changed(line: bytes) -> bytes:
    """The line with another secret."""
    if line.startswith(b"#"):
        return line
    label, found_by, secret = line.split()
    return b" ".join((label, found_by, bytes(reversed(secret)))) + b"\n"


@pytest.mark.parametrize(
    ("version", "suite", "expected"),
    [
        (TLS_12, "ECDHE-ARIA256-GCM-SHA384", UNSUPPORTED),
        (TLS_12, "CAMELLIA128-SHA", UNSUPPORTED),
        (ssl.TLSVersion.TLSv1_1, "AES128-SHA", UNSUPPORTED_VERSION),
    ],
)
def test_what_is_not_supported_is_named(version: ssl.TLSVersion, suite: str, expected: str) -> None:
    sides = Sides(version, suite)
    pair, _ = talked(sides)
    found = read(pair, sides.keylog)
    assert found.facts.decryption == expected
    assert found.data(True) == found.data(False) == b""


@pytest.mark.parametrize("kept", ["HANDSHAKE", "_TRAFFIC_SECRET_0"])
def test_a_log_with_half_of_the_secrets(kept: str) -> None:
    """Those of the data are enough; those of the handshake alone show its messages."""
    sides = Sides(TLS_13)
    pair, said = talked(sides)
    lines = [line for line in sides.keylog.splitlines() if kept.encode() in line]
    found = read(pair, b"\n".join(lines))
    if kept == "HANDSHAKE":
        assert (found.facts.decryption, subject_of(found.facts, 1)) == (NO_KEY, SUBJECT)
        assert found.data(True) == b""
    else:
        assert (found.facts.decryption, subject_of(found.facts, 1)) == (DECRYPTED, None)
        assert found.data(True) == b"".join(said[True])


def test_secrets_that_are_padded_and_logs_that_contradict_each_other() -> None:
    sides = Sides(TLS_13)
    pair, said = talked(sides)
    padded = b"".join(line.rstrip() + b"0" * (128 - len(line.split()[2])) + b"\n"
                      for line in sides.keylog.splitlines() if not line.startswith(b"#"))  # fmt: skip
    wrong = b"".join(map(changed, sides.keylog.splitlines(keepends=True)))
    for text in (padded, wrong + sides.keylog, sides.keylog + wrong):
        assert read(pair, text).data(False) == b"".join(said[False])


def test_a_session_id_finds_the_master_secret() -> None:
    sides = Sides(TLS_12)
    sides.server.options |= ssl.OP_NO_TICKET  # so that the server gives an id
    pair, said = talked(sides)
    session = pair.client.session
    assert session is not None
    master = next(line.split()[2] for line in sides.keylog.splitlines() if line.startswith(b"CLIENT_RANDOM"))
    text = b"RSA Session-ID:" + session.id.hex().encode() + b" Master-Key:" + master
    assert read(pair, text).data(True) == b"".join(said[True])


@pytest.mark.parametrize(("version", "suite"), KINDS, ids=NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 30))
def test_behind_a_loss_decryption_goes_on(version: ssl.TLSVersion, suite: str | None, seed: int) -> None:
    """What comes is a part of what was said, in its order, and whole from the second record behind the loss on."""
    dice = random.Random(seed)
    sides = Sides(version, suite)
    pair, said = talked(sides, seed, turns=20, longest=3000)
    for _ in range(5):
        pair.send(False, dice.randbytes(300))
        said[False].append(b"")
    stream = pair.stream(False)
    bounds = records(stream)
    first = next(at for at, (start, _) in enumerate(bounds) if stream[start] == 23 and at > 6)
    start = dice.randrange(bounds[first][0], bounds[-5][0])
    size = dice.randrange(1, min(9000, bounds[-4][0] - start))
    step = dice.choice((1, 700, 1 << 20))
    given_: list[Piece] = [*pieces(stream[:start], step), size, *pieces(stream[start + size :], step)]
    found = read(pair, sides.keylog, server=given_)
    whole = read(pair, sides.keylog)
    everything = whole.data(False)
    before, *_, after = found.parts(False)
    assert everything.startswith(before)
    assert everything.endswith(after)
    assert found.facts.sides[1] == LOST
    lost = [bound for bound in bounds if bound[1] > start and bound[0] < start + size]
    inner = {item.start: item for item in whole.items[1] if isinstance(item, Carried)}
    missing = sum(len(item.data) for at, item in inner.items() if any(a <= at < b for a, b in lost))
    assert len(before) + len(after) == len(everything) - missing


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 30), which=st.sampled_from(range(len(KINDS))))
def test_no_damage_makes_anything_up(seed: int, which: int) -> None:
    """Changed, lost, repeated and random bytes: each piece of data is one that was said, and the time is bounded."""
    dice = random.Random(seed)
    sides = Sides(*KINDS[which])
    pair, _ = talked(sides, seed, turns=10, longest=3000)
    whole = read(pair, sides.keylog)
    told = {(item.data) for item in whole.items[1] if isinstance(item, Carried)}
    stream = bytearray(pair.stream(False))
    begin = records(pair.stream(False))[0][1]
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(begin, len(stream))
        match dice.randrange(5):
            case 0:
                stream[at] ^= 1 << dice.randrange(8)
            case 1:
                del stream[at : at + dice.randrange(1, 3000)]
            case 2:
                stream[at:at] = dice.randbytes(dice.randrange(1, 3000))
            case 3:  # a length that lies
                start = dice.choice(records(pair.stream(False)))[0]
                stream[start + 3 : start + 5] = dice.randbytes(2)
            case _:
                stream[at:at] = stream[at : at + 2000]
        begin = min(begin, max(len(stream) - 1, 0))
    given_: list[Piece] = pieces(bytes(stream), dice.choice((100, 1460)))
    if dice.random() < 0.5:
        given_.insert(dice.randrange(1, len(given_) + 1), dice.choice((0, 1, 5000)))
    found = read(pair, sides.keylog, server=given_)
    for item in found.items[1]:
        if isinstance(item, Carried):
            assert item.data in told


def test_random_bytes_behind_the_handshake_cost_little() -> None:
    sides = Sides(TLS_13)
    pair = Pair(sides).handshake()
    noise = random.Random(7).randbytes(4 << 20)
    lying = b"".join(b"\x17\x03\x03\x41\x00" + noise[at : at + 300] for at in range(0, 1 << 20, 300))
    for rubbish in (noise, lying):
        found = read(pair, sides.keylog, server=[pair.stream(False), *pieces(rubbish, 1460)])
        assert found.data(False) == b""
        assert found.facts.sides[1] == LOST
        assert len(found.codes()) <= 3


def test_many_connections_try_no_more_than_all_may() -> None:
    """Of records that are none; what is found behind a small loss asks for none of it."""
    sides = Sides(TLS_13)
    pair = Pair(sides).handshake()
    for _ in range(8):
        pair.send(False, bytes(2000))
    stream, bounds = pair.stream(False), records(pair.stream(False))
    noise = b"".join(b"\x17\x03\x03\x40\x00" + bytes(16_384) for _ in range(40))
    limits = Limits(max_tls_tries_of_all_bytes=3 << 20)
    left = [limits.tls_tries.left]
    for _ in range(4):
        read(pair, sides.keylog, server=[stream[: bounds[-6][0]], 1 << 20, noise], limits=limits)
        left.append(limits.tls_tries.left)
    assert left[0] > left[1] >= left[2] >= left[3] == left[4]
    lost = bounds[-6][1] - bounds[-6][0]
    found = read(pair, sides.keylog, server=[stream[: bounds[-6][0]], lost, stream[bounds[-5][0] :]], limits=limits)
    assert len(found.data(False)) == 7 * 2000


@pytest.mark.parametrize(
    ("options", "tried", "most_bytes"),
    [(0, (hmac, "digest"), 700), (_NO_ENCRYPT_THEN_MAC, (opening_records, "Cipher"), 1600)],
    ids=["MAC behind", "MAC inside"],
)
def test_a_try_of_a_short_record_is_charged_what_it_costs(
    options: int, tried: tuple[Any, str], most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made of records that no key opens: what all may try ends after so many ciphers or MACs as it pays for."""
    sides = Sides(TLS_12, "ECDHE-RSA-AES256-SHA384")
    sides.server.options |= options
    pair = Pair(sides).handshake()
    pair.send(False, bytes(2000))
    stream = pair.stream(False)
    before = stream[: records(stream)[-1][0]]
    noise = b"".join(b"\x17\x03\x03\x00\x50" + random.Random(n).randbytes(80) for n in range(40))
    real, tries = getattr(*tried), [0]

    def counted(*given: Any, **named: Any) -> Any:
        tries[0] += 1
        return real(*given, **named)

    limits = Limits(max_tls_tries_of_all_bytes=4 << 20)
    monkeypatch.setattr(*tried, counted)
    read(pair, sides.keylog, server=[before, 1 << 20, noise], limits=limits)
    read(pair, sides.keylog, server=[before, 1 << 20, noise], limits=limits)
    came = 2 * (len(noise) + len(stream) + len(pair.stream(True)))
    assert 1000 < tries[0] < ((4 << 20) + 8 * came) // most_bytes


def test_what_is_kept_has_no_key_and_goes_on_with_one() -> None:
    sides = Sides(TLS_13)
    pair, said = talked(sides)
    ring = ring_of(sides.keylog)
    carrier = tls(ring)
    opening = carrier.opening(pair.stream(True), pair.stream(False)[: 1 << 16])
    unwrapper, stream = carrier.unwrapper(0, opening, Limits()), pair.stream(True)
    found = unwrapper.feed(stream[:5000], 0)
    kept = pickle.dumps(unwrapper)
    for line in sides.keylog.splitlines():
        if not line.startswith(b"#"):
            assert bytes.fromhex(line.split()[2].decode()) not in kept
    again = pickle.loads(kept)
    assert carrier.again is not None
    carrier.again(again)
    found += again.feed(stream[5000:], 5000)
    assert b"".join(item.data for item in found if isinstance(item, Carried)) == b"".join(said[True])


def test_a_key_that_comes_late_opens_what_waited() -> None:
    sides = Sides(TLS_13)
    pair, said = talked(sides, longest=1000)
    ring = ring_of(b"")
    ring.may_grow = True
    carrier = tls(ring)
    opening = carrier.opening(pair.stream(True), pair.stream(False)[: 1 << 16])
    unwrapper, stream = carrier.unwrapper(0, opening, Limits()), pair.stream(True)
    assert not unwrapper.feed(stream[:3000], 0)
    ring.merge(ring_of(sides.keylog).entries())
    found = unwrapper.feed(stream[3000:], 3000)
    assert b"".join(item.data for item in found if isinstance(item, Carried)) == b"".join(said[True])
