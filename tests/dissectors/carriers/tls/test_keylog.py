"""Key logs as they are found: every secret that can be used is, and nothing else costs more than its size."""

from __future__ import annotations

import pickle
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.dissectors.carriers.tls.keylog import (
    CLIENT_HANDSHAKE,
    CLIENT_TRAFFIC,
    EARLY,
    MASTER,
    MOST_LINE_BYTES,
    SERVER_HANDSHAKE,
    SERVER_TRAFFIC,
    SESSION,
    KeyLogReader,
    KeyRing,
)

RANDOM, MASTER_SECRET, SECRET = bytes(range(32)), bytes(range(48)), bytes(range(100, 132))


def line(label: str, secret: bytes, found_by: bytes = RANDOM) -> bytes:
    return f"{label} {found_by.hex()} {secret.hex()}".encode()


def read(text: bytes, cut: int = 1 << 20, most: int = 1000) -> tuple[KeyRing, KeyLogReader]:
    ring = KeyRing(most)
    reader = KeyLogReader(ring)
    for at in range(0, len(text), cut):
        reader.feed(text[at : at + cut])
    reader.end()
    return ring, reader


@pytest.mark.parametrize(
    ("text", "kind", "found_by", "secret"),
    [
        (line("CLIENT_RANDOM", MASTER_SECRET), MASTER, RANDOM, MASTER_SECRET),
        (line("CLIENT_EARLY_TRAFFIC_SECRET", SECRET), EARLY, RANDOM, SECRET),
        (line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", SECRET), CLIENT_HANDSHAKE, RANDOM, SECRET),
        (line("SERVER_HANDSHAKE_TRAFFIC_SECRET", SECRET), SERVER_HANDSHAKE, RANDOM, SECRET),
        (line("CLIENT_TRAFFIC_SECRET_0", SECRET), CLIENT_TRAFFIC, RANDOM, SECRET),
        (line("SERVER_TRAFFIC_SECRET_0", SECRET), SERVER_TRAFFIC, RANDOM, SECRET),
        (line("CLIENT_TRAFFIC_SECRET_0", SECRET + bytes(32)), CLIENT_TRAFFIC, RANDOM, SECRET + bytes(32)),
        (line("CLIENT_RANDOM", MASTER_SECRET).upper(), MASTER, RANDOM, MASTER_SECRET),
        (b"  " + line("CLIENT_RANDOM", MASTER_SECRET).replace(b" ", b"\t") + b" \r", MASTER, RANDOM, MASTER_SECRET),
        (b"RSA Session-ID:0a0b Master-Key:" + MASTER_SECRET.hex().encode(), SESSION, b"\x0a\x0b", MASTER_SECRET),
    ],
    ids=["master", "early", "client hs", "server hs", "client", "server", "padded", "capitals", "spaces", "session"],
)
def test_a_line(text: bytes, kind: int, found_by: bytes, secret: bytes) -> None:
    for whole in (text, b"# made by somebody\n\n" + text + b"\n", b"\xff\x00\n" + text + b"\nCLIENT_RANDOM 00"):
        ring, reader = read(whole)
        assert ring.secrets(kind, found_by) == (secret,)
        assert (len(ring), reader.secrets) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        b"# CLIENT_RANDOM",
        b"",
        b" \r",
        line("EXPORTER_SECRET", SECRET),
        line("EARLY_EXPORTER_SECRET", SECRET),
        line("SERVER_TRAFFIC_SECRET_1", SECRET),
        line("QUIC_CLIENT_TRAFFIC_SECRET_0", SECRET),
        b"RSA Session-ID: Master-Key:" + MASTER_SECRET.hex().encode(),
    ],
)
def test_what_may_stand_there_is_no_damage(text: bytes) -> None:
    _, reader = read(text + b"\n" + line("CLIENT_RANDOM", MASTER_SECRET))
    assert (reader.secrets, reader.damaged) == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        line("CLIENT_RANDOM", MASTER_SECRET)[:-1],
        line("CLIENT_RANDOM", MASTER_SECRET[:-1]),
        line("CLIENT_RANDOM", MASTER_SECRET, RANDOM[:-1]),
        line("SERVER_TRAFFIC_SECRET_0", SECRET[:-1]),
        line("SOME_SECRET", SECRET),
        b"\x16\x03\x01\x00",
        b"x" * (3 * MOST_LINE_BYTES),
    ],
    ids=["odd", "short secret", "short random", "short 1.3", "label", "binary", "long"],
)
def test_damage_is_counted_and_what_follows_is_read(text: bytes) -> None:
    for cut in (1 << 20, 1000):
        ring, reader = read(text + b"\n" + line("CLIENT_RANDOM", MASTER_SECRET) + b"\n", cut)
        assert (reader.secrets, reader.damaged) == (1, 1)
        assert ring.secrets(MASTER, RANDOM) == (MASTER_SECRET,)


