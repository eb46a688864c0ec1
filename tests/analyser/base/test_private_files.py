"""Temporary files go with their process, however it ends, and nobody leads a writer elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import IMPORT_PATH
from wirewitness.analyser.base import private_files
from wirewitness.analyser.base.private_files import PREFIX, TemporaryFolder, folder_part_of
from wirewitness.analyser.base.written_files import written

KILLED = """
import os, signal, sys
from pathlib import Path
from wirewitness.analyser.base.private_files import TemporaryFolder, folder_part_of
from wirewitness.analyser.base.written_files import written
folder = TemporaryFolder("live", sys.argv[1])
(Path(folder.name) / "rows").write_text("x")
with written(sys.argv[1] + "/report.html") as file, folder_part_of(Path(sys.argv[1]) / "bundle") as bundle:
    file.write(b"half")
    file.flush()
    (bundle / "half").write_text("half")
    print("made", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _as_in_a_new_process() -> None:
    private_files._remove_left.cache_clear()


@pytest.fixture
def other(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def use(folder: Path) -> None:
    """What the next process does."""
    with (
        TemporaryFolder(place=folder),
        written(str(folder / "report.html")) as file,
        folder_part_of(folder / "bundle"),
    ):
        file.write(b"whole")


def test_what_a_killed_process_left_goes_with_the_next_one(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert len(names(tmp_path)) == 3
    use(tmp_path)
    assert names(tmp_path) == ["bundle", "report.html"]
    assert (tmp_path / "report.html").read_text() == "whole"


def test_what_another_process_is_at_work_on_stays(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    before = names(tmp_path)
    use(tmp_path)
    assert set(before) < set(names(tmp_path))
    other.kill()
    other.wait()


def test_only_names_of_ours_go(tmp_path: Path) -> None:
    for name in ("wirewitness-incident", f"{PREFIX}notes", ".report.html.part", ".other.html.12345678.part"):
        (tmp_path / name).mkdir()
    (tmp_path / ".report.html.12345678.part").symlink_to(tmp_path / "wirewitness-incident")
    before = names(tmp_path)
    use(tmp_path)
    assert set(before) <= set(names(tmp_path))


def test_a_part_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")

    def fail() -> None:
        with written(str(target)) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert names(tmp_path) == ["report.html"]
    assert target.read_text() == "before"


def test_a_folder_ends_with_its_block_and_with_its_process(tmp_path: Path) -> None:
    with TemporaryFolder("spark", tmp_path) as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert names(tmp_path) == []
    program = (
        "import sys; from wirewitness.analyser.base.private_files import TemporaryFolder;"
        "kept = TemporaryFolder(place=sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONPATH": IMPORT_PATH}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, env=environment)
    assert names(tmp_path) == []


RIGHTS_LOST = """
import os, sys
from wirewitness.analyser.base.private_files import TemporaryFolder
place = sys.argv[1]
folder = TemporaryFolder(place=place)
open(f"{folder.name}/rows", "w").close()
os.chmod(place, 0o555)
if os.geteuid() == 0:
    os.chown(folder.name, 65534, 65534)
    os.setuid(65534)
folder.cleanup()
"""


def test_a_process_that_gave_its_rights_up_removes_what_it_may(tmp_path: Path) -> None:
    """The folder itself lies where it may change nothing any more; the next one removes it."""
    done = subprocess.run(
        [sys.executable, "-c", RIGHTS_LOST, str(tmp_path)], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
    )  # fmt: skip
    os.chmod(tmp_path, 0o755)
    assert (done.returncode, done.stderr) == (0, b"")
    TemporaryFolder(place=str(tmp_path)).cleanup()
    assert not os.listdir(tmp_path)
