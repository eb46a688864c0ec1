"""Encrypted twins of the samples, read with their keys, have the tables of the clear ones.

What differs is what the wire shows: offsets and ids made of them, packets, and TCP's own numbers.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.packets import Captured, pcap
from tests.support.shares import share
from tests.support.tls_twin import SUITES_12, TLS_12, TLS_13, Sides, twin
from tests.support.wire import packets_of, resegmented
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.tables import TABLES

SAMPLE_NAMES = sorted(path.name for path in SAMPLES.glob("*.pcapng"))
SMALL = ["kafka_sasl.pcapng", "mongo_healthy.pcapng", "mqtt_faults.pcapng", "mqtt_websocket.pcapng"]
KINDS = [(TLS_13, None), *((TLS_12, suite) for suite in SUITES_12)]
COMPARED = ["messages", "exchanges", *(name for name in TABLES if name.partition("_")[0] in ("kafka", "mqtt", "mongo"))]
# What the wire shows: places in the stream and what is made of them, what carries it, what TCP confirmed.
_WIRE = re.compile(
    r"flow_id|(\w+_)?(message|exchange|connection|publish|session|cursor_flow|finding)_id|stream_offset|transport"
    r"|(\w+_)?stream_offset|acked_\w+|(\w+_)?retransmitted_\w+|\w*cluster_id|\w*_flow(_id)?|bytes_to_\w+|encrypted"
    r"|\w+_opening"
)


class Twin(NamedTuple):
    clear: Path
    encrypted: Path
    keylog: Path

    def rows(self, *, keyed: bool, processes: int = 1) -> dict[str, list[tuple[Any, ...]]]:
        """Rows of all compared tables: of the encrypted capture with its keys, or of the clear one."""
        options = ReadOptions(keylogs=(str(self.keylog),) if keyed else (), processes=processes)
        with wirewitness.read(self.encrypted if keyed else self.clear, options=options, tables=COMPARED) as analysis:
            return {name: comparable(analysis.arrow(name)) for name in COMPARED}


def comparable(table: pa.Table) -> list[tuple[Any, ...]]:
    names = [name for name in table.column_names if not _WIRE.fullmatch(name) and "file" not in name]
    columns = [[str(value) for value in table.column(name).to_pylist()] for name in names]
    return sorted(zip(*columns, strict=True))


Make = Callable[[str, ssl.TLSVersion, str | None], Twin]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    folder = tmp_path_factory.mktemp("twins")

    def made(name: str, version: ssl.TLSVersion, suite: str | None) -> Twin:
        stem = f"{Path(name).stem}-{version.name}-{suite}"
        found = Twin(*(folder / f"{stem}-{kind}" for kind in ("clear.pcap", "tls.pcap", "keys.log")))
        if not found.keylog.exists():
            sides = Sides(version, suite)
            encrypted, clear = twin(packets_of(SAMPLES / name), sides)
            found.clear.write_bytes(pcap(clear, nanoseconds=True))
            found.encrypted.write_bytes(pcap(encrypted, nanoseconds=True))
            found.keylog.write_bytes(sides.keylog)
        return found

    return made


@pytest.mark.parametrize("name", share(SAMPLE_NAMES, SMALL))
@pytest.mark.parametrize("version", [TLS_13, TLS_12])
def test_every_sample(make: Make, name: str, version: ssl.TLSVersion) -> None:
    twins = make(name, version, None)
    expected, found = twins.rows(keyed=False), twins.rows(keyed=True)
    assert found == expected
    assert any(expected.values())


@pytest.mark.parametrize(("version", "suite"), KINDS, ids=["1.3", *SUITES_12])
def test_every_suite(make: Make, version: ssl.TLSVersion, suite: str | None) -> None:
    twins = make("mongo_healthy.pcapng", version, suite)
    assert twins.rows(keyed=True) == twins.rows(keyed=False)


@pytest.mark.parametrize("size", [50, 700])
@pytest.mark.parametrize("version", [TLS_13, TLS_12])
@pytest.mark.parametrize("name", ["mongo_healthy.pcapng", "mqtt_websocket.pcapng"])
def test_a_message_is_whole_with_the_last_segment_of_its_record(
    tmp_path: Path, name: str, version: ssl.TLSVersion, size: int
) -> None:
    """Also where that holds nothing but the record's tag: each write is one record here, cut into segments."""
    sides = Sides(version)
    capture, keylog = tmp_path / "tls.pcap", tmp_path / "keys.log"
    ends: dict[int, int] = {}
    packets: list[Captured] = []
    for packet in twin(packets_of(SAMPLES / name), sides)[0]:
        packets += resegmented([packet], size)
        ends[len(packets)] = packets[-1].ts_ns
    capture.write_bytes(pcap(packets, nanoseconds=True))
    keylog.write_bytes(sides.keylog)
    with wirewitness.read(capture, options=ReadOptions(keylogs=(str(keylog),)), tables=["messages"]) as analysis:
        rows = analysis.connection.execute("SELECT packet_first, packet_last, epoch_ns(ts) FROM messages").fetchall()
    assert len(rows) > 20
    assert [row for row in rows if ends.get(row[1]) != row[2]] == []
    assert any(first < last for first, last, _ in rows)
