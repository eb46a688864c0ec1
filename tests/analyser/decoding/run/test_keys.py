"""Keys of a run: logs that grow, and encrypted connections with what happens to packets on their way."""

from __future__ import annotations

import io
import random
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.support.packets import SYN, Captured, pcap
from tests.support.tls_twin import TLS_12, TLS_13, Sides, twin
from tests.support.wire import duplicated, lossy, packets_of, resegmented
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.keys import Keys
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.carriers.tls.keylog import MASTER, MOST_SECRETS
from wirewitness.dissectors.registry import dissectors

VERSIONS = {"1.2": TLS_12, "1.3": TLS_13}
LINE = b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48


@cache
def made(name: str, version: str) -> tuple[list[Captured], list[Captured], bytes]:
    """Encrypted, clear, key log."""
    sides = Sides(VERSIONS[version])
    return *twin(packets_of(SAMPLES / f"{name}.pcapng"), sides), sides.keylog


def sources(*packets: Sequence[Captured]) -> Iterator[Source]:
    for number, part in enumerate(packets):
        yield Source(f"{number}.pcap", stream=io.BytesIO(pcap(part, nanoseconds=True)))


def messages(decoded: Decoded) -> Counter[tuple[Any, ...]]:
    """Complete messages, by what they are."""
    try:
        names = ("direction", "role", "operation", "version", "length_bytes", "correlation_id", "ts")
        rows = [row for batch in decoded.store.tables["messages"].batches() for row in batch.to_pylist()]
        return Counter(tuple(row[name] for name in names) for row in rows if row["complete"])
    finally:
        decoded.store.close()


def read(captures: Iterator[Source], keys: Keys | None = None) -> Counter[tuple[Any, ...]]:
    return messages(Pipeline(dissectors(()), ["messages"], ReadOptions(), keys=keys).run(captures))


def keys_of(folder: Path, keylog: bytes) -> Keys:
    (folder / "keys.log").write_bytes(keylog)
    return Keys([str(folder / "keys.log")])


def disordered(packets: Sequence[Captured]) -> list[Captured]:
    """Packets out of order, but none before the SYN of its connection."""
    dice = random.Random(1)
    keyed = [(at + (0 if one.data[47] & SYN else dice.uniform(0, 3)), at) for at, one in enumerate(packets)]
    return [packets[at] for _, at in sorted(keyed)]


def test_a_log_that_grows(tmp_path: Path) -> None:
    """As in `live`: the client writes its key when its handshake is through, and packets may be faster."""
    encrypted, clear, keylog = made("mongo_healthy", "1.3")
    keys = keys_of(tmp_path, b"")
    keys.follow()
    half = len(encrypted) // 2

    def growing() -> Iterator[Source]:
        first, second = sources(encrypted[:half], encrypted[half:])
        yield first
        with (tmp_path / "keys.log").open("ab") as log:
            log.write(keylog)
        yield second

    found, expected = read(growing(), keys), read(sources(clear[:half], clear[half:]))
    assert sum(found.values()) > sum(expected.values()) // 2  # connections that were over by then are not opened
    assert not found - expected


def test_only_what_was_appended_is_read(tmp_path: Path) -> None:
    keys = keys_of(tmp_path, b"")
    keys.refresh()
    path = tmp_path / "keys.log"
    path.write_bytes(LINE[:40])
    keys.refresh()
    assert not keys.ring.secrets(MASTER, b"\xab" * 32)
    keys.follow()
    keys.refresh()
    with path.open("ab") as log:
        log.write(LINE[40:] + b"\n")
    keys.refresh()
    assert keys.ring.secrets(MASTER, b"\xab" * 32) == (b"\xcd" * 48,)
    assert keys.remarks() == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mongo_healthy", "kafka_fenced_commit", "mqtt_faults"])
def test_packets_on_other_ways(tmp_path: Path, name: str, version: str) -> None:
    """Out of order, doubled and cut into small ones, an encrypted connection is the same to its last message."""
    encrypted, clear, keylog = made(name, version)
    ways: list[Callable[[Sequence[Captured]], list[Captured]]] = [
        disordered, partial(duplicated, seed=2), partial(resegmented, size=300)
    ]  # fmt: skip
    for way in ways:
        found = read(sources(way(encrypted)), keys_of(tmp_path, keylog))
        # In disorder an answer may come before what it answers; cut into small packets, both are what they were.
        expected = read(sources(clear if way is ways[2] else way(clear)))
        assert Counter((*row[:-1],) for row in found.elements()) == Counter((*row[:-1],) for row in expected.elements())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mongo_healthy", "kafka_fenced_commit", "mqtt_faults"])
def test_losses(tmp_path: Path, name: str, version: str) -> None:
    """Whatever is lost, no message is made up; most of them are still there."""
    encrypted, clear, keylog = made(name, version)
    expected = Counter((*row[:-1],) for row in read(sources(clear)).elements())
    for seed in range(3):
        found = read(sources(lossy(encrypted, seed, 0.02)), keys_of(tmp_path, keylog))
        complete = Counter((*row[:-1],) for row in found.elements())
        # What a response answers is not known where its request is lost.
        sizes, known = ({(row[0], *row[4:]) for row in rows} for rows in (complete, expected))
        assert not sizes - known
        assert sum(complete.values()) > sum(expected.values()) // 4


