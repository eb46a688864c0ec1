"""Changes of a dataset in a real S3 server and in real HDFS: whole or never there, whoever is killed or writes, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import IMPORT_PATH
from tests.lab.store_kinds import Store, files_of, on_stores
from tests.support.archived import parts_of
from tests.support.changes import NEW, OLD, batch, first, second
from tests.support.datasets import take_in
from tests.support.faulty_front import Fault, Request
from tests.support.giant_group import MADE, giant_rows
from tests.support.shares import RUNS_THE_REST, pairs
from wirewitness.analyser.archive.aggregate.context import run_context
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset, DatasetBusy, write_parts
from wirewitness.analyser.archive.dataset.place import DatasetError, is_dataset
from wirewitness.analyser.base.storage.exchange_files import files_below
from wirewitness.analyser.base.storage.folders import bytes_at, folder_at
from wirewitness.analyser.tables.tables import TABLES

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

MANIFEST = "wirewitness.json"
# At every how many requests a process is killed; HDFS is asked several times as often.
STEPS = {"s3": 1, "hdfs": 4} if RUNS_THE_REST else {"s3": 9, "hdfs": 60}


def rows(root: str) -> list[str]:
    return sorted(parts_of(root, "exchanges").column("exchange_id").to_pylist())


def state(root: str) -> str:
    with Change.begin(root) as change:
        assert change.previous_state is not None
        return bytes_at(change.previous_state / "share-0").decode()


def done_by(function: Callable[[str], None], root: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a process of its own does, behind a front that its settings name."""
    code = f"import sys; from tests.support.changes import {function.__name__} as act; act(sys.argv[1])"
    environment = {**os.environ, **settings, "PYTHONPATH": IMPORT_PATH}
    return subprocess.run([sys.executable, "-c", code, root], env=environment, capture_output=True, text=True,
                          check=False)  # fmt: skip


@pytest.mark.parametrize(
    ("store", "name"), [("s3", "plain"), ("s3", "with space"), ("s3", "ü#?&+"), ("hdfs", "plain")], indirect=["store"]
)
def test_changes_follow_each_other(store: Store, name: str) -> None:
    root = store.address(f"changes/{name}")
    first(root)
    assert rows(root) == OLD
    assert state(root) == "one"
    second(root)
    assert rows(root) == NEW
    assert state(root) == "two"
    dataset = Dataset.open(root)
    assert [run.name for run in dataset.manifest.runs] == ["000001", "000002"]
    assert dataset.manifest.rows("messages") == 1


def killed_after(requests: int, function: Callable[[str], None], root: str, store: Store) -> bool:
    """Kill a process when it makes its request of this number; False when it came to its end before."""
    code = f"import sys; from tests.support.changes import {function.__name__} as act; act(sys.argv[1])"
    running: list[subprocess.Popen[bytes]] = []

    def kill(request: Request) -> Fault | None:
        return Fault(before=running[0].kill) if request.number == requests else None

    with store.front(kill) as front:
        environment = {**os.environ, **store.environment(front.port), "PYTHONPATH": IMPORT_PATH}
        running.append(subprocess.Popen([sys.executable, "-c", code, root], env=environment))
        ended = running[0].wait()
        asked = len(front.seen)
    assert ended in (0, -signal.SIGKILL)
    assert (ended != 0) == (asked > requests)
    return ended != 0


@on_stores()
def test_killed_at_any_request_it_is_the_old_or_the_new_dataset(store: Store) -> None:
    seen = set()
    for number in range(0, 1000, STEPS[store.name]):
        root = store.address(f"killed/{number}")
        first(root)
        killed = killed_after(number, second, root, store)
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


@on_stores(pytest.mark.exhaustive)
def test_what_a_killed_run_left_goes_after_a_day(store: Store) -> None:
    """In HDFS a part that it was writing, under the name that it had till then."""
    root = store.address("leftovers")
    first(root)
    before, number = parts_below(root), 0
    while not (left := parts_below(root) - before):
        assert killed_after(number, second, root, store)
        number += 2
    second(root)
    assert left <= parts_below(root)
    store.make_older("leftovers")
    second_again(root, NEW)
    assert left & parts_below(root) == set()
    assert rows(root) == sorted([*NEW, "f-c-8"])


@on_stores()
def test_parts_that_count_no_more_stay_a_day_for_readers(store: Store) -> None:
    root = store.address("readers")
    first(root)
    before, opened = parts_below(root), Dataset.open(root)
    store.make_older("readers")
    second(root)
    assert before <= parts_below(root)
    assert len(opened.parts("exchanges")) == len(before)


