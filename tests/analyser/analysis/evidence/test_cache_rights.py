"""What is kept of captures is for its user alone, and nobody else's folder is used."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wirewitness.analyser.analysis.evidence.cache import cache_folder, new_part, part
from wirewitness.app.dashboard.offers import Uploads


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def fill() -> None:
    before = os.umask(0)
    try:
        with new_part("one") as folder:
            (folder / "data").write_text("x")
    finally:
        os.umask(before)


def root() -> Path:
    found = cache_folder()
    assert found is not None
    return found


def test_files_are_for_their_user_alone_whatever_the_umask() -> None:
    root().mkdir(mode=0o755)
    fill()
    assert [path.stat().st_mode & 0o777 for path in (root(), root() / "one", root() / "one" / "data")] == [
        0o700, 0o700, 0o600,
    ]  # fmt: skip


def test_the_folder_of_all_caches_is_made_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fill()
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("made", [fill, lambda: part("one")], ids=["made", "found"])
def test_what_a_killed_process_left_goes_with_the_next_that_asks(made: Callable[[], object]) -> None:
    fill()
    left = root() / ".two.12345678.part"
    left.mkdir()
    (left / "data").write_text("x")
    with new_part("three") as folder:  # somebody is at work on it
        made()
        assert not left.exists()
        assert folder.exists()
    assert (root() / "three").exists()


def test_without_locks_what_is_old_goes() -> None:
    fill()
    left, new = root() / ".two.12345678.part", root() / ".three.12345678.part"
    for folder in (left, new):
        folder.mkdir()
        (folder / "data").write_text("x")
    os.utime(left, (1, 1))
    locks = [os.open(folder, os.O_RDONLY) for folder in (left, new)]
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_EX)
    fill()
    assert (left.exists(), new.exists()) == (False, True)
    for lock in locks:
        os.close(lock)


def test_a_folder_of_somebody_else_is_neither_read_nor_written(tmp_path: Path) -> None:
    fill()
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(root(), 4321, 4321)
    assert part("one") is None
    with pytest.raises(OSError, match="belongs to somebody else"):
        fill()


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root().symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="belongs to somebody else"):
        fill()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_uploads_are_for_their_user_alone() -> None:
    before = os.umask(0)
    try:
        uploads = Uploads()
        offer = uploads.add("a.pcap", memoryview(b"x"), "me")
    finally:
        os.umask(before)
    path = Path(offer.paths[0])
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]
    uploads.close()
