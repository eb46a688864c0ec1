"""The line of a message is found again after rotation has renamed its log, and never in another log."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.analyser.decoding.run.test_logs import asks
from wirewitness.analyser.analysis.evidence.bytes import BytesGone
from wirewitness.analyser.analysis.evidence.logged import line_of
from wirewitness.analyser.analysis.evidence.rows import FlowRow, MessageRow
from wirewitness.analyser.capture import Source
from wirewitness.analyser.capture.opening import probed
from wirewitness.dissectors.core.model import packet_of


def log(path: Path, *numbers: int) -> bytes:
    data = "".join(asks(number, 1000 * number) for number in numbers).encode()
    path.write_bytes(data)
    return data


def row(line: int) -> MessageRow:
    flow = FlowRow(0, "ab", "kafka", ("10.0.0.11", 40000), ("10.0.0.2", 9092), "", (None, None))
    place = packet_of(0, line)
    return MessageRow(flow, 0, 1, None, place, place, 0, "request", "Heartbeat", "4", True, None)


NAMES = ["request.log.1", "request.log.2.gz", "request.log.2026-11-20-09", "request.log-20261120.gz"]


@pytest.mark.parametrize("name", NAMES)
def test_a_renamed_log_is_found_beside_the_new_one(name: str, tmp_path: Path) -> None:
    path = tmp_path / "request.log"
    data = log(path, 1, 2, 3)
    known = probed(Source(str(path), path))
    path.unlink()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    log(path, 7, 8, 9)
    assert b'"correlationId":2' in line_of(row(2), [known]).replace(b" ", b"")


def test_another_log_is_never_read_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "request.log"
    log(path, 1, 2, 3)
    known = probed(Source(str(path), path))
    log(path, 7, 8, 9)
    (tmp_path / "request.log.1").write_text("no log")
    with pytest.raises(BytesGone, match="is another log by now"):
        line_of(row(2), [known])
