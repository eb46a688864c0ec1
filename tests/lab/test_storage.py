"""Captures in a real S3 server: read like files, whatever the store does in the midst of it."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.lab.s3_server import S3Server
from tests.lab.stored import put, wirewitness
from tests.support.faulty_front import STUMBLES, Fault, Request, faulty_front
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.faults import ObjectChanged
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at, objects_below
from wirewitness.analyser.capture import open_captures

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600), pytest.mark.usefixtures("in_store")]

STALE = SAMPLES / "kafka_stale_commit.pcapng"
SMALL = SAMPLES / "kafka_healthy.pcapng"


@cache
def told_of(file: Path) -> str:
    """What is said of a capture on this machine."""
    done = wirewitness("analyse", file, "--format", "json")
    assert done.returncode == 0
    return done.stdout


def in_place_of(text: str, address: str, file: Path) -> str:
    return text.replace(json.dumps(address)[1:-1], str(file))


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_capture_in_the_store_tells_what_the_file_tells(processes: str) -> None:
    address = put("one/stale.pcapng", STALE.read_bytes())
    done = wirewitness("analyse", address, "--format", "json", "--processes", processes)
    assert (done.returncode, done.stderr) == (0, "")
    assert in_place_of(done.stdout, address, STALE) == told_of(STALE)


def test_all_samples_below_an_address_tell_what_their_folder_tells(tmp_path: Path) -> None:
    for sample in sorted(SAMPLES.glob("m*.pcapng")):
        (tmp_path / sample.name).write_bytes(sample.read_bytes())
        put(f"all/day 1/{sample.name}", sample.read_bytes())
    done = wirewitness("table", "exchanges", "s3://captures/all/", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    here = wirewitness("table", "exchanges", tmp_path, "--format", "csv")
    assert done.stdout.replace("s3://captures/all/day 1/", f"{tmp_path}/") == here.stdout


@pytest.mark.parametrize("name", ["with space.pcapng", "100%25 %.pcapng", "ü#?&+.pcapng", ".hidden"])
def test_keys_are_taken_as_they_are_written(name: str) -> None:
    address = put(f"names/{name}", SMALL.read_bytes())
    done = wirewitness("analyse", address, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["captures"][0]["file"] == address


def test_foreign_objects_are_passed_over_and_told() -> None:
    put("mixed/capture.pcapng", SMALL.read_bytes())
    put("mixed/cut.pcapng", STALE.read_bytes()[:7])
    put("mixed/empty", b"")
    put("mixed/notes.txt", b"not a capture")
    done = wirewitness("analyse", "s3://captures/mixed")
    assert done.returncode == 0
    assert "passed over what is no capture: 3 (the first is s3://captures/mixed/cut.pcapng)" in done.stderr


def test_a_truncated_upload_is_read_as_far_as_it_goes() -> None:
    whole = STALE.read_bytes()
    address = put("half.pcapng", whole[: len(whole) // 2 + 3])
    done = wirewitness("analyse", address)
    assert done.returncode == 0
    assert "cut" in done.stderr


def test_lists_of_several_pages_are_read_to_their_end() -> None:
    content = SMALL.read_bytes()[:0]
    below = address_of("s3://captures/pages")
    assert below is not None
    keys = [f"pages/{number:04}" for number in range(2100)]
    for key in keys:
        put(key, content)
    assert [path.address.key for path in sorted(objects_below(below), key=str)] == keys


def test_messages_are_shown_and_extracted_from_the_store(tmp_path: Path) -> None:
    address = put("show/stale.pcapng", STALE.read_bytes())
    rows = wirewitness("table", "messages", STALE, "--columns", "message_id", "--format", "csv").stdout.splitlines()
    wanted = rows[len(rows) // 2]
    shown = wirewitness("show", address, wanted)
    assert shown.stdout.replace(address, str(STALE)) == wirewitness("show", STALE, wanted).stdout
    for source, target in ((address, tmp_path / "stored"), (STALE, tmp_path / "file")):
        assert wirewitness("extract", source, "--message", wanted, "--output", target).returncode == 0
    assert (tmp_path / "stored").read_bytes().count(b"\n\r\r\n") == 1
    assert len((tmp_path / "stored").read_bytes()) == len((tmp_path / "file").read_bytes())


@pytest.mark.parametrize("name", STUMBLES)
def test_a_store_that_stumbles_changes_nothing(s3: S3Server, name: str) -> None:
    address = put(f"stumbles/{name}.pcapng", STALE.read_bytes())
    with faulty_front(s3.port, STUMBLES[name]) as front:
        done = wirewitness("analyse", address, "--format", "json", port=front.port)
        assert (done.returncode, done.stderr) == (0, "")
        assert any(front.plan(request) for request in front.seen), "nothing went wrong"
    assert in_place_of(done.stdout, address, STALE) == told_of(STALE)


def test_an_object_that_is_replaced_while_it_is_read_is_told_and_what_was_read_stays(s3: S3Server) -> None:
    address = put("replaced.pcapng", STALE.read_bytes())

    def replaced(request: Request) -> Fault | None:
        behind = request.range and not request.range.startswith("bytes=0-")
        return Fault(before=lambda: put("replaced.pcapng", SMALL.read_bytes()) and None) if behind else None

    with faulty_front(s3.port, replaced) as front:
        done = wirewitness("analyse", address, "--format", "json", port=front.port)
    assert "was replaced since it was first read" in done.stdout + done.stderr
    assert json.loads(done.stdout)["captures"][0]["packets"] > 100


def test_an_object_that_is_removed_while_it_is_read_is_told_and_what_was_read_stays(s3: S3Server) -> None:
    """In words of ours: those of the library name the address that was asked, with all that signs it."""
    address = put("removed.pcapng", STALE.read_bytes())

    def removed(request: Request) -> Fault | None:
        return Fault(404, "NoSuchKey") if request.range and not request.range.startswith("bytes=0-") else None

    with faulty_front(s3.port, removed) as front:
        done = wirewitness("analyse", address, "--format", "json", port=front.port)
    told, *more = done.stderr.splitlines()
    assert told == f"note: {address}: reading stopped: no such object or bucket"
    assert all(line.startswith(f"note: {address}: the last block is cut") for line in more)
    assert json.loads(done.stdout)["captures"][0]["packets"] > 100


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (404, "NoSuchKey")])
def test_one_object_that_cannot_be_read_leaves_the_others(s3: S3Server, status: int, code: str) -> None:
    put(f"some-{status}/a.pcapng", SMALL.read_bytes())
    put(f"some-{status}/b.pcapng", SMALL.read_bytes())

    def refused(request: Request) -> Fault | None:
        return Fault(status, code) if "/b.pcapng" in request.path else None

    with faulty_front(s3.port, refused) as front:
        done = wirewitness("analyse", f"s3://captures/some-{status}", port=front.port)
    assert done.returncode == 0
    assert f"files or folders that cannot be read: 1 (the first is s3://captures/some-{status}/b.pcapng)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("s3://captures/nothing-here", "no such object, and nothing below it"),
        ("s3://nobucket/one.pcap", "no such"),
        ("s3://nobucket", "no such bucket"),
        ("s3://captures/a//b", "no address of an object that can be read"),
    ],
)
def test_what_is_not_there_is_one_line(arguments: str, says: str) -> None:
    done = wirewitness("analyse", arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_secret_says_where_credentials_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    done = wirewitness("analyse", "s3://captures")
    assert done.returncode == 2
    assert (
        "permission denied (403 Forbidden SignatureDoesNotMatch); credentials come from AWS_ACCESS_KEY_ID"
        in done.stderr
    )
    assert "wrong-secret" not in done.stderr


def test_a_store_that_is_not_there_is_told_in_seconds() -> None:
    done = wirewitness("analyse", "s3://captures", port=9)
    assert done.returncode == 2
    assert "the store cannot be reached: connection refused" in done.stderr


def test_a_reader_keeps_to_the_object_that_it_met() -> None:
    address = put("kept.pcapng", STALE.read_bytes())
    (source,) = open_captures([address])
    assert isinstance(source.path, ObjectPath)
    put("kept.pcapng", SMALL.read_bytes())
    with source.path.open() as stream, pytest.raises(ObjectChanged):
        stream.read(100)
    met = address_of(address)
    assert met is not None
    again = object_at(met)
    assert again is not None
    assert bytes(again.read(0, 100)) == SMALL.read_bytes()[:100]


def test_a_large_object_in_parts_is_the_same_bytes() -> None:
    content = os.urandom(1 << 20) * 30
    met = address_of(put("large", content))
    assert met is not None
    path = object_at(met)
    assert path is not None
    assert "-" in path.state.tag, "it was put in one part"
    with path.open() as stream:
        got = bytearray()
        while part := stream.read(1 << 20):
            got += part
    assert got == content
