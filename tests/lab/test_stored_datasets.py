"""Datasets in a real S3 server: read where they lie, like those of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser

from tests.conftest import SAMPLES
from tests.lab.s3_server import S3Server
from tests.lab.stored import QUESTIONS, put, wirewitness
from tests.support.browser import dashboard, person
from tests.support.datasets import make_dataset
from tests.support.faulty_front import Fault, Request, faulty_front

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600), pytest.mark.usefixtures("in_store")]

STALE = SAMPLES / "kafka_stale_commit.pcapng"
ADDRESS = "s3://captures/datasets/traffic"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("datasets") / "traffic", [STALE, SAMPLES / "mqtt_faults.pcapng"])


@pytest.fixture
def stored(dataset: Path, in_store: None) -> str:
    """The dataset's files, copied to the store as they are."""
    for path in sorted(dataset.rglob("*")):
        if path.is_file():
            put(f"datasets/traffic/{path.relative_to(dataset)}", path.read_bytes())
    return ADDRESS


def same(stored: subprocess.CompletedProcess[str], here: subprocess.CompletedProcess[str], dataset: Path) -> None:
    assert (stored.returncode, stored.stderr) == (here.returncode, here.stderr.replace(str(dataset), ADDRESS))
    assert stored.stdout == here.stdout.replace(str(dataset), ADDRESS)
    assert stored.returncode == 0


@pytest.mark.parametrize("command", QUESTIONS, ids=lambda command: command[0])
def test_it_answers_as_the_same_files_on_this_machine(stored: str, dataset: Path, command: tuple[str, ...]) -> None:
    there = wirewitness(*(stored if word == "DATASET" else word for word in command))
    same(there, wirewitness(*(str(dataset) if word == "DATASET" else word for word in command)), dataset)


def test_messages_are_shown_from_captures_that_are_still_there(stored: str, dataset: Path) -> None:
    ids = wirewitness("table", "messages", stored, "--columns", "message_id", "--format", "csv").stdout.splitlines()
    same(wirewitness("show", stored, ids[-1]), wirewitness("show", dataset, ids[-1]), dataset)


def test_a_part_that_is_gone_is_told(stored: str, s3: S3Server) -> None:
    gone = next((s3.buckets / "captures/datasets/traffic/exchanges").rglob("*.parquet"))
    gone.unlink()
    done = wirewitness("table", "exchanges", stored)
    assert done.returncode in (2, 3)
    assert gone.name in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_store_that_stumbles_changes_nothing(stored: str, dataset: Path, s3: S3Server) -> None:
    def stumbles(request: Request) -> Fault | None:
        return Fault(503, "SlowDown") if request.number % 4 == 1 else None

    with faulty_front(s3.port, stumbles) as front:
        there = wirewitness("table", "messages", stored, "--format", "csv", port=front.port)
    same(there, wirewitness("table", "messages", dataset, "--format", "csv"), dataset)


def test_the_dashboard_shows_it_and_what_takes_its_place(
    stored: str, dataset: Path, browser: Browser, tmp_path: Path, s3: S3Server
) -> None:
    with dashboard(tmp_path, [stored]) as served, person(browser, served) as one:
        one.go("/")
        assert "a stale offset over" in one.reads()
        one.go("/exchanges?capture=" + parse_qs(urlsplit(one.page.url).query)["capture"][0])
        assert STALE.name in one.reads()
        manifest = s3.buckets / "captures/datasets/traffic/wirewitness.json"
        put("datasets/traffic/wirewitness.json", manifest.read_bytes() + b" ")
        one.go("/")
        assert "a stale offset over" in one.reads()
        assert one.errors == []


def test_a_dataset_stands_alone(stored: str) -> None:
    done = wirewitness("analyse", stored, STALE)
    assert done.returncode == 2
    assert "is a dataset, which is read alone" in done.stderr
