"""Result files: whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from wirewitness.app.cli.output import check_output, result_sink, whole_file
from wirewitness.app.shared.failure import CallerError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    with result_sink(str(target)) as write:
        write(b"first ")
        assert not target.exists()
        write(b"second")
    assert target.read_bytes() == b"first second"
    assert os.listdir(tmp_path) == ["report.txt"]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")
    with pytest.raises(TypeError), result_sink(str(target)) as write:
        write("this is text and no bytes")  # type: ignore[arg-type]
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.txt"]


def test_a_file_is_its_users_alone(tmp_path: Path) -> None:
    with result_sink(str(tmp_path / "a")) as write:
        write(b"")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with whole_file(str(tmp_path / "link")) as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_a_device_is_written_to() -> None:
    with result_sink("/dev/null") as write:
        write(b"x")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        pytest.param("missing/report.txt", "there is no directory", id="no folder"),
        pytest.param(".", "that is a directory", id="a folder"),
        pytest.param("capture.pcap", "that is one of the captures", id="an input"),
        pytest.param("alias.pcap", "that is one of the captures", id="an input by another name"),
    ],
)
def test_places_that_cannot_be_written(tmp_path: Path, output: str, message: str) -> None:
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(b"")
    (tmp_path / "alias.pcap").hardlink_to(capture)
    with pytest.raises(CallerError, match=message):
        check_output(str(tmp_path / output), [str(capture)])


def test_standard_output_and_new_files_are_fine(tmp_path: Path) -> None:
    check_output(None, ["x"])
    check_output(str(tmp_path / "new.txt"), ["-", str(tmp_path / "missing.pcap")])
