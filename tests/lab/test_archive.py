"""Archives on a real standalone cluster, killed in mid-job, and over files that a real tcpdump rotates."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient

from tests.app.program import COMMAND
from tests.conftest import IMPORT_PATH, ROOT, SAMPLES
from tests.lab.processes import Process, wait_until
from tests.lab.spark_cluster import executors_of, spark_cluster
from tests.support.archived import differences
from tests.support.mongo_server.server import Server, serving
from tests.support.replay_rotated import replay_rotated
from tests.support.request_log import write_sample_log
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.place import is_dataset
from wirewitness.analyser.archive.decode.decode_stage import RESULT_FILE
from wirewitness.analyser.base.options import ReadOptions

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

CAPTURE_BYTES = 24_000_000
DOCUMENTS, DOCUMENT_BYTES = 4_000, 1_000
RUN_S = 900


def archiving(name: str, folder: Path, *words: str | Path) -> Process:
    """The command in a process of its own."""
    command = [sys.executable, "-c", "from wirewitness.app.cli.main import main; main()", "archive", *map(str, words)]
    return Process(name, command, folder, {"PYTHONPATH": IMPORT_PATH})


def decoding(dataset: Path, process: Process) -> bool:
    """Whether tasks have written results, so that the job is in its middle."""
    process.check_alive("its job was in the middle")
    return has_results(dataset)


def has_results(dataset: Path) -> bool:
    """Whether a task's results lie there. Folders come and go meanwhile, which `os.walk` does not mind."""
    return any(RESULT_FILE in files for _, _, files in os.walk(dataset / "_staging"))


def kill_in_mid_job(process: Process, dataset: Path, victim: Process) -> None:
    wait_until(lambda: decoding(dataset, process), f"{process.name} decodes", RUN_S)
    victim.kill()


def test_a_worker_and_a_driver_killed_in_mid_job(tmp_path: Path) -> None:
    """The driver of the first run dies, then one of two workers in the second: the dataset is that of one whole run."""
    captures, dataset, logs = tmp_path / "captures", tmp_path / "dataset", tmp_path / "cluster"
    logs.mkdir()
    replay_rotated(captures, CAPTURE_BYTES, 3, many_flows=40)
    with spark_cluster(logs) as cluster:
        words = (captures, "--output", dataset, "--master", cluster.url, "--executor-memory", "600m")
        first = archiving("first", tmp_path, *words)
        kill_in_mid_job(first, dataset, first)
        assert not (dataset / "wirewitness.json").exists()

        second = archiving("second", tmp_path, *words)
        wait_until(lambda: not has_results(dataset), "the second begins anew", RUN_S)
        kill_in_mid_job(second, dataset, cluster.workers[0])
        assert executors_of(logs, 0)
        second.finish(RUN_S)
    # The number of a run that died is not taken again.
    assert f"{dataset}: run 2" in second.stdout_path.read_text()
    assert differences(dataset, sorted(captures.iterdir())) == []


@pytest.mark.cases
def test_spark_submit_with_the_packed_zip(tmp_path: Path) -> None:
    """As docs/cluster.md tells it: the driver, too, has its code from the zip alone."""
    import pyspark

    command = [*COMMAND, "archive", "--pack", str(tmp_path / "packed")]
    packed = Process("pack", command, tmp_path, {"PYTHONPATH": IMPORT_PATH})
    packed.finish()
    capture, dataset, logs = ROOT / "sample_pcaps" / "mqtt_faults.pcapng", tmp_path / "dataset", tmp_path / "cluster"
    logs.mkdir()
    with spark_cluster(logs) as cluster:
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [
            submit, "--master", cluster.url, "--executor-memory", "600m", "--py-files",
            tmp_path / "packed" / "wirewitness.zip", tmp_path / "packed" / "wirewitness_submit.py",
            "archive", capture, "--output", dataset,
        ]  # fmt: skip
        environment = {"JAVA_HOME": str(logs / "java"), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": "",
                       "SPARK_LOCAL_IP": "127.0.0.1"}  # fmt: skip
        Process("submit", [*map(str, command)], tmp_path, environment).finish(RUN_S)
    assert differences(dataset, [capture]) == []


