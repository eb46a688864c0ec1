"""The same bytes give the same tables and findings: from a file or standard input, in whatever pieces they come."""

from __future__ import annotations

import gzip
import io
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import lz4.frame
import pytest
import zstandard
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

import wirewitness
from tests.conftest import SAMPLES
from tests.support.packets import Captured, enhanced, interface, option, pcap, section
from tests.support.shares import examples, pairs, share, smallest, turns
from tests.support.whole import NAME, Whole, differences, whole_of
from tests.support.wire import duplicated, lossy, packets_of, reordered, resegmented
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureError, Source
from wirewitness.analyser.capture.growing import Growing
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

CAPTURES = sorted(SAMPLES.glob("*.pcapng"))
# Short captures that have findings, group traffic, authentication and administration among them.
SHORT = ("kafka_fenced_commit", "kafka_sasl", "kafka_admin", "kafka_old_clients")
SMALL_BYTES = 300_000
ALL = tuple(TABLES)
# Findings cost as much as all else. They are made of tables only, so they are compared for the short captures.
ALL_BUT_FINDINGS = tuple(name for name in TABLES if name != "findings")
# An example takes half a second: making a failing one smaller would take the whole time of a run.
SLOW = examples(
    6,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def as_pcapng(packets: list[Captured]) -> bytes:
    """The packets as pcapng with times in nanoseconds."""
    blocks = [enhanced(packet.data, packet.ts_ns, wire=packet.wire) for packet in packets]
    return section() + interface(options=option(9, b"\x09")) + b"".join(blocks)


FORMATS: dict[str, Callable[[list[Captured]], bytes]] = {
    "pcap": pcap,
    "pcap big-endian ns": lambda packets: pcap(packets, order=">", nanoseconds=True),
    "pcapng": as_pcapng,
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
}


@cache
def packets(name: str) -> tuple[Captured, ...]:
    return tuple(packets_of(SAMPLES / f"{name}.pcapng"))


class Stretch(NamedTuple):
    """The first packets of a real capture; doubled: some of them are there twice. damage: a key of DAMAGES."""

    sample: str
    count: int
    seed: int
    doubled: bool
    damage: str | None = None

    def packets(self) -> list[Captured]:
        """The packets."""
        found = list(packets(self.sample)[: self.count])
        if self.damage is not None:
            found = DAMAGES[self.damage](found, self.seed)
        return duplicated(found, self.seed) if self.doubled else found


def _from_the_middle(packets: list[Captured], seed: int) -> list[Captured]:
    """Connections that were open before the capture."""
    return packets[seed % len(packets) :]


def _cut_later(packets: list[Captured], _: int) -> list[Captured]:
    """Cut behind the first bytes of a message, once the connections' protocols are told."""
    return [Captured(packet.ts_ns, packet.data[: 2000 if place < 60 else 96], packet.wire)
            for place, packet in enumerate(packets)]  # fmt: skip


DAMAGES: dict[str, Callable[[list[Captured], int], list[Captured]]] = {
    "1 % lost": lambda packets, seed: lossy(packets, seed, 0.01),
    "5 % lost": lambda packets, seed: lossy(packets, seed, 0.05),
    "5 % lost of small segments": lambda packets, seed: lossy(resegmented(packets, 90), seed, 0.05),
    "displaced": reordered,
    "lost and displaced": lambda packets, seed: reordered(lossy(packets, seed, 0.03), seed),
    "cut": _cut_later,
    "from the middle": _from_the_middle,
    "lost from the middle": lambda packets, seed: lossy(_from_the_middle(packets, seed), seed, 0.03),
}
STRETCHES = st.builds(
    Stretch,
    sample=st.sampled_from(SHORT),
    count=st.integers(30, 600),
    seed=st.integers(0, 1 << 16),
    doubled=st.booleans(),
    damage=st.none(),
)
# Of all protocols and of a carrier: what boundaries are found must not be a matter of the blocks.
DAMAGED = (
    "kafka_fenced_commit", "kafka_sasl", "kafka_admin", "mqtt_v5_features", "mqtt_other_broker", "mqtt_qos2_stuck",
    "mqtt_websocket", "mongo_healthy", "mongo_show_databases", "mongo_shapes_and_errors", "mongo_compressed",
)  # fmt: skip
DAMAGED_STRETCHES = st.builds(
    Stretch,
    sample=st.sampled_from(DAMAGED),
    count=st.integers(30, 200),
    seed=st.integers(0, 1 << 16),
    doubled=st.booleans(),
    damage=st.sampled_from(sorted(DAMAGES)),
)


def from_file(path: Path, tables: Sequence[str] = ALL) -> Whole | str:
    """Tables read from a file; the sentence when it is no capture."""
    return _read(str(path), tables)


def from_standard_input(content: bytes, seed: int, tables: Sequence[str] = ALL) -> Whole | str:
    """The same through a pipe that delivers pieces of random sizes, sometimes so late that they are a block."""
    reading, writing = os.pipe()
    writer = threading.Thread(target=_write, args=(writing, content, seed))
    writer.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(reading, "r") as stdin:
        patch.setattr("sys.stdin", stdin)
        found = _read("-", tables)
    writer.join()
    return found


def _read(name: str, tables: Sequence[str]) -> Whole | str:
    try:
        with wirewitness.read(name, tables=tables) as analysis:
            return whole_of(analysis, name)
    except CaptureError as error:
        return str(error).replace(name, NAME)


def _write(descriptor: int, content: bytes, seed: int) -> None:
    dice = random.Random(seed)
    pauses = 3
    with suppress(BrokenPipeError), os.fdopen(descriptor, "wb", buffering=0) as pipe:
        at = 0
        while at < len(content):
            size = dice.choice((1, 17, 500, 9000, 70_000))
            pipe.write(content[at : at + size])
            at += size
            if pauses and dice.random() < 0.05:
                pauses -= 1
                time.sleep(0.11)


def assert_equal(first: Whole | str, second: Whole | str) -> None:
    if isinstance(first, str) or isinstance(second, str):
        assert first == second
    else:
        assert differences(first, second) == []


@cache
def sample(path: Path) -> Whole:
    """A sample read from its file, with findings where they are compared, too."""
    found = from_file(path, ALL if path.stem in SHORT else ALL_BUT_FINDINGS)
    assert isinstance(found, Whole)
    return found


@pytest.mark.parametrize("path", share(CAPTURES, smallest(CAPTURES)), ids=lambda path: path.stem)
def test_a_sample_from_standard_input(path: Path) -> None:
    expected = sample(path)
    assert expected.tables["exchanges"].num_rows
    found = from_standard_input(path.read_bytes(), len(path.name), tuple(expected.tables))
    assert_equal(found, expected)


@pytest.mark.parametrize("packing", [name for name in PACKED if name != "plain"])
def test_a_packed_sample_is_the_sample(packing: str, tmp_path: Path) -> None:
    path = SAMPLES / "kafka_fenced_commit.pcapng"
    content = PACKED[packing](path.read_bytes())
    (tmp_path / "packed").write_bytes(content)
    packed, plain = from_file(tmp_path / "packed"), sample(path)
    assert_equal(from_standard_input(content, seed=1), packed)
    assert isinstance(packed, Whole)
    assert plain.tables["findings"].num_rows
    # The format column says how it was packed.
    assert [line.split(":")[0] for line in differences(packed, plain)] == ["captures"]


@SLOW
@given(
    stretch=STRETCHES,
    form=st.sampled_from(sorted(FORMATS)),
    packing=st.sampled_from(sorted(PACKED)),
    kept=st.just(1.0) | st.floats(0, 1),
    seed=st.integers(0, 1 << 16),
)
def test_any_capture_from_standard_input(
    tmp_path_factory: pytest.TempPathFactory, stretch: Stretch, form: str, packing: str, kept: float, seed: int
) -> None:
    content = PACKED[packing](FORMATS[form](stretch.packets()))
    content = content[: int(kept * len(content))]
    path = tmp_path_factory.mktemp("captures") / "given"
    path.write_bytes(content)
    assert_equal(from_standard_input(content, seed), from_file(path))


class Pieces(io.RawIOBase):
    """A file whose reads give pieces of random sizes."""

    def __init__(self, content: bytes, seed: int, largest: int) -> None:
        self._content = io.BytesIO(content)
        self._dice = random.Random(seed)
        self._largest = largest

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """As io.RawIOBase.readinto."""
        piece = self._content.read(min(self._dice.randint(1, self._largest), len(target)))
        target[: len(piece)] = piece
        return len(piece)


def in_blocks(stream: BinaryIO, **capture: int) -> Whole:
    """All tables but findings of a stream, with these limits of the capture layer."""
    limits = Limits()
    limits = replace(limits, capture=replace(limits.capture, **capture))
    decoded = Pipeline(PROTOCOLS, ALL_BUT_FINDINGS, ReadOptions(), limits).run([Source(NAME, stream=stream)])
    with analysis_of(decoded, ALL_BUT_FINDINGS, ReadOptions(), PROTOCOLS.values()) as analysis:
        return whole_of(analysis, NAME)


def split_anywhere(content: bytes, seed: int, largest: int) -> Whole:
    """Read so that every piece is a block of its own: a source without patience hands on what it has."""
    pieces = Growing(cast(BinaryIO, Pieces(content, seed, largest)), lambda: True)
    return in_blocks(cast(BinaryIO, pieces), handover_ms=0)


@pytest.mark.parametrize("path", share(CAPTURES, smallest(CAPTURES)), ids=lambda path: path.stem)
def test_a_sample_in_blocks(path: Path) -> None:
    content = path.read_bytes()
    expected = sample(path)
    whole = expected._replace(tables={name: expected.tables[name] for name in ALL_BUT_FINDINGS})
    for blocks in (150, 7) if len(content) < SMALL_BYTES else (7,):
        found = in_blocks(io.BytesIO(content), block_bytes=len(content) // blocks)
        assert differences(found, whole) == []


@SLOW
@given(
    stretch=STRETCHES,
    form=st.sampled_from(sorted(FORMATS)),
    seed=st.integers(0, 1 << 16),
    largest=st.sampled_from([700, 5000, 100_000]),
)
def test_any_split_into_blocks(stretch: Stretch, form: str, seed: int, largest: int) -> None:
    content = FORMATS[form](stretch.packets())
    whole = in_blocks(io.BytesIO(content))
    assert differences(split_anywhere(content, seed, largest), whole) == []
    assert differences(in_blocks(io.BytesIO(content), block_bytes=largest), whole) == []


@SLOW
@given(
    stretch=DAMAGED_STRETCHES,
    seed=st.integers(0, 1 << 16),
    largest=st.sampled_from([2000, 10_000, 40_000]),
)
def test_any_split_of_a_damaged_capture(stretch: Stretch, seed: int, largest: int) -> None:
    content = pcap(stretch.packets(), nanoseconds=True)
    whole = in_blocks(io.BytesIO(content))
    assert differences(split_anywhere(content, seed, largest), whole) == []
    assert differences(in_blocks(io.BytesIO(content), block_bytes=largest), whole) == []


# One sample of each protocol meets each damage.
PLACES = {damage: place for place, damage in enumerate(DAMAGES)}
SAMPLES_MET = ("kafka_fenced_commit", "mqtt_v5_features", "mongo_shapes_and_errors")
MET = [(name, damage) for name in SAMPLES_MET for damage in DAMAGES]


@pytest.mark.parametrize(("name", "damage"), pairs(MET, turns(SAMPLES_MET, DAMAGES)))
def test_a_damaged_sample_in_blocks(name: str, damage: str) -> None:
    content = pcap(Stretch(name, 250, 11 + PLACES[damage], False, damage).packets(), nanoseconds=True)
    whole = in_blocks(io.BytesIO(content))
    assert whole.tables["messages"].num_rows
    assert differences(in_blocks(io.BytesIO(content), block_bytes=len(content) // 20), whole) == []
