"""Captures and datasets in emulators of Azure's and Google's stores: read and written as in S3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.lab.store_kinds import Store
from tests.lab.stored import QUESTIONS, wirewitness
from tests.support.archived import differences, parts_of
from tests.support.changes import NEW, OLD, first, second
from tests.support.datasets import make_dataset
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset, DatasetBusy
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.bucket_writes import put_if
from wirewitness.analyser.base.storage.buckets import read
from wirewitness.analyser.base.storage.faults import NameTaken, ObjectChanged
from wirewitness.analyser.base.storage.objects import bytes_of, object_at, objects_below
from wirewitness.analyser.base.storage.writing import remove_objects

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive, pytest.mark.timeout(900)]

STALE, SMALL = SAMPLES / "kafka_stale_commit.pcapng", SAMPLES / "kafka_healthy.pcapng"
on_both = pytest.mark.parametrize("store", ["azure", "google"], indirect=True)


@on_both
def test_a_capture_tells_what_the_file_tells(store: Store) -> None:
    address = store.put("one/stale.pcapng", STALE.read_bytes())
    done = wirewitness("analyse", address, "--format", "json", "--processes", "2")
    assert (done.returncode, done.stderr) == (0, "")
    here = wirewitness("analyse", STALE, "--format", "json")
    assert done.stdout.replace(json.dumps(address)[1:-1], str(STALE)) == here.stdout


@on_both
@pytest.mark.parametrize("name", ["with space.pcapng", "100%25 %.pcapng", "ü#?&+.pcapng"])
def test_keys_are_taken_as_they_are_written(store: Store, name: str) -> None:
    address = store.put(f"names/{name}", SMALL.read_bytes())
    done = wirewitness("analyse", address, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["captures"][0]["file"] == address


@on_both
def test_all_that_lies_below_an_address_is_read_and_messages_are_shown(store: Store) -> None:
    store.put("all/day 1/a.pcapng", SMALL.read_bytes())
    address = store.put("all/day 2/b.pcapng", STALE.read_bytes())
    store.put("all/notes.txt", b"not a capture")
    done = wirewitness("analyse", store.address("all"), "--format", "json")
    assert len(json.loads(done.stdout)["captures"]) == 2
    assert f"passed over what is no capture: 1 (the first is {store.address('all/notes.txt')})" in done.stderr
    rows = wirewitness("table", "messages", STALE, "--columns", "message_id", "--format", "csv").stdout.splitlines()
    shown = wirewitness("show", address, rows[9])
    assert shown.stdout.replace(address, str(STALE)) == wirewitness("show", STALE, rows[9]).stdout


@on_both
def test_what_a_list_says_of_an_object_is_what_it_says_itself(store: Store) -> None:
    """So a run does not take it for one that changed."""
    address = address_of(store.put("listed/a", b"abc"))
    below = address_of(store.address("listed"))
    assert address is not None
    assert below is not None
    (listed,) = objects_below(below)
    there = object_at(address)
    assert there is not None
    assert listed == there
    assert bytes(listed.read(1, 3)) == b"bc"
    store.put("listed/a", b"abd")
    with pytest.raises(ObjectChanged):
        read(address, there.state, 0, 1)


@on_both
def test_objects_are_written_on_condition(store: Store) -> None:
    address = address_of(store.address("conditions/a"))
    assert address is not None
    put_if(address, b"1", None)
    with pytest.raises(NameTaken):
        put_if(address, b"2", None)
    found = object_at(address)
    assert found is not None
    put_if(address, b"3", found.state)
    with pytest.raises(NameTaken):
        put_if(address, b"4", found.state)
    assert bytes_of(address) == b"3"


@on_both
def test_objects_that_are_gone_already_are_removed(store: Store) -> None:
    """And others with them."""
    addresses = [address_of(store.put(f"gone/{name}", b"x")) for name in "abc"]
    found = [*objects_below(address_of(store.address("gone")))]  # type: ignore[arg-type]
    assert [one.address for one in found] == addresses
    remove_objects(found[:1])
    remove_objects(found)
    assert [*objects_below(address_of(store.address("gone")))] == []  # type: ignore[arg-type]


@on_both
def test_changes_of_a_dataset_follow_each_other(store: Store) -> None:
    root = store.address("changes/ü #&+")
    first(root)
    assert rows(root) == OLD
    second(root)
    assert rows(root) == NEW
    assert [run.name for run in Dataset.open(root).manifest.runs] == ["000001", "000002"]


@on_both
def test_of_two_writers_the_first_wins(store: Store) -> None:
    root = store.address("two")
    first(root)
    with Change.begin(root) as change:
        second(root)
        with pytest.raises(DatasetBusy):
            change.commit([])
    assert rows(root) == NEW


@on_both
@pytest.mark.parametrize("command", QUESTIONS, ids=lambda command: command[0])
def test_a_dataset_answers_as_on_this_machine(store: Store, tmp_path: Path, command: tuple[str, ...]) -> None:
    here = make_dataset(tmp_path / "set", [STALE])
    for path in sorted(here.rglob("*")):
        if path.is_file():
            store.put(f"copied/{path.relative_to(here)}", path.read_bytes())
    there = store.address("copied")
    told, expected = (
        wirewitness(*(place if word == "DATASET" else word for word in command)) for place in (there, here)
    )
    assert (told.returncode, told.stderr.replace(there, str(here))) == (0, expected.stderr)
    assert told.stdout.replace(there, str(here)) == expected.stdout


@on_both
def test_a_dataset_is_made_there_of_captures_there(store: Store, tmp_path: Path) -> None:
    """In two runs, the second of objects: what is found is what the offline command finds."""
    captures = rotated(packets_of(SAMPLES / "mqtt_faults.pcapng"), tmp_path / "captures", 4)
    dataset, below = store.address("data/faults"), store.address("from/faults")
    archived(dataset, *captures[:2])
    addresses = [store.put(f"from/faults/{path.name}", path.read_bytes()) for path in captures[2:]]
    assert "read       2 captures" in archived(dataset, *captures[:2], below)
    assert differences(dataset, [*captures[:2], *addresses]) == []
    assert "nothing new" in archived(dataset, *captures[:2], below)


def archived(dataset: str, *inputs: str | Path) -> str:
    done = wirewitness("archive", *inputs, "--output", dataset, "--master", "local[2]", "--shares", "2")
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(root: str) -> list[str]:
    return sorted(parts_of(root, "exchanges").column("exchange_id").to_pylist())
