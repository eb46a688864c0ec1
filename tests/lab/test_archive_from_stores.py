"""Captures in a real S3 server into a dataset: what the offline command finds in the same files, whatever happens."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.analyser.archive.test_run import ALL, DAMAGES, sample
from tests.conftest import IMPORT_PATH, SAMPLES
from tests.lab.processes import Process, wait_until
from tests.lab.s3_server import KEY_ID, SECRET, S3Server
from tests.lab.stored import put, wirewitness
from tests.lab.test_archive import has_results, taken_in
from tests.support.archived import differences
from tests.support.by_shards import chunks_of
from tests.support.faulty_front import STUMBLES, Fault, Request, faulty_front
from tests.support.replay_rotated import replay_rotated
from tests.support.rotated import rotated
from tests.support.shares import long_cases
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.decode.chunks import LEAST_FETCHED_BYTES, MOST_FETCHED_BYTES
from wirewitness.analyser.archive.run import ArchiveOptions, Summary, archive
from wirewitness.analyser.capture import CaptureLimits, open_captures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900), pytest.mark.usefixtures("in_store")]

STALE = SAMPLES / "kafka_stale_commit.pcapng"
ALWAYS = "kafka_fenced_commit"
# Each sample damaged in one way, neighbours in others.
DAMAGED = [pytest.param(name, [*DAMAGES][number % len(DAMAGES)]) for number, name in enumerate(ALL)]


def stored(below: str, captures: Sequence[Path]) -> list[str]:
    return [put(f"{below}/{path.name}", path.read_bytes()) for path in captures]


def taken(summary: Summary) -> tuple[int, int, list[str | None]]:
    return len(summary.files), summary.known, [one.reason for one in summary.aside]


def cut(name: str, folder: Path, files: int) -> list[Path]:
    return rotated(packets_of(SAMPLES / f"{name}.pcapng"), folder, files)


@pytest.mark.parametrize("name", long_cases(ALL, ALWAYS))
def test_a_dataset_is_what_the_offline_command_finds(workers: SparkSession, name: str, tmp_path: Path) -> None:
    compare(workers, f"from/{name}", cut(name, tmp_path / "captures", 4), tmp_path / "dataset")


@pytest.mark.parametrize(("name", "damage"), long_cases(DAMAGED))
def test_damaged_samples(workers: SparkSession, name: str, damage: str, tmp_path: Path) -> None:
    captures = rotated(DAMAGES[damage](sample(name)), tmp_path / "captures", 4)
    compare(workers, f"damaged/{name}", captures, tmp_path / "dataset")


def compare(workers: SparkSession, below: str, captures: Sequence[Path], dataset: Path) -> None:
    """The dataset is what the offline command finds: in two runs, the second over all objects; in ranges."""
    options = ArchiveOptions(shards=3, range_bytes=50_000)
    stored(below, captures[:2])
    assert taken(archive([f"s3://captures/{below}/"], dataset, workers, options)) == (2, 0, [])
    addresses = [f"s3://captures/{below}/{path.name}" for path in captures]
    stored(below, captures[2:])
    assert taken(archive([f"s3://captures/{below}/"], dataset, workers, options)) == (2, 2, [])
    assert differences(dataset, addresses) == []
    assert taken(archive([f"s3://captures/{below}/"], dataset, workers, options)) == (0, 4, [])


@pytest.mark.cases
def test_the_command_takes_all_that_lies_below_an_address(tmp_path: Path) -> None:
    """Odd names, foreign objects, packed ones: as the offline command reads them; nothing tells the credentials."""
    captures = cut("mqtt_faults", tmp_path / "captures", 4)
    for name, path in zip(["with space.pcap", "100%25 %.pcap", "ü#?&+*[1].pcap"], captures[:3], strict=True):
        put(f"odd/{name}", path.read_bytes())
    put("odd/deep/er/.hidden", gzip.compress(captures[3].read_bytes()))
    put("odd/notes.txt", b"not a capture")
    put("odd/empty", b"")
    dataset, events = tmp_path / "dataset", tmp_path / "events"
    events.mkdir()
    logged = {"enabled": "true", "dir": events.as_uri(), "compress": "false", "logBlockUpdates.enabled": "true"}
    settings = [word for name, value in logged.items() for word in ("--conf", f"spark.eventLog.{name}={value}")]
    done = wirewitness("archive", "s3://captures/odd", "--output", dataset, "--master", "local[2]", *settings)
    assert done.returncode == 0, done.stderr
    assert "read       4 captures" in done.stdout
    assert differences(dataset, ["s3://captures/odd"]) == []
    remarks = wirewitness("analyse", dataset).stderr
    assert "s3://captures/odd: passed over what is no capture: 2 (the first is s3://captures/odd/empty)" in remarks
    told = [path.read_bytes() for path in events.rglob("*") if path.is_file()]
    assert any(b"SparkListenerJobStart" in text for text in told)
    written = b"".join([*told, *(path.read_bytes() for path in dataset.rglob("*") if path.is_file())])
    assert SECRET.encode() not in written
    assert KEY_ID.encode() not in written


@pytest.mark.cases
def test_large_objects_are_fetched_in_stretches_and_small_flows_go_along(workers: SparkSession, tmp_path: Path) -> None:
    """The connection with half of all bytes lies close together, the many others do not."""
    replay_rotated(tmp_path / "captures", 6_000_000, 1, many_flows=40)
    addresses = stored("large", sorted((tmp_path / "captures").iterdir()))
    chunks = chunks_of(open_captures(addresses), 4, 1 << 22, CaptureLimits())
    fetched = [chunk for chunk in chunks if chunk.span]
    assert fetched
    assert any(chunk.payload for chunk in chunks if chunk.number >= 0)
    assert all(LEAST_FETCHED_BYTES / 2 < chunk.span <= 3 * MOST_FETCHED_BYTES for chunk in fetched)
    archive(addresses, tmp_path / "dataset", workers, ArchiveOptions(shards=4, range_bytes=1 << 22))
    assert differences(tmp_path / "dataset", addresses) == []


@pytest.mark.cases
def test_an_object_that_changed_is_set_aside(workers: SparkSession, tmp_path: Path) -> None:
    captures = cut("mqtt_takeover_loop", tmp_path / "captures", 2)
    first, second = stored("changed", captures)
    archive([first, second], tmp_path / "dataset", workers, ArchiveOptions(shards=3))
    tags = [one.tag for one in Dataset.open(tmp_path / "dataset").manifest.inputs]
    assert len(set(tags)) == 2
    put("changed/" + captures[1].name, captures[1].read_bytes()[:-10])
    _, known, reasons = taken(archive([first, second], tmp_path / "dataset", workers, ArchiveOptions(shards=3)))
    assert known == 1
    assert [re.sub("; .*", "", reason or "") for reason in reasons] == [f"{second} has changed since it was taken in"]


@pytest.mark.cases
def test_packets_come_from_the_objects_that_were_taken_in(tmp_path: Path) -> None:
    address, dataset = put("evidence/mqtt.pcapng", (SAMPLES / "mqtt_faults.pcapng").read_bytes()), tmp_path / "dataset"
    assert wirewitness("archive", address, "--output", dataset, "--master", "local[2]", "--quiet").returncode == 0
    ids = wirewitness("table", "messages", dataset, "--columns", "message_id", "--format", "csv").stdout.splitlines()
    shown = wirewitness("show", dataset, ids[-1])
    assert shown.returncode == 0
    assert shown.stdout == wirewitness("show", address, ids[-1]).stdout
    for source, target in ((dataset, tmp_path / "kept.pcapng"), (address, tmp_path / "offline.pcapng")):
        assert wirewitness("extract", source, "--message", ids[-1], "--output", target).returncode == 0
    assert packets_of(tmp_path / "kept.pcapng") == packets_of(tmp_path / "offline.pcapng")
    put("evidence/mqtt.pcapng", STALE.read_bytes())
    gone = wirewitness("show", dataset, ids[-1])
    assert gone.returncode in (2, 3)
    assert f"{address}: it was replaced since it was first read" in gone.stdout + gone.stderr


WHY_LOST = {
    "replaced": "it was replaced since it was first read; the next run",
    "denied": "permission denied",
    "gone": "no such object or bucket",
}


def replacing(key: str, content: bytes) -> Fault:
    return Fault(before=lambda: put(key, content) and None)


@pytest.mark.parametrize("fault", ["replaced", "denied", "denied-once", "gone", "gone-midway"])
@pytest.mark.cases
def test_what_a_store_does_not_give_is_left_to_the_next_run(s3: S3Server, fault: str, tmp_path: Path) -> None:
    """The second of three objects fails after it was met: the first is taken in, the third waits for the second."""
    captures = cut("kafka_stale_commit" if fault == "gone-midway" else "mongo_shapes_and_errors", tmp_path / "cut", 3)
    addresses = stored(f"lost/{fault}", captures)
    key, shorter = f"lost/{fault}/{captures[1].name}", captures[1].read_bytes()[:-10]

    def spoilt(request: Request) -> Fault | None:
        if request.method != "GET" or key not in request.path:
            return None
        earlier = sum(one.method == "GET" and key in one.path for one in front.seen[: request.number])
        if fault == "denied":
            return Fault(403, "AccessDenied") if earlier else None
        if fault == "denied-once":  # where its head is read for keys
            return Fault(403, "AccessDenied") if earlier == 1 else None
        if fault == "gone":
            return Fault(404, "NoSuchKey") if earlier else None
        if fault == "gone-midway":  # behind the first block, which was given
            return None if request.range.startswith("bytes=0-") else Fault(404, "NoSuchKey")
        return replacing(key, shorter) if earlier == 1 else None

    words = ("archive", f"s3://captures/lost/{fault}", "--output", tmp_path / "dataset", "--master", "local[2]")
    with faulty_front(s3.port, spoilt) as front:
        done = wirewitness(*words, port=front.port)
    assert done.returncode == 3, done.stderr
    why = WHY_LOST[fault.partition("-")[0]]
    assert f"set aside: {addresses[1]}: {why}" in done.stderr
    assert f"note: {addresses[2]} waits for a capture that comes before it" in done.stderr
    assert "read       1 capture," in done.stdout
    done = wirewitness(*words)
    assert done.returncode == 0, done.stderr
    assert differences(tmp_path / "dataset", addresses) == []


@pytest.mark.cases
@pytest.mark.parametrize("name", STUMBLES)
def test_a_store_that_stumbles_changes_nothing(s3: S3Server, name: str, tmp_path: Path) -> None:
    captures = cut("kafka_fenced_commit", tmp_path / "captures", 3)
    addresses = stored(f"stumbles/{name}", captures)
    with faulty_front(s3.port, STUMBLES[name]) as front:
        words = ("archive", f"s3://captures/stumbles/{name}", "--output", tmp_path / "dataset", "--master", "local[2]")
        done = wirewitness(*words, port=front.port)
        assert any(map(front.plan, front.seen)), "nothing went wrong"
    assert done.returncode == 0, done.stderr
    assert differences(tmp_path / "dataset", addresses) == []


@pytest.mark.cases
def test_a_truncated_upload_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Cut in its last packet; the connections go on in the next object."""
    captures = cut("kafka_fenced_commit", tmp_path / "captures", 2)
    captures[0].write_bytes(captures[0].read_bytes()[:-5])
    addresses = stored("truncated", captures)
    done = wirewitness("archive", "s3://captures/truncated", "--output", tmp_path / "dataset", "--master", "local[2]")
    assert done.returncode == 0, done.stderr
    assert differences(tmp_path / "dataset", addresses) == []
    assert f"{addresses[0]}: the last record is cut" in wirewitness("analyse", tmp_path / "dataset").stdout