@given(st.binary(max_size=3000), st.integers(1, 200), st.integers(0, 1 << 30))
def test_any_cut_gives_the_same(noise: bytes, cut: int, seed: int) -> None:
    dice = random.Random(seed)
    lines = [noise, line("CLIENT_RANDOM", MASTER_SECRET), line("SERVER_TRAFFIC_SECRET_0", SECRET), b"#"]
    text = b"\n".join(dice.sample(lines, len(lines)))
    (whole, first), (pieces, second) = read(text), read(text, cut)
    assert whole.entries() == pieces.entries()
    assert (first.secrets, first.damaged) == (second.secrets, second.damaged)
    assert first.secrets >= 2


def test_repeated_blocks_are_one_and_contradictions_are_all_tried() -> None:
    same = line("CLIENT_RANDOM", MASTER_SECRET) + b"\n"
    ring, reader = read(same * 3)
    assert (len(ring), reader.secrets, ring.version) == (1, 3, 1)
    ring, _ = read(same + b"".join(line("CLIENT_RANDOM", bytes([n] * 48)) + b"\n" for n in range(9)))
    found = ring.secrets(MASTER, RANDOM)
    assert len(found) == 4  # and no more, however many somebody writes
    assert found[0] == bytes([8] * 48)


def test_the_last_secrets_stay() -> None:
    many = [n.to_bytes(32) for n in range(1000)]
    ring, _ = read(b"\n".join(line("CLIENT_RANDOM", MASTER_SECRET, random) for random in many), most=100)
    assert 50 <= len(ring) <= 101
    assert ring.dropped == 1000 - len(ring)
    assert ring.secrets(MASTER, many[-1])
    assert not ring.secrets(MASTER, many[0])


def test_a_line_without_end_takes_no_memory() -> None:
    reader = KeyLogReader(KeyRing())
    tracemalloc.start()
    for _ in range(50):
        reader.feed(b"C" * (1 << 20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    assert reader.damaged == 1


def test_a_ring_goes_to_another_one_and_to_no_file() -> None:
    ring, _ = read(line("CLIENT_RANDOM", MASTER_SECRET) + b"\n" + line("CLIENT_RANDOM", MASTER_SECRET[::-1]))
    other = KeyRing()
    other.merge(ring.entries())
    assert other.secrets(MASTER, RANDOM) == ring.secrets(MASTER, RANDOM) == (MASTER_SECRET[::-1], MASTER_SECRET)
    with pytest.raises(TypeError):
        pickle.dumps(ring)
    assert MASTER_SECRET.hex() not in repr(ring)
    assert str(MASTER_SECRET) not in repr(ring)


def test_a_line_of_blanks_costs_its_length() -> None:
    """At the square of its length it would take an hour."""
    _, reader = read(b" " * (1 << 20) + b"x\n" + b" " * (1 << 20) + b"\n", cut=1 << 22)
    assert (reader.secrets, reader.damaged) == (0, 1)
