"""The generated captures of the bench are what they claim to be, as tshark sees them."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.bench.programs import TSHARK_FIELDS, Found, count_tshark
from tests.support.replay import Replayed, replay

DECODE = ("-d", "tcp.port==9092,kafka", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
WRONG = (
    "_ws.malformed || kafka.unsupported_api_version || kafka.request_missing || tcp.checksum.status == 0"
    " || ip.checksum.status == 0 || tcp.analysis.flags || frame.time_delta < 0"
)


@pytest.fixture(scope="module", params=["small", "bulk"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Replayed]:
    """A capture of each profile and what the generator says about it."""
    path = tmp_path_factory.mktemp("replay") / f"{request.param}.pcap"
    return path, replay(path, request.param, packets=5000, flows=6)


def rows(tshark: str, path: Path, *arguments: str) -> list[list[str]]:
    """tshark's columns for every packet."""
    done = subprocess.run([tshark, "-r", str(path), *DECODE, *arguments], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_nothing_is_wrong_with_any_packet(tshark: str, made: tuple[Path, Replayed]) -> None:
    path, _ = made
    assert rows(tshark, path, "-Y", WRONG) == []


def test_sizes_are_as_told(tshark: str, made: tuple[Path, Replayed]) -> None:
    path, told = made
    streams = [int(stream) for (stream,) in rows(tshark, path, "-T", "fields", "-e", "tcp.stream")]
    assert (len(streams), len(set(streams))) == (told.packets, told.flows)
    assert path.stat().st_size == told.size_bytes
    assert told.packets >= 5000


def test_every_request_is_answered(tshark: str, made: tuple[Path, Replayed], tmp_path: Path) -> None:
    path, told = made
    fields = list(TSHARK_FIELDS)
    given = [argument for name in fields for argument in ("-e", name)]
    text = tmp_path / "fields.tsv"
    text.write_text("\n".join("\t".join(row) for row in rows(tshark, path, "-T", "fields", *given)))
    assert count_tshark(text, fields) == Found(told.exchanges, told.exchanges)


def test_correlation_ids_rise_on_every_connection(tshark: str, made: tuple[Path, Replayed]) -> None:
    path, _ = made
    for port, name in (("tcp.dstport", "requests"), ("tcp.srcport", "responses")):
        by_stream: dict[str, list[int]] = {}
        for stream, ids in rows(
            tshark, path, "-Y", f"kafka && {port} == 9092",
            "-T", "fields", "-e", "tcp.stream", "-e", "kafka.correlation_id",
        ):  # fmt: skip
            by_stream.setdefault(stream, []).extend(int(number) for number in ids.split(","))
        assert by_stream, name
        assert all(later == earlier + 1 for ids in by_stream.values() for earlier, later in pairwise(ids)), name
