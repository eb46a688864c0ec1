"""Files that one process leaves to another: whole or not there, and those that were left."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from wirewitness.analyser.archive.dataset.stage_files import put_value, value_of
from wirewitness.analyser.base.storage.exchange_files import NewFile, copy_folder, files_below, put_bytes, scratch_in


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    place = tmp_path / "below" / "file"
    with suppress(RuntimeError), NewFile(place) as written:
        written.write_bytes(b"half")
        raise RuntimeError
    assert [*files_below(tmp_path)] == []
    with NewFile(place) as written:
        written.write_bytes(b"whole")
        assert not place.exists()
    assert [*files_below(tmp_path)] == ["below/file"]
    assert place.read_bytes() == b"whole"


def test_a_value_that_somebody_else_put_there_is_not_loaded(tmp_path: Path) -> None:
    seal = put_value(tmp_path / "job", {"run": "000001"})
    assert value_of(seal) == {"run": "000001"}
    put_value(tmp_path / "job", {"run": "another"})
    with pytest.raises(OSError, match="it is not what was written there"):
        value_of(seal)


def test_a_copy_leaves_what_is_named(tmp_path: Path) -> None:
    for name in ("share-0/state", "begun.json", "_work/job"):
        put_bytes(tmp_path / "old" / name, b"kept")
    copy_folder(tmp_path / "old", tmp_path / "new", ("begun.json", "_work"))
    assert [*files_below(tmp_path / "new")] == ["share-0/state"]


def test_scratch_goes(tmp_path: Path) -> None:
    with scratch_in(tmp_path / "work") as scratch:
        (scratch / "spilled").touch()
        assert scratch.is_relative_to(tmp_path.resolve())
    assert [*files_below(tmp_path)] == []