@contextlib.contextmanager
def rotating(folder: Path, port: int) -> Iterator[Process]:
    """tcpdump on loopback, a new file for each million bytes."""
    command = ["tcpdump", "-n", "-U", "-i", "lo", "-B", "16384", "-Z", "root", "-C", "1",
               "-w", str(folder / "ring.pcap"), "tcp", "port", str(port)]  # fmt: skip
    process = Process("tcpdump", command, folder.parent)
    try:
        wait_until(lambda: "listening on" in process.stderr_path.read_text(), "tcpdump listens", 20)
        yield process
    finally:
        process.stop()


def talk(port: int) -> None:
    """A driver that writes and reads documents."""
    with MongoClient(f"127.0.0.1:{port}", replicaSet="lab") as client:
        for number in range(DOCUMENTS):
            client.shop.orders.insert_one({"_id": number, "text": os.urandom(DOCUMENT_BYTES // 2).hex()})
            if number % 40 == 0:
                list(client.shop.orders.find({"_id": number}))


def test_following_files_that_tcpdump_rotates(tmp_path: Path) -> None:
    """Runs while the files come; the last file only when tcpdump has closed it; Ctrl-C ends it well."""
    captures, dataset = tmp_path / "captures", tmp_path / "dataset"
    captures.mkdir()
    with Server(("127.0.0.1", 0), ()) as server:
        serving(server)
        port = int(server.server_address[1])
        with rotating(captures, port) as tcpdump:
            following = archiving("following", tmp_path, captures, "--output", dataset, "--follow",
                                  "--master", "local[2]", "--decode-as", f"{port}=mongo")  # fmt: skip
            talk(port)
            wait_until(lambda: len(taken_in(dataset)) >= 2, "the first files are in", RUN_S)
            last = max(captures.iterdir(), key=lambda path: path.stat().st_mtime_ns)
            assert str(last) not in taken_in(dataset)
            tcpdump.terminate()
        server.shutdown()
        files = {str(path) for path in captures.iterdir()}
        assert len(files) >= 4
        wait_until(lambda: taken_in(dataset) == files, "all files are in", RUN_S)
        following.interrupt()
        following.finish(RUN_S)
    assert len(Dataset.open(dataset).manifest.runs) >= 2
    assert differences(dataset, sorted(captures.iterdir()), ReadOptions(decode_as={port: "mongo"})) == []


@pytest.mark.cases
def test_following_a_request_log_that_a_broker_writes_and_rotates(tmp_path: Path) -> None:
    """As Kafka's log4j configuration has it: the file of the hour is renamed and another one begun. The one that is
    being written is left alone, connections go on from one to the next, and logrotate compresses one meanwhile."""
    logs, dataset = tmp_path / "logs", tmp_path / "dataset"
    logs.mkdir()
    lines = write_sample_log(SAMPLES, "kafka_fenced_commit", tmp_path / "whole.log").read_bytes().splitlines(True)
    active = logs / "kafka-request.log"
    hours = [f"{active}.2026-11-20-{hour}" for hour in (9, 10, 11)]
    following = archiving("following", tmp_path, logs, "--output", dataset, "--follow", "--master", "local[2]")
    for hour, name in enumerate(hours):
        with active.open("wb") as file:
            file.write(b"".join(lines[hour * 140 : (hour + 1) * 140]))
            file.flush()
            if hour:
                wait_until(lambda: len(taken_in(dataset)) >= 1, "the first log is in", RUN_S)
                assert str(active) not in taken_in(dataset)
        active.rename(name)
        if hour == 1:
            (logs / "old.gz").write_bytes(gzip.compress(Path(hours[0]).read_bytes()))
    with active.open("wb") as file:
        file.write(b"".join(lines[420:]))
    files = {*hours, str(active)}
    wait_until(lambda: taken_in(dataset) == files, "all logs are in", RUN_S)
    following.interrupt()
    following.finish(RUN_S)
    assert len(Dataset.open(dataset).manifest.runs) >= 2
    assert differences(dataset, [*hours, active]) == []


def taken_in(dataset: str | Path) -> set[str]:
    """Captures that the dataset holds."""
    if not is_dataset(dataset):
        return set()
    return {one.path for one in Dataset.open(dataset).manifest.inputs if one.status == "read"}