def parts_below(root: str) -> set[str]:
    return {name for name in files_of(root) if ".parquet" in name}


@on_stores(pytest.mark.exhaustive)
def test_the_first_change_of_a_new_dataset_can_be_killed_too(store: Store) -> None:
    seen = set()
    for number in range(0, 1000, STEPS[store.name]):
        root = store.address(f"begun/{number}")
        killed = killed_after(number, first, root, store)
        seen.add(is_dataset(root))
        if not is_dataset(root):
            first(root)
        assert rows(root) == OLD
        if not killed:
            break
    assert seen == {False, True}


STORES_AT_STEPS = [
    (store, where, is_new)
    for store in ("s3", "hdfs")
    for where in ("begin", "parts", "versions", "decision")
    for is_new in (False, True)
]


@pytest.mark.parametrize(
    ("store", "where", "is_new"),
    pairs(
        STORES_AT_STEPS,
        [case for case in STORES_AT_STEPS if case[0] == "s3"]
        + [("hdfs", "versions", False), ("hdfs", "decision", True)],
    ),
    indirect=["store"],
)
def test_of_two_writers_at_once_one_wins_and_the_other_says_so(store: Store, where: str, is_new: bool) -> None:
    """The other one comes and goes while this one is at each of its steps."""
    root = store.address(f"two/{where}-{is_new}")
    if not is_new:
        first(root)
    act = first if is_new else second
    signs = {"begin": "begun.json", "parts": "/part-", "versions": "_delta_log/", "decision": MANIFEST}
    others: list[str] = []

    def other(request: Request) -> Fault | None:
        if others or not store.writes(request) or signs[where] not in request.path:
            return None
        others.append(request.path)
        return Fault(before=lambda: act(root))

    with store.front(other) as front:
        done = done_by(act, root, store.environment(front.port))
    assert others
    assert done.returncode != 0
    assert f"{DatasetBusy.__name__}: {root} was changed by another run meanwhile" in done.stderr
    assert rows(root) == (OLD if is_new else NEW)
    assert state(root) == ("one" if is_new else "two")
    assert len(Dataset.open(root).manifest.runs) == (1 if is_new else 2)
    second_again(root, rows(root))


@on_stores(pytest.mark.exhaustive)
def test_a_rebuilt_dataset_has_nothing_of_what_was(store: Store) -> None:
    root = store.address("rebuilt")
    first(root)
    with Change.begin(root, rebuild=True) as change:
        assert (change.previous, change.previous_state) == (None, None)
        change.add(*write_parts("exchanges", [batch([9])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert rows(root) == ["f-c-9"]


@on_stores()
def test_a_dataset_is_not_made_among_others_objects(store: Store) -> None:
    file = store.put("others/notes.txt", b"mine")
    whole = {"s3": "is a whole bucket", "hdfs": "is the whole of a file system"}
    below = {"s3": "", "hdfs": "a file is where a folder would have to be"}
    told = {
        store.address("others"): "no dataset and not empty", store.address(""): whole[store.name],
        store.address("100%25"): "no dataset can have %", f"{file}/below": below[store.name],
    }  # fmt: skip
    for address, says in told.items():
        if says:
            with pytest.raises(DatasetError, match=says), Change.begin(address):
                pass


@on_stores()
def test_leaving_without_commit_leaves_nothing(store: Store) -> None:
    root = store.address("left")
    with Change.begin(root):
        pass
    assert files_of(root) == {}
    first(root)
    with Change.begin(root) as change:
        change.remove(*change.parts())
    assert rows(root) == OLD


@on_stores(pytest.mark.exhaustive)
def test_shares_leave_their_rows_in_the_store(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tasks on machines that share no disk."""
    take_in(tmp_path / "d", giant_rows(), [run_context])
    for module in ("keyed", "kafka_context"):
        monkeypatch.setattr(f"wirewitness.analyser.archive.aggregate.{module}.shards_for", lambda _: 3)
    root = store.address("dealt")
    left: list[str] = []
    take_in(folder_at(root), giant_rows(), [run_context, lambda change: left.extend(files_below(change.work))])
    assert [name for name in left if name.startswith("shares/")] == []
    for table in MADE:
        keys = [(name, "ascending") for name in TABLES[table].order]
        assert parts_of(root, table).sort_by(keys).equals(parts_of(tmp_path / "d", table).sort_by(keys)), table
        assert parts_of(root, table).num_rows > 0
