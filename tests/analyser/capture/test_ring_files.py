"""Files of a ring take no place that something has."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirewitness.analyser.capture.ring_files import RingFiles, WritingStoppedError


def test_a_numbered_file_follows_no_link(tmp_path: Path) -> None:
    aim = tmp_path / "precious"
    aim.write_text("kept")
    (tmp_path / "ring-20260301-00001.pcapng").symlink_to(aim)
    files = RingFiles(str(tmp_path / "ring.pcapng"), 1000, 2, "20260301", lambda: b"head")
    with pytest.raises(WritingStoppedError, match="cannot be written: File exists"):
        files.next_file()
    assert aim.read_text() == "kept"


def test_a_file_under_the_name_given_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "ring.pcapng"
    path.write_text("before")
    files = RingFiles(str(path), 0, 0, "20260301", lambda: b"head")
    files.next_file()
    files.close()
    assert path.read_bytes() == b"head"
