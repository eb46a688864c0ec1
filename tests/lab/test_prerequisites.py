"""What the lab says when programs are missing or too old."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import prerequisites


def fake_program(folder: Path, name: str, prints: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\ncase \"$1\" in env) echo local;; *) echo '{prints}';; esac\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "prints", "said"),
    [
        pytest.param("go", "go version go1.26.8 linux/amd64", None, id="go new enough"),
        pytest.param("go", "go version go1.15.15 linux/amd64", "go: version 1.15", id="go too old"),
        pytest.param("java", 'openjdk version "17.0.15" 2025-04-15', None, id="java 17"),
        pytest.param("java", 'openjdk version "11.0.2" 2019-01-15', "java: version 11", id="java too old"),
        pytest.param("node", "v20.19.0", None, id="node new enough"),
        pytest.param("node", "v18.20.4", "node: version 18.20", id="node too old"),
    ],
)
def test_versions(name: str, prints: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(tmp_path, name, prints)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    problem = getattr(prerequisites, f"{name}_problem")()
    assert (problem is None) if said is None else (problem is not None and problem.startswith(said))


def test_every_missing_program_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert prerequisites.main() == 1
    printed = capsys.readouterr().out
    for program in prerequisites.PROGRAMS:
        assert f"{program.name}: not found, install the apt package {program.apt_package}" in printed
    assert "apt-get install iproute2 ethtool" in printed


def test_packages_of_programs_that_are_there_are_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(tmp_path, "npm", "10.8.2")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "npm" not in prerequisites.missing_packages()
    assert "nodejs" in prerequisites.missing_packages()
