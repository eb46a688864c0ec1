"""Changes of a dataset in a real S3 server: whole or never there, whoever is killed and whoever else writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analyser.archive.dataset.dataset import Change, Dataset, DatasetBusy, write_parts
from analyser.archive.dataset.place import DatasetError, is_dataset
from analyser.storage.handing import bytes_at
from tests.conftest import ROOT
from tests.lab.s3_server import S3Server
from tests.lab.stored import put
from tests.support.archived import parts_of
from tests.support.changes import NEW, OLD, batch, first, second
from tests.support.faulty_front import Fault, Request, faulty_front
from tests.support.shares import RUNS_THE_REST

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600), pytest.mark.usefixtures("in_store")]

MANIFEST = "wirewitness.json"


def rows(root: str) -> list[str]:
    return sorted(parts_of(root, "exchanges").column("exchange_id").to_pylist())


def state(root: str) -> str:
    with Change.begin(root) as change:
        assert change.previous_state is not None
        return bytes_at(change.previous_state / "share-0").decode()


def done_by(function: Callable[[str], None], root: str, port: int) -> subprocess.CompletedProcess[str]:
    """What a process of its own does, behind a front."""
    code = f"import sys; from tests.support.changes import {function.__name__} as act; act(sys.argv[1])"
    environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code, root], env=environment, capture_output=True, text=True,
                          check=False)  # fmt: skip


@pytest.mark.parametrize("name", ["plain", "with space", "ü#?&+"])
def test_changes_follow_each_other(name: str) -> None:
    root = f"s3://captures/changes/{name}"
    first(root)
    assert rows(root) == OLD
    assert state(root) == "one"
    second(root)
    assert rows(root) == NEW
    assert state(root) == "two"
    dataset = Dataset.open(root)
    assert [run.name for run in dataset.manifest.runs] == ["000001", "000002"]
    assert dataset.manifest.rows("messages") == 1


def killed_after(requests: int, function: Callable[[str], None], root: str, s3: S3Server) -> bool:
    """Kill a process when it makes its request of this number; False when it came to its end before."""
    code = f"import sys; from tests.support.changes import {function.__name__} as act; act(sys.argv[1])"
    running: list[subprocess.Popen[bytes]] = []

    def kill(request: Request) -> Fault | None:
        return Fault(before=running[0].kill) if request.number == requests else None

    with faulty_front(s3.port, kill) as front:
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{front.port}", "PYTHONPATH": str(ROOT)}
        running.append(subprocess.Popen([sys.executable, "-c", code, root], env=environment))
        ended = running[0].wait()
        asked = len(front.seen)
    assert ended in (0, -signal.SIGKILL)
    assert (ended != 0) == (asked > requests)
    return ended != 0


def test_killed_at_any_request_it_is_the_old_or_the_new_dataset(s3: S3Server) -> None:
    seen = set()
    for number in range(0, 1000, 1 if RUNS_THE_REST else 9):
        root = f"s3://captures/killed/{number}"
        first(root)
        killed = killed_after(number, second, root, s3)
        found = rows(root)
        assert state(root) == {len(OLD): "one", len(NEW): "two"}[len(found)]
        seen.add(len(found))
        if not killed:
            break
        second_again(root, found)
    assert seen == {len(OLD), len(NEW)}


def second_again(root: str, found: list[str]) -> None:
    """A run that goes on from what a killed one left has what counted and its own, and no name twice."""
    with Change.begin(root) as change:
        assert change.parts("exchanges") == [*Dataset.open(root).parts("exchanges")]
        change.add(*write_parts("exchanges", [batch([8])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert rows(root) == sorted([*found, "f-c-8"])


def test_what_a_killed_run_left_goes_after_a_day(s3: S3Server) -> None:
    root, folder = "s3://captures/leftovers", s3.buckets / "captures/leftovers"
    first(root)
    before = {*folder.rglob("*.parquet")}
    number = 0
    while not ({*folder.rglob("*.parquet")} - before):
        assert killed_after(number, second, root, s3)
        number += 2
    left = {*folder.rglob("*.parquet")} - before
    second(root)
    assert all(path.exists() for path in left)
    make_older(folder)
    second_again(root, NEW)
    assert [path for path in left if path.exists()] == []
    assert rows(root) == sorted([*NEW, "f-c-8"])


def test_parts_that_count_no_more_stay_a_day_for_readers(s3: S3Server) -> None:
    root, folder = "s3://captures/readers", s3.buckets / "captures/readers"
    first(root)
    before, opened = {*folder.rglob("*.parquet")}, Dataset.open(root)
    make_older(folder)
    second(root)
    assert before <= {*folder.rglob("*.parquet")}
    assert len(opened.parts("exchanges")) == len(before)


def make_older(folder: Path) -> None:
    """All objects are of yesterday."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        os.utime(path, (0, path.stat().st_mtime - 25 * 3600))


