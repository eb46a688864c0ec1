"""Archives of captures in a real S3 server into a dataset there, of which something is killed: as undisturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.lab.processes import Process, wait_until
from tests.lab.spark_cluster import apart, executors_of, spark_cluster
from tests.lab.store_kinds import Store, files_of
from tests.lab.test_archive import RUN_S, archiving, taken_in
from tests.support.archived import differences
from tests.support.replay_rotated import replay_rotated
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.decode.decode_stage import RESULT_FILE

pytestmark = [
    pytest.mark.lab,
    pytest.mark.cases,
    pytest.mark.timeout(1500),
    pytest.mark.parametrize("store", ["s3"], indirect=True),
]

CAPTURE_BYTES = 8_000_000


def decoded(dataset: str, process: Process) -> bool:
    """Whether a task's results lie in the store."""
    process.check_alive("its job was in the middle")
    return any(name.endswith(f"/{RESULT_FILE}") for name in files_of(dataset))


def test_a_worker_killed_in_mid_job(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two that share no folder: with it goes what its tasks left for others on its disk."""
    logs, driver = tmp_path / "cluster", tmp_path / "driver"
    for folder in (logs, driver):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(driver))
    replay_rotated(tmp_path / "captures", CAPTURE_BYTES, 3, many_flows=40)
    dataset = store.address("killed/worker")
    captures = sorted((tmp_path / "captures").iterdir())
    addresses = [store.put(f"from/worker/{path.name}", path.read_bytes()) for path in captures]
    with spark_cluster(logs, starts=apart([tmp_path / "worker-0", tmp_path / "worker-1"], driver)) as cluster:
        words = (*addresses, "--output", dataset, "--master", cluster.url, "--executor-memory", "600m")
        process = archiving("archive", tmp_path, *words)
        wait_until(lambda: decoded(dataset, process), "it decodes", RUN_S)
        cluster.workers[0].kill()
        assert executors_of(logs, 0)
        process.finish(RUN_S)
    assert f"{dataset}: run 1" in process.stdout_path.read_text()
    assert differences(dataset, addresses) == []


def test_following_takes_each_object_once_whatever_is_killed(store: Store, tmp_path: Path) -> None:
    captures = rotated(packets_of(SAMPLES / "mqtt_takeover_loop.pcapng"), tmp_path / "captures", 3)
    dataset, addresses = store.address("killed/followed"), list[str]()
    words = (store.address("from/followed"), "--output", dataset, "--follow", "--master", "local[2]", "--shares", "3")

    def bring(capture: Path) -> None:
        addresses.append(store.put(f"from/followed/{capture.name}", capture.read_bytes()))

    bring(captures[0])
    first = archiving("first", tmp_path, *words)
    wait_until(lambda: taken_in(dataset) == {*addresses}, "the first object is in", RUN_S)
    bring(captures[1])
    wait_until(lambda: decoded(dataset, first) or len(taken_in(dataset)) == 2, "the second is decoded", RUN_S)
    first.kill()
    bring(captures[2])
    second = archiving("second", tmp_path, *words)
    wait_until(lambda: taken_in(dataset) == {*addresses}, "all objects are in", RUN_S)
    second.interrupt()
    second.finish(RUN_S)
    read = [one.path for one in Dataset.open(dataset).manifest.inputs if one.status == "read"]
    assert sorted(read) == sorted(addresses)
    assert differences(dataset, addresses) == []
