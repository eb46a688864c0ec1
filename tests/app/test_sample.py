"""Sample captures come with the program, and it needs no name at the top level but its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import wirewitness
from tests.app.program import COMMAND, environment, run
from tests.conftest import IMPORT_PATH, ROOT, SAMPLES
from wirewitness.app.shared.samples import samples

OWN = ("analyser", "app", "dissectors", "reports")


def test_the_list_names_each_sample_and_what_it_shows() -> None:
    shown = " ".join(run("sample").stdout.decode().split())
    assert all(f"{name} {one.shows}" in shown for name, one in samples().items())
    assert {one.path.name for one in samples().values()} == {path.name for path in SAMPLES.glob("*.pcapng")}


def test_the_path_of_a_sample_is_one_that_can_be_read() -> None:
    path = run("sample", "MQTT_faults").stdout.decode().removesuffix("\n")
    assert Path(path).samefile(SAMPLES / "mqtt_faults.pcapng")


def test_an_unknown_sample_is_a_line_with_what_is_near() -> None:
    done = run("sample", "kafka_stal")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"unknown sample 'kafka_stal'; did you mean" in done.stderr


def test_a_users_own_packages_of_the_same_names_do_no_harm(tmp_path: Path) -> None:
    own_packages(tmp_path)
    done = subprocess.run(
        [*COMMAND, "table", "flows", str(SAMPLES / "mqtt_faults.pcapng"), "--limit", "1"], cwd=tmp_path, check=True,
        env=environment(PYTHONPATH=f"{tmp_path}:{IMPORT_PATH}"), capture_output=True, text=True,
    )  # fmt: skip
    assert "mqtt" in done.stdout


def test_the_face_is_imported_when_it_is_asked_for() -> None:
    code = "import sys, wirewitness; print(len([m for m in sys.modules if m.startswith('wirewitness.')]))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
    assert all(hasattr(wirewitness, name) for name in wirewitness.__all__)
    assert wirewitness.read.__module__.startswith("wirewitness.")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        wirewitness.nothing  # noqa: B018


@pytest.mark.exhaustive
def test_the_wheel_has_one_package_and_runs_beside_a_users_own(tmp_path: Path) -> None:
    """Built as a user would, installed without what it depends on, which is taken from here."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    source = tmp_path / "source"
    for name in (*OWN, "sample_pcaps", "src"):
        without = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=without)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, source / name)
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        tops = {name.partition("/")[0] for name in packed.namelist() if ".dist-info/" not in name}
    assert tops == {"wirewitness", "wirewitness_pytest.py"}
    installed = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(installed), str(wheel)], check=True)
    own_packages(tmp_path)
    code = "import app, reports, sys; from wirewitness.app.start import main; sys.argv[0] = 'wirewitness'; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "sample", "mqtt_faults"], cwd=tmp_path / "fine", check=True, capture_output=True,
        text=True, env=environment(PYTHONPATH=str(installed)),
    )  # fmt: skip
    assert Path(done.stdout.removesuffix("\n")) == installed / "wirewitness" / "sample_pcaps" / "mqtt_faults.pcapng"


def own_packages(folder: Path) -> None:
    """A user's packages: in `fine` ones that can be imported, and in the folder itself ones that cannot."""
    for name in OWN:
        for place, text in ((folder, "raise RuntimeError('a package of the user')\n"), (folder / "fine", "MINE = 1\n")):
            (place / name).mkdir(parents=True)
            (place / name / "__init__.py").write_text(text)