def test_the_first_change_of_a_new_dataset_can_be_killed_too(s3: S3Server) -> None:
    seen = set()
    for number in range(0, 1000, 1 if RUNS_THE_REST else 9):
        root = f"s3://captures/begun/{number}"
        killed = killed_after(number, first, root, s3)
        seen.add(is_dataset(root))
        if not is_dataset(root):
            first(root)
        assert rows(root) == OLD
        if not killed:
            break
    assert seen == {False, True}


@pytest.mark.parametrize("is_new", [False, True], ids=["of a dataset", "of a new one"])
@pytest.mark.parametrize("where", ["begin", "parts", "versions", "decision"])
def test_of_two_writers_at_once_one_wins_and_the_other_says_so(s3: S3Server, where: str, is_new: bool) -> None:
    """The other one comes and goes while this one is at each of its steps."""
    root = f"s3://captures/two/{where}-{is_new}"
    if not is_new:
        first(root)
    act = first if is_new else second
    signs = {"begin": "begun.json", "parts": "/part-", "versions": "_delta_log/0", "decision": MANIFEST}
    others: list[str] = []

    def other(request: Request) -> Fault | None:
        if others or request.method != "PUT" or signs[where] not in request.path:
            return None
        others.append(request.path)
        return Fault(before=lambda: act(root))

    with faulty_front(s3.port, other) as front:
        done = done_by(act, root, front.port)
    assert others
    assert done.returncode != 0
    assert f"{DatasetBusy.__name__}: {root} was changed by another run meanwhile" in done.stderr
    assert rows(root) == (OLD if is_new else NEW)
    assert state(root) == ("one" if is_new else "two")
    assert len(Dataset.open(root).manifest.runs) == (1 if is_new else 2)
    second_again(root, rows(root))


def test_a_rebuilt_dataset_has_nothing_of_what_was() -> None:
    root = "s3://captures/rebuilt"
    first(root)
    with Change.begin(root, rebuild=True) as change:
        assert (change.previous, change.previous_state) == (None, None)
        change.add(*write_parts("exchanges", [batch([9])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert rows(root) == ["f-c-9"]


def test_a_dataset_is_not_made_among_others_objects() -> None:
    put("others/notes.txt", b"mine")
    with pytest.raises(DatasetError, match="no dataset and not empty"), Change.begin("s3://captures/others"):
        pass
    with pytest.raises(DatasetError, match="is a whole bucket"), Change.begin("s3://captures"):
        pass
    with pytest.raises(DatasetError, match="no dataset can have %"), Change.begin("s3://captures/100%25"):
        pass


def test_leaving_without_commit_leaves_nothing(s3: S3Server) -> None:
    root = "s3://captures/left"
    with Change.begin(root):
        pass
    assert [path for path in (s3.buckets / "captures/left").rglob("*") if path.is_file()] == []
    first(root)
    with Change.begin(root) as change:
        change.remove(*change.parts())
    assert rows(root) == OLD