@pytest.mark.parametrize(
    ("address", "says"),
    [("s3://captures/nothing-here", "no such object, and nothing below it"), ("s3://nobucket/one", "no such bucket")],
)
def test_what_is_not_there_is_one_line(address: str, says: str, tmp_path: Path) -> None:
    done = wirewitness("archive", address, "--output", tmp_path / "dataset", "--master", "local[2]", "--quiet")
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def following(below: str, folder: Path, dataset: Path, **environment: str) -> Process:
    command = [sys.executable, "-c", "from wirewitness.app.cli.main import main; main()", "archive", f"s3://captures/{below}/",
               "--output", str(dataset), "--follow", "--master", "local[2]"]  # fmt: skip
    return Process("following", command, folder, {"PYTHONPATH": IMPORT_PATH, **environment})


@pytest.mark.cases
def test_following_takes_each_object_once_whatever_is_killed(tmp_path: Path) -> None:
    captures, dataset = cut("mqtt_takeover_loop", tmp_path / "captures", 3), tmp_path / "dataset"
    addresses = stored("followed", captures[:1])
    first = following("followed", tmp_path, dataset)
    wait_until(lambda: taken_in(dataset) == {*addresses}, "the first object is in", 300)
    addresses += stored("followed", captures[1:2])
    wait_until(lambda: has_results(dataset) or len(taken_in(dataset)) == 2, "the second is decoded", 300)
    first.kill()
    addresses += stored("followed", captures[2:])
    second = following("followed", tmp_path, dataset)
    wait_until(lambda: taken_in(dataset) == {*addresses}, "all objects are in", 300)
    second.interrupt()
    second.finish(300)
    read = [one.path for one in Dataset.open(dataset).manifest.inputs if one.status == "read"]
    assert sorted(read) == sorted(addresses)
    assert differences(dataset, addresses) == []


