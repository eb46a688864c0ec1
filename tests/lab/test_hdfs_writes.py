"""Files written to real HDFS: whole or not there, and in place of another one only where that is still there."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab.hdfs_server import HdfsServer
from tests.lab.in_hdfs import client
from tests.lab.store_kinds import write_settings
from tests.support.faulty_front import Request
from tests.support.name_node_front import name_node_front
from tests.support.shares import every, share
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.exchange_files import (
    copy_folder,
    files_below,
    move_files,
    put_bytes,
    remove_below,
)
from wirewitness.analyser.base.storage.faults import NameTaken
from wirewitness.analyser.base.storage.folders import StorePath, bytes_at
from wirewitness.analyser.base.storage.writing import names_below, put_files, put_text, remove_objects

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.usefixtures("as_owner")]

# What a writer asks the name node once its new file lies beside the old one.
STEPS = {"getListing", "delete", "getFileInfo", "rename2"}
ORDERS = sorted({"".join(order) for order in itertools.permutations("AAABBB")})


def at(address: str) -> StorePath:
    found = address_of(address)
    assert found is not None
    return StorePath(found)


class Turns:
    """Two writers, each of whose steps waits for its turn; a turn ends with the writer's next step. Where the order
    ends nobody waits any more."""

    def __init__(self, order: str) -> None:
        self._left, self._at_work, self._done = list(order), "", set[str]()
        self._changed = threading.Condition()

    def step(self, who: str) -> None:
        with self._changed:
            self._end_turn(who)
            self._changed.wait_for(lambda: not self._left or (not self._at_work and self._left[0] == who), 60)
            if self._left:
                self._left.pop(0)
                self._at_work = who

    def done(self, who: str) -> None:
        with self._changed:
            self._left = [one for one in self._left if one != who]
            self._end_turn(who)

    def _end_turn(self, who: str) -> None:
        if self._at_work == who:
            self._at_work = ""
        self._changed.notify_all()


@pytest.mark.parametrize("order", share(ORDERS, every(4, ORDERS)))
def test_of_two_that_replace_a_file_one_does(
    hdfs: HdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Whatever the order in which the name node hears of their steps: never both, and never neither."""
    turns, path = Turns(order), f"two/{order}"
    put_bytes(at(f"{hdfs.address}/{path}"), b"old")
    old = at(f"{hdfs.address}/{path}").file()

    def put_by(who: str) -> bool:
        try:
            put_text(at(f"hdfs://writer-{who}-{hdfs.port}-{order}/{path}"), f"new of {who}", old)
        except NameTaken:
            return False
        finally:
            turns.done(who)
        return True

    def planned(who: str, request: Request) -> None:
        if request.method in STEPS:
            turns.step(who)

    with (
        name_node_front(hdfs.port, lambda request: planned("A", request)) as front_a,
        name_node_front(hdfs.port, lambda request: planned("B", request)) as front_b,
        ThreadPoolExecutor(2) as threads,
    ):
        ports = {f"writer-{who}-{hdfs.port}-{order}": front.port for who, front in (("A", front_a), ("B", front_b))}
        write_settings(tmp_path, ports)
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        won = dict(zip("AB", threads.map(put_by, "AB"), strict=True))
    assert sorted(won.values()) == [False, True]
    (winner,) = (who for who, has in won.items() if has)
    assert bytes_at(at(f"{hdfs.address}/{path}")) == f"new of {winner}".encode()
    assert left_below(hdfs, "two", order) == []


def left_below(hdfs: HdfsServer, folder: str, name: str) -> list[str]:
    """What lies there beside the file itself."""
    found = (one.path.rpartition("/")[2] for one in client(hdfs).list_status(f"/{folder}"))
    return [one for one in found if one.startswith(name) and one != name]


def test_of_many_that_make_a_file_one_does(hdfs: HdfsServer) -> None:
    path = at(f"{hdfs.address}/many/new.json")

    def put(text: str) -> bool:
        try:
            put_text(path, text, None)
        except NameTaken:
            return False
        return True

    texts = [f"text {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        won = [text for text, has in zip(texts, threads.map(put, texts), strict=True) if has]
    assert won == [bytes_at(path).decode()]
    assert left_below(hdfs, "many", "new.json") == []


def test_files_come_and_go_with_their_folders(hdfs: HdfsServer, tmp_path: Path) -> None:
    top = at(f"{hdfs.address}/folders")
    content = b"0123456789" * 2_000_000  # more than a block, and than what is read at once
    (tmp_path / "large").write_bytes(content)
    put_files({tmp_path / "large": top / "one/large"})
    put_bytes(top / "one/deeper/small", b"")
    copy_folder(top / "one", top / "two", ("deeper",))
    assert [*files_below(top)] == ["one/deeper/small", "one/large", "two/large"]
    assert bytes_at(top / "two/large") == content
    move_files({top / "two/large": top / "three/moved"})
    assert sorted(names_below(top)) == ["one", "three", "two"]
    remove_below(top / "one")
    remove_objects([top / "three/moved", top / "three/never"], top)
    assert [*files_below(top)] == []
    assert sorted(names_below(top)) == ["one", "two"]


def test_a_file_that_could_not_be_written_is_not_there(hdfs: HdfsServer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        put_files({tmp_path / "none": at(f"{hdfs.address}/failed/file")})
    with pytest.raises(ValueError, match="broken"):
        failing(hdfs)
    assert not client(hdfs).glob_status("/failed/*")


def failing(hdfs: HdfsServer) -> None:
    from wirewitness.analyser.base.storage.hdfs_writes import _put

    def blocks() -> Iterator[bytes]:
        yield b"begun"
        raise ValueError("broken")

    _put(at(f"{hdfs.address}/failed/file").address, blocks())


def test_what_is_denied_is_told(hdfs: HdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a client of another user than this process's first one."""
    client(hdfs).mkdirs("/denied", create_parent=True)
    write_settings(tmp_path, {f"denied-{hdfs.port}": hdfs.port})
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    for name in ("file", "folder/file"):
        with pytest.raises(PermissionError, match=r"permission denied \(WRITE for user somebody\); HADOOP"):
            put_bytes(at(f"hdfs://denied-{hdfs.port}/denied/{name}"), b"x")
