"""Queries that reach a limit of memory or of temporary files: a line says what is missing, and the exit status is 3."""

from __future__ import annotations

import errno
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.app.program import COMMAND, environment
from tests.app.test_commands import invoke
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.analysis import views
from wirewitness.analyser.archive.dataset import reading
from wirewitness.analyser.base.faults import LimitReached, counted, is_of_a_limit, of_limit, told
from wirewitness.analyser.tables import queries
from wirewitness.app.shared.failure import Status

CAPTURE = SAMPLES / "kafka_stale_commit.pcapng"


@pytest.mark.parametrize(
    "words", [("table", "kafka_committed"), ("analyse", "--format", "json"), ("query", "SELECT * FROM kafka_committed")]
)
def test_what_a_capture_may_spill(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MEMORY_BYTES", 12_000_000)
    monkeypatch.setattr(views, "TEMPORARY_BYTES", 0)
    monkeypatch.setattr(views, "TEMPORARY_BYTES_OF_ROW", 0)
    command, *rest = words
    given = (command, rest[0], CAPTURE) if command == "table" else (command, CAPTURE, *rest)
    result = invoke(*given)
    assert result.exit_code == Status.SOME_INPUT_UNREAD
    assert "a limit is reached, temporary files of a query, by the context of kafka_committed" in result.stderr
    assert "report it" not in result.stderr


def test_a_full_disk_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "rows of flows", "the rest of them is left out")
    assert said == (
        "a limit is reached, no space for temporary files (TMPDIR says where they lie), by rows of flows: the rest of "
        "them is left out"
    )
    assert is_of_a_limit(said)
    monkeypatch.setenv("WIREWITNESS_FAULTS", "")
    assert is_of_a_limit(told(LimitReached("7 rows"), "the context of mongo_conflicts", "further ones are left out"))
    assert is_of_a_limit(counted(of_limit("the rest is not decoded"), 1_234))
    fault = told(ValueError("x"), "rows of flows", "the rest of them is left out")
    assert not is_of_a_limit(fault)
    assert not is_of_a_limit(counted(fault, 2))


MEMORY = "100kB"
WITHIN = [
    ("table", "messages", "--format", "jsonl"),
    ("table", "messages", "--format", "parquet"),
    ("query", "SELECT * FROM messages ORDER BY summary", "--format", "jsonl"),
    ("query", "SELECT * FROM messages ORDER BY summary", "--format", "parquet"),
    ("differ", "--where", "latency_ms > 1"),
    ("expect", "kafka-consumer"),
]


@pytest.mark.parametrize("words", WITHIN, ids=" ".join)
def test_what_rows_of_a_dataset_may_take(
    words: tuple[str, ...], dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no mistake of the condition, which may not even be there."""
    monkeypatch.setattr(reading, "open_connection", partial(queries.open_connection, memory=MEMORY))
    command, *rest = words
    given = [command, dataset, *rest] if command in ("query", "differ") else [command, *rest[:1], dataset, *rest[1:]]
    result = invoke(*given, *(["--output", tmp_path / "rows"] if "parquet" in words else []))
    assert (result.exit_code, len(result.stderr.splitlines())) == (Status.SOME_INPUT_UNREAD, 1), result.stderr
    assert "a limit is reached, memory of a query, by " in result.stderr
    assert not (tmp_path / "rows").exists()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("data") / "set", [CAPTURE])


@pytest.mark.parametrize(
    "words",
    [("--help",), ("table", "--help"), ("analyse", CAPTURE), ("live", "-r", CAPTURE, "--format", "jsonl")],
    ids=lambda words: " ".join(map(str, words[:1])),
)
def test_standard_output_that_takes_no_more(words: tuple[object, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *map(str, words)], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    last = done.stderr.decode().splitlines()[-1]
    assert (done.returncode, last) == (
        Status.USAGE,
        "wirewitness: cannot write to standard output: No space left on device",
    )


@pytest.mark.parametrize("words", [("table", "exchanges", CAPTURE, "--format", "parquet"), ("analyse", CAPTURE)])
def test_a_file_that_takes_no_more(words: tuple[object, ...]) -> None:
    result = invoke(*words, "--output", "/dev/full")
    assert (result.exit_code, result.stderr.splitlines()) == (
        Status.USAGE,
        ["wirewitness: cannot write to /dev/full: No space left on device"],
    )