def test_the_middle_of_connections_is_not_guessed(tmp_path: Path) -> None:
    encrypted, _, keylog = made("kafka_fenced_commit", "1.3")
    for begin in (200, len(encrypted) // 2):
        pipeline = Pipeline(dissectors(()), ["messages"], ReadOptions(), keys=keys_of(tmp_path, keylog))
        decoded = pipeline.run(sources(encrypted[begin:]))
        states = Counter(row["tls_decryption"] for row in decoded.flows_table().to_pylist() if row["encrypted"])
        decoded.store.close()
        assert states["start not captured"]
        assert states.keys() <= {"start not captured", "decrypted"}


def states_of(packets: Sequence[Captured], keys: Keys) -> Counter[str | None]:
    """What became of encrypted connections."""
    decoded = Pipeline(dissectors(()), ["messages"], ReadOptions(), keys=keys).run(sources(packets))
    found = Counter(row["tls_decryption"] for row in decoded.flows_table().to_pylist() if row["encrypted"])
    decoded.store.close()
    return found


def without_first_data(packets: Sequence[Captured], from_port: Callable[[int], bool]) -> list[Captured]:
    """The first packet with data of each sender is lost, where it sends from such a port."""
    lost: set[bytes] = set()
    found = []
    for one in packets:
        sender, size = one.data[26:38], len(one.data) - 34 - 4 * (one.data[46] >> 4)
        if size > 0 and sender not in lost and from_port(int.from_bytes(sender[8:10])):
            lost.add(sender)
        else:
            found.append(one)
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["kafka_fenced_commit", "mqtt_faults"])
@pytest.mark.parametrize("lost_of", ["client", "server"])
def test_a_start_that_was_lost_is_no_start_before_the_capture(
    tmp_path: Path, name: str, version: str, lost_of: str
) -> None:
    encrypted, _, keylog = made(name, version)
    left = without_first_data(encrypted, lambda port: (port < 20_000) == (lost_of == "server"))
    assert len(left) < len(encrypted)
    states = states_of(left, keys_of(tmp_path, keylog))
    assert states["start lost"] > 2
    assert states.keys() <= {"start lost", None}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("snap_bytes", [96, 150])
def test_a_snap_length_that_cuts_the_hellos(tmp_path: Path, version: str, snap_bytes: int) -> None:
    encrypted, _, keylog = made("kafka_fenced_commit", version)
    cut = [Captured(one.ts_ns, one.data[:snap_bytes], len(one.data)) for one in encrypted]
    states = states_of(cut, keys_of(tmp_path, keylog))
    assert states["cut by snap length"] > 2
    assert states.keys() == {"cut by snap length"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_snap_length_that_cuts_all_that_is_encrypted(tmp_path: Path, version: str) -> None:
    """The hellos are whole, and the key is known: no record is."""
    encrypted, _, keylog = made("kafka_fenced_commit", version)
    seen: Counter[bytes] = Counter()
    cut = []
    for one in encrypted:
        sender, header = one.data[26:38], 34 + 4 * (one.data[46] >> 4)
        is_hello = len(one.data) > header and not seen[sender]
        seen[sender] += len(one.data) > header
        # Of the server's first packet the ServerHello, which TLS 1.3 encrypts nothing of.
        keep = header + 5 + int.from_bytes(one.data[header + 3 : header + 5]) if is_hello else header + 8
        cut.append(Captured(one.ts_ns, one.data[:keep], len(one.data)))
    states = states_of(cut, keys_of(tmp_path, keylog))
    assert states["cut by snap length"] > 2
    assert states.keys() == {"cut by snap length"}


def test_a_file_of_a_gigabyte_takes_no_memory(tmp_path: Path) -> None:
    """Without an end of line; what is behind the limit is not read, and that is said."""
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    tracemalloc.start()
    try:
        keys = Keys([str(path)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(keys.ring) == 0
    assert peak < 16 << 20
    assert keys.remarks() == [f"{path}: what is behind 512 MiB of this key log is not read"]


def test_a_binary_file_with_a_secret_in_it(tmp_path: Path) -> None:
    """A memory image, say: the line is found, and there is one remark on all that is none."""
    path = tmp_path / "image"
    line = b"CLIENT_TRAFFIC_SECRET_0 " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n"
    noise = random.Random(1).randbytes(8 << 20)
    path.write_bytes(noise + b"\n" + line + noise)
    keys = Keys([str(path)])
    assert len(keys.ring) == 1
    (remark,) = keys.remarks()
    assert re.fullmatch(rf"{re.escape(str(path))}: [\d,]+ lines of this key log cannot be read", remark)


def test_a_log_of_more_secrets_than_are_kept(tmp_path: Path) -> None:
    """The last ones stay: they belong to the latest connections."""
    path = tmp_path / "long"
    lines = (b"CLIENT_TRAFFIC_SECRET_0 %064x %064x\n" % (number, number + 1) for number in range(MOST_SECRETS + 5000))
    path.write_bytes(b"".join(lines))
    keys = Keys([str(path)])
    assert len(keys.ring) <= MOST_SECRETS
    (remark,) = keys.remarks()
    assert remark.endswith("secrets of the key logs are left out: the last ones are kept")
    last = (MOST_SECRETS + 4999).to_bytes(32)
    assert any(key.endswith(last) for key in keys.ring.entries())