@pytest.mark.cases
def test_what_a_store_does_not_give_is_tried_again_while_following(s3: S3Server, tmp_path: Path) -> None:
    (capture,) = cut("mqtt_takeover_loop", tmp_path / "captures", 1)
    dataset, refused = tmp_path / "dataset", list[int]()

    def refuses(request: Request) -> Fault | None:
        """Once, when packets are read, after the first look and that for keys."""
        asked = [one for one in front.seen if one.method == "GET" and capture.name in one.path]
        if len(asked) < 3 or capture.name not in request.path or refused:
            return None
        refused.append(request.number)
        return Fault(403, "AccessDenied")

    put(f"again/{capture.name}", capture.read_bytes())
    with faulty_front(s3.port, refuses) as front:
        process = following("again", tmp_path, dataset, **s3.environment(front.port))
        wait_until(lambda: bool(taken_in(dataset)), "the object is in", 300)
        process.interrupt()
        process.finish(300)
    assert refused
    assert "the next run tries again" in process.stderr_path.read_text()


@pytest.mark.cases
def test_following_a_store_that_cannot_be_asked_ends_at_once(tmp_path: Path) -> None:
    done = wirewitness("archive", "s3://nobucket/x", "--output", tmp_path / "dataset", "--follow", "--quiet")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "no such bucket" in done.stderr
