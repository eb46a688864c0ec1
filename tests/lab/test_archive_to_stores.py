"""Captures into a dataset that lies in a real S3 server or in real HDFS: as into one of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.app.program import COMMAND
from tests.conftest import IMPORT_PATH, SAMPLES
from tests.lab.processes import LabError, Process
from tests.lab.spark_cluster import apart, spark_cluster
from tests.lab.store_kinds import Store, files_of, on_stores
from tests.lab.stored import wirewitness
from tests.support.archived import differences
from tests.support.faulty_front import Fault, Request
from tests.support.request_log import write_sample_log
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.place import is_dataset
from wirewitness.analyser.base.private_files import PREFIX

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

# What is asked of HDFS beside the one dataset of test_hdfs.py.
REST = pytest.mark.exhaustive


def cut(name: str, folder: Path, files: int) -> list[Path]:
    return rotated(packets_of(SAMPLES / f"{name}.pcapng"), folder, files)


def archived(
    dataset: str, inputs: Sequence[str | Path], *words: str, environment: Mapping[str, str] | None = None
) -> str:
    done = wirewitness("archive", *inputs, "--output", dataset, "--master", "local[2]", "--shares", "3", *words,
                       environment=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.cases
@pytest.mark.parametrize("name", ["kafka_fenced_commit", "mongo_shapes_and_errors", "mqtt_faults"])
@on_stores(REST)
def test_it_is_what_the_offline_command_finds(store: Store, name: str, tmp_path: Path) -> None:
    """In two runs, of files and of objects; then all parts are put together."""
    captures, dataset = cut(name, tmp_path / "captures", 4), store.address(f"data/{name}")
    assert "read       2 captures" in archived(dataset, captures[:2])
    addresses = [store.put(f"from/{name}/{path.name}", path.read_bytes()) for path in captures[2:]]
    assert "read       2 captures" in archived(dataset, [*captures[:2], store.address(f"from/{name}")])
    assert differences(dataset, [*captures[:2], *addresses]) == []
    assert "nothing new" in archived(dataset, [*captures[:2], store.address(f"from/{name}")])
    done = wirewitness("archive", "--output", dataset, "--master", "local[2]", "--compact")
    assert done.returncode == 0, done.stderr
    assert differences(dataset, [*captures[:2], *addresses]) == []


@pytest.mark.cases
@on_stores(REST)
def test_what_a_request_log_tells_as_well_counts_once(store: Store, tmp_path: Path) -> None:
    """The capture in the first run, the log from the store in the second: rows of the first are amended there."""
    capture, dataset = SAMPLES / "kafka_fenced_commit.pcapng", store.address("data/log")
    log = write_sample_log(SAMPLES, "kafka_fenced_commit", tmp_path / "kafka-request.log")
    address = store.put("logs/kafka-request.log", log.read_bytes())
    archived(dataset, [capture])
    archived(dataset, [capture, store.address("logs")])
    assert differences(dataset, [capture, address]) == []


@pytest.mark.cases
@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_store_that_stumbles_changes_nothing(store: Store, tmp_path: Path) -> None:
    captures, dataset = cut("mqtt_takeover_loop", tmp_path / "captures", 2), store.address("data/stumbles")

    def stumbles(request: Request) -> Fault | None:
        return Fault(503, "SlowDown") if request.number % 5 == 1 else None

    with store.front(stumbles) as front:
        archived(dataset, captures[:1], environment=store.environment(front.port))
        archived(dataset, captures, environment=store.environment(front.port))
    assert differences(dataset, captures) == []


@pytest.mark.cases
@on_stores(REST)
def test_a_run_that_is_killed_is_done_again(store: Store, tmp_path: Path) -> None:
    """When it brings its parts, and when its manifest is under way."""
    captures, dataset = cut("mqtt_takeover_loop", tmp_path / "captures", 2), store.address("data/killed")
    command = [*COMMAND, "archive", *map(str, captures),
               "--output", dataset, "--master", "local[2]", "--shares", "3"]  # fmt: skip
    for sign in ("/part-", "wirewitness.json"):
        running: list[Process] = []

        def kill(request: Request, sign: str = sign, running: list[Process] = running) -> Fault | None:
            if not store.writes(request) or sign not in request.path:
                return None
            return Fault(503, "SlowDown", before=running.pop().kill if running else None)

        with store.front(kill) as front:
            environment = {**store.environment(front.port), "PYTHONPATH": IMPORT_PATH}
            process = Process("killed", command, tmp_path, environment)
            running.append(process)
            with pytest.raises(LabError, match="ended with -9"):
                process.finish(600)
        assert not is_dataset(dataset)
    archived(dataset, captures)
    assert differences(dataset, captures) == []
    assert [int(run.name) for run in Dataset.open(dataset).manifest.runs] == [3]


@pytest.mark.cases
@on_stores(REST)
def test_of_two_commands_at_once_the_second_says_so(store: Store, tmp_path: Path) -> None:
    captures, dataset = cut("mqtt_takeover_loop", tmp_path / "captures", 2), store.address("data/two")
    others: list[str] = []

    def other(request: Request) -> Fault | None:
        if others or not store.writes(request) or "/part-" not in request.path:
            return None
        others.append(request.path)
        return Fault(before=lambda: archived(dataset, captures) and None)

    with store.front(other) as front:
        done = wirewitness("archive", captures[0], "--output", dataset, "--shares", "3", "--quiet",
                           environment=store.environment(front.port))  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"wirewitness: {dataset} was changed by another run meanwhile, and nothing of this one counts; "
        "run the command again.\n"
    )
    assert differences(dataset, captures) == []


@pytest.mark.cases
@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_store_that_refuses_is_one_line(store: Store) -> None:
    def refused(request: Request) -> Fault | None:
        return Fault(403, "AccessDenied") if request.method == "PUT" and "/part-" in request.path else None

    with store.front(refused) as front:
        done = wirewitness("archive", SAMPLES / "mqtt_faults.pcapng", "--output", store.address("data/refused"),
                           "--quiet", environment=store.environment(front.port))  # fmt: skip
    assert done.returncode == 2
    assert "permission denied (403 Forbidden AccessDenied)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.cases
@on_stores(REST)
def test_on_a_cluster_no_folder_is_shared(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with the driver nor between workers. What they write they bring to the store themselves: of parts the
    driver, who alone asks by the front, puts there those that it makes of some rows."""
    logs, driver = tmp_path / "cluster", tmp_path / "driver"
    for folder in (logs, driver):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(driver))
    captures, dataset = cut("mqtt_takeover_loop", tmp_path / "captures", 4), store.address("data/cluster")
    addresses = [store.put(f"from/cluster/{path.name}", path.read_bytes()) for path in captures]
    places = [tmp_path / "worker-0", tmp_path / "worker-1"]
    with spark_cluster(logs, starts=apart(places, driver)) as cluster, store.front(lambda _: None) as front:
        for some in (addresses[:2], addresses):
            done = wirewitness("archive", *some, "--output", dataset, "--master", cluster.url, "--executor-memory",
                               "600m", "--shares", "4", environment=store.environment(front.port))  # fmt: skip
            assert done.returncode == 0, done.stderr
        left = [path for place in (driver, *places) for path in place.rglob("*") if path.name.startswith(PREFIX)]
        assert left == []
    assert differences(dataset, addresses) == []
    by_driver = [request.path for request in front.seen if store.writes(request) and "/part-" in request.path]
    tables = {path.partition("/cluster/")[2].partition("/")[0] for path in by_driver}
    assert tables <= {"captures", "expert_infos", "findings"}
    assert [name for name in files_of(dataset) if "/_work/" in name] == []
