"""Captures and datasets in real HDFS: read like files and folders of this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pytest

from tests.conftest import SAMPLES
from tests.lab.hdfs_server import OWNER, HdfsServer
from tests.lab.in_hdfs import client, put, put_folder
from tests.lab.stored import QUESTIONS, wirewitness
from tests.support.archived import differences
from tests.support.datasets import make_dataset
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.ingest.arriving import is_complete
from wirewitness.analyser.archive.run import ArchiveOptions, archive
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.faults import ObjectChanged
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at, objects_below
from wirewitness.analyser.capture import open_captures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900), pytest.mark.usefixtures("as_owner")]

STALE = SAMPLES / "kafka_stale_commit.pcapng"
SMALL = SAMPLES / "kafka_healthy.pcapng"


def found_at(address: str) -> ObjectPath:
    """The file there."""
    named = address_of(address)
    assert named is not None
    found = object_at(named)
    assert found is not None
    return found


def while_any(stream: BinaryIO) -> None:
    """Read to the end."""
    while stream.read(1 << 20):
        pass


def test_a_capture_tells_what_the_file_tells(hdfs: HdfsServer) -> None:
    """In three blocks of HDFS, under a name that has to be taken as it is."""
    address = put(hdfs, "one/with space 100%25 %.pcapng", STALE.read_bytes())
    done = wirewitness("analyse", address, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    here = wirewitness("analyse", STALE, "--format", "json")
    assert done.stdout.replace(json.dumps(address)[1:-1], str(STALE)) == here.stdout


@pytest.mark.cases
def test_all_below_an_address_tells_what_the_folder_tells(hdfs: HdfsServer, tmp_path: Path) -> None:
    for name in ("day 1/mqtt_faults", "day 2/deeper/mongo_healthy", "ü#?&+*[1]/.hidden"):
        path = tmp_path / f"{name}.pcapng"
        path.parent.mkdir(parents=True)
        path.write_bytes((SAMPLES / "mqtt_faults.pcapng" if "." in name else SAMPLES / f"{path.name}").read_bytes())
    (tmp_path / "notes.txt").write_text("not a capture")
    address = put_folder(hdfs, "all", tmp_path)
    done = wirewitness("table", "messages", f"{address}/", "--format", "csv")
    here = wirewitness("table", "messages", tmp_path, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace(address, str(tmp_path)) == here.stdout
    assert f"passed over what is no capture: 1 (the first is {address}/notes.txt)" in done.stderr


@pytest.mark.cases
def test_messages_are_shown_and_extracted(hdfs: HdfsServer, tmp_path: Path) -> None:
    address = put(hdfs, "show/small.pcapng", SMALL.read_bytes())
    rows = wirewitness("table", "messages", SMALL, "--columns", "message_id", "--format", "csv").stdout.splitlines()
    shown = wirewitness("show", address, rows[-1])
    assert shown.stdout.replace(address, str(SMALL)) == wirewitness("show", SMALL, rows[-1]).stdout
    assert wirewitness("extract", address, "--message", rows[-1], "--output", tmp_path / "there").returncode == 0
    assert len(packets_of(tmp_path / "there")) > 0


def test_what_is_denied_is_told_and_the_rest_is_read(hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    put(hdfs, "some/a.pcapng", SMALL.read_bytes())
    file = put(hdfs, "some/b.pcapng", SMALL.read_bytes(), permission=0o600)
    put(hdfs, "some/closed/c.pcapng", SMALL.read_bytes())
    client(hdfs).set_permission("/some/closed", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    done = wirewitness("analyse", f"{hdfs.address}/some")
    assert done.returncode == 0, done.stderr
    assert "files or folders that cannot be read: 2 (the first is " in done.stderr
    alone = wirewitness("analyse", file)
    assert (alone.returncode, len(alone.stderr.splitlines())) == (2, 1)
    assert f"{file}: permission denied (READ for user somebody); HADOOP_USER_NAME says who asks" in alone.stderr


def test_a_file_that_is_replaced_while_it_is_read_is_told(hdfs: HdfsServer) -> None:
    address = put(hdfs, "replaced.pcapng", STALE.read_bytes())
    (source,) = open_captures([address])
    assert isinstance(source.path, ObjectPath)
    with source.path.open() as stream:
        assert stream.read(100) == STALE.read_bytes()[:100]
        put(hdfs, "replaced.pcapng", STALE.read_bytes()[:-1] + b"x")  # as long as before
        with pytest.raises(ObjectChanged):
            while_any(stream)
    assert bytes(found_at(address).read(0, 100)) == STALE.read_bytes()[:100]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("HDFS/nothing-here", "no such object, and nothing below it"),
        ("hdfs://nameservice/x", "no name node is known: write hdfs://HOST:PORT/PATH, or let HADOOP_CONF_DIR"),
        ("hdfs:///x", "hdfs:/// means fs.defaultFS of core-site.xml, which is not set"),
        ("hdfs://127.0.0.1:9/x", "the store cannot be reached: connection refused"),
    ],
)
def test_what_is_not_there_is_one_line(hdfs: HdfsServer, address: str, says: str) -> None:
    done = wirewitness("analyse", address.replace("HDFS", hdfs.address))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert says in done.stderr


@pytest.mark.cases
def test_the_default_file_system_and_name_services_are_those_of_hadoop(
    hdfs: HdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(hdfs, "default/small.pcapng", SMALL.read_bytes())
    settings = {
        "fs.defaultFS": "hdfs://lab", "dfs.nameservices": "lab", "dfs.ha.namenodes.lab": "one",
        "dfs.namenode.rpc-address.lab.one": hdfs.address.removeprefix("hdfs://"),
    }  # fmt: skip
    text = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    for name in ("core-site.xml", "hdfs-site.xml"):
        (tmp_path / name).write_text(f"<configuration>{text}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for address in ("hdfs:///default/small.pcapng", "hdfs://lab/default/small.pcapng"):
        done = wirewitness("table", "flows", address, "--columns", "flow_id", "--format", "csv")
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) > 1


@pytest.mark.cases
def test_folders_of_several_parts_are_listed_to_their_end(hdfs: HdfsServer) -> None:
    names = [f"pages/{number:04}" for number in range(230)]  # the name node gives 100 at a time
    asked = client(hdfs)
    asked.mkdirs("/pages")
    for name in names:
        asked.create(f"/{name}").close()
    below = address_of(f"{hdfs.address}/pages")
    assert below is not None
    assert sorted(path.address.key for path in objects_below(below)) == names


@pytest.mark.cases
def test_what_somebody_still_writes_is_not_complete(hdfs: HdfsServer) -> None:
    stream = client(hdfs).create("/growing.pcapng")
    stream.write(SMALL.read_bytes())
    stream.hsync()
    assert not is_complete(found_at(f"{hdfs.address}/growing.pcapng"))
    stream.close()
    assert is_complete(found_at(f"{hdfs.address}/growing.pcapng"))
    assert not is_complete(found_at(put(hdfs, "put.pcapng._COPYING_", b"x")))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("datasets") / "traffic", [STALE, SAMPLES / "mqtt_faults.pcapng"])


@pytest.mark.cases
@pytest.mark.parametrize("command", QUESTIONS, ids=lambda command: command[0])
def test_a_dataset_answers_as_on_this_machine(hdfs: HdfsServer, dataset: Path, command: tuple[str, ...]) -> None:
    there = f"{hdfs.address}/datasets/traffic"
    if not client(hdfs).glob_status("/datasets/traffic/wirewitness.json"):
        put_folder(hdfs, "datasets/traffic", dataset)
    done: list[subprocess.CompletedProcess[str]] = [
        wirewitness(*(place if word == "DATASET" else word for word in command)) for place in (there, str(dataset))
    ]
    assert (done[0].returncode, done[0].stderr) == (0, done[1].stderr.replace(str(dataset), there))
    assert done[0].stdout == done[1].stdout.replace(str(dataset), there)


@pytest.mark.cases
def test_a_dataset_under_a_name_that_delta_cannot_read_is_told(hdfs: HdfsServer, dataset: Path) -> None:
    put(hdfs, "with space/traffic/wirewitness.json", (dataset / "wirewitness.json").read_bytes())
    done = wirewitness("table", "exchanges", f"{hdfs.address}/with space/traffic")
    assert done.returncode == 2
    assert "the path of a dataset in HDFS has letters, digits and _ . - ~ / only" in done.stderr


@pytest.mark.parametrize(
    ("place", "user", "says"),
    [
        ("closed/traffic", "somebody", "permission denied (WRITE for user somebody); HADOOP_USER_NAME says who asks"),
        ("with space", OWNER, "the path of a dataset in HDFS has letters, digits and _ . - ~ / only; move it."),
    ],
)
def test_a_dataset_that_cannot_be_made_is_one_line(
    hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch, place: str, user: str, says: str
) -> None:
    client(hdfs).mkdirs("/closed", create_parent=True)
    monkeypatch.setenv("HADOOP_USER_NAME", user)
    done = wirewitness("archive", SMALL, "--output", f"{hdfs.address}/{place}", "--master", "local[2]", "--quiet")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert says in done.stderr


def test_captures_are_taken_into_a_dataset(hdfs: HdfsServer, spark: SparkSession, tmp_path: Path) -> None:
    """Which lies in HDFS, too. In two runs; then one is replaced, and a copy of another lies beside it."""
    captures = rotated(packets_of(SAMPLES / "mqtt_takeover_loop.pcapng"), tmp_path / "captures", 3)
    spark.sparkContext.environment["HADOOP_USER_NAME"] = OWNER
    options, dataset = ArchiveOptions(shards=3, range_bytes=50_000), f"{hdfs.address}/dataset"
    addresses = [put(hdfs, f"from/{path.name}", path.read_bytes()) for path in captures[:2]]
    summary = archive([f"{hdfs.address}/from"], dataset, spark, options)
    assert (len(summary.files), summary.known, summary.aside) == (2, 0, [])
    addresses.append(put(hdfs, f"from/{captures[2].name}", captures[2].read_bytes()))
    summary = archive([f"{hdfs.address}/from"], dataset, spark, options)
    assert (len(summary.files), summary.known, summary.aside) == (1, 2, [])
    assert differences(dataset, addresses) == []
    states = {one.path: one.tag for one in Dataset.open(dataset).manifest.inputs}
    assert states == {address: found_at(address).state.tag for address in addresses}
    copy = put(hdfs, "from/copy", captures[0].read_bytes())
    put(hdfs, f"from/{captures[2].name}", captures[2].read_bytes()[:-10])
    summary = archive([f"{hdfs.address}/from"], dataset, spark, options)
    assert (summary.files, summary.known) == ([], 2)
    reasons = " ".join(one.reason or "" for one in summary.aside)
    assert f"{copy} has the same content as {addresses[0]}" in reasons
    assert f"{addresses[2]} has changed since it was taken in" in reasons
