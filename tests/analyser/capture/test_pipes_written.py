"""A capture written to a pipe: nobody who reads it is no reason never to end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wirewitness.analyser.base import written_files
from wirewitness.analyser.capture.ring_files import RingFiles, WritingStoppedError


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def files(pipe: Path, asked: list[bool]) -> RingFiles:
    """One file, whose capture is to end when no more answers are left."""
    return RingFiles(str(pipe), 0, 0, "", lambda: b"head", lambda: not asked or asked.pop())


def test_nobody_reads_it_and_the_capture_is_to_end(pipe: Path) -> None:
    asked = [False, False]
    with pytest.raises(WritingStoppedError, match="nobody reads that pipe"):
        files(pipe, asked).next_file()
    assert not asked


def test_nobody_reads_it_for_long(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "WAITED_S", 0.0)
    with pytest.raises(WritingStoppedError, match="nobody reads that pipe"):
        RingFiles(str(pipe), 0, 0, "", lambda: b"head").next_file()


def test_somebody_reads_it(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    written = files(pipe, [])
    written.next_file()
    written.write(b"packets")
    written.close()
    assert os.read(reader, 100) == b"headpackets"
    os.close(reader)


def test_its_reader_reads_no_more_and_the_capture_is_to_end(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    written = files(pipe, [])
    written.next_file()
    with pytest.raises(WritingStoppedError, match="nobody reads it"):
        written.write(bytes(10_000_000))
    os.close(reader)
