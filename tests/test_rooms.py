"""The rooms of the analyser say what they do, and the page on the architecture shows them as they are."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = ("analyser", "dissectors", "reports", "app")
ROOMS = sorted(init.parent for init in (ROOT / "analyser").rglob("__init__.py"))[1:]
# A name with a folder in front; names alone stand for a file of the room that is spoken of.
PATHS = sorted(set(re.findall(rf"`((?:{'|'.join(FOLDERS)})/[a-z0-9_/.]+)`", PAGE)))


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_room_says_what_goes_in_and_what_comes_out(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    assert re.search(r"\bIn: ", text)
    assert re.search(r"\b[Oo]ut: ", text)


def test_the_page_has_a_row_for_every_room() -> None:
    rows = re.findall(r"^\| `(\w+/\w+)` \|", PAGE, re.MULTILINE)
    rooms = [
        f"{init.parent.parent.name}/{init.parent.name}" for top in FOLDERS for init in ROOT.glob(f"{top}/*/__init__.py")
    ]
    assert sorted(rows) == sorted(rooms)


@pytest.mark.parametrize("path", PATHS)
def test_paths_on_the_page_are_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_files_to_start_at_are_in_their_room() -> None:
    for room, start in re.findall(r"^\| `(\w+/\w+)` \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE):
        files = re.findall(r"`([a-z_]+\.py)`", start)
        assert files
        assert [name for name in files if not (ROOT / room / name).exists()] == []


def test_the_picture_of_floors_is_what_the_contract_holds() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (floors,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["wirewitness.analyser"])
    assert "\n".join(f"    {floor}" for floor in floors) in PAGE


def test_files_that_the_product_speaks_of_are_there() -> None:
    """A name in backquotes, with or without its folders, in a docstring or a comment."""
    files = [path for top in FOLDERS for path in (ROOT / top).rglob("*.py")]
    names = {path.name for path in [*files, *(ROOT / "src").glob("*.py")]}
    for path in files:
        spoken = re.findall(r"`((?:\w+/)*)([a-z_0-9]+\.py)`", path.read_text())
        gone = [f"{folder}{name}" for folder, name in spoken if name not in names]
        gone += [
            f"{folder}{name}"
            for folder, name in spoken
            if folder.startswith(FOLDERS) and not (ROOT / folder / name).exists()
        ]
        assert gone == [], path
