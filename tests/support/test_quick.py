"""What `make quick` picks, in a small project made here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.imports import imports
from tests.support.quick import changed_files, touched_by

PROJECT = {
    "analyser/__init__.py": "from wirewitness.analyser.flows.table import Table",
    "analyser/flows/__init__.py": "",
    "analyser/flows/table.py": "from wirewitness.analyser.flows import shelf\nclass Table: ...",
    "analyser/flows/shelf.py": "",
    "analyser/rows/__init__.py": "",
    "analyser/rows/store.py": "def late():\n    from wirewitness.analyser.flows.shelf import Shelf",
    "analyser/rows/words.txt": "one two",
    "tests/analyser/flows/test_shelf.py": "import wirewitness.analyser.flows.shelf",
    "tests/analyser/flows/test_others.py": "import os",
    "tests/analyser/rows/test_store.py": "from wirewitness.analyser.rows.store import Store",
    "tests/app/test_through_the_room.py": "from wirewitness.analyser import Table",
    "tests/app/test_through_a_helper.py": "from tests.support.helper import made",
    "tests/app/test_words.py": 'NAME = "words.txt"',
    "tests/support/helper.py": "from wirewitness.analyser.flows.shelf import Shelf",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "picked"),
    [
        pytest.param(
            "analyser/flows/shelf.py",
            ["analyser/flows/test_others", "analyser/flows/test_shelf", "app/test_through_a_helper",
             "app/test_through_the_room"],
            id="of the room, and through one step",
        ),
        pytest.param("analyser/rows/store.py", ["analyser/rows/test_store"], id="of the room alone"),
        pytest.param("tests/support/helper.py", ["app/test_through_a_helper"], id="a helper"),
        pytest.param("tests/app/test_words.py", ["app/test_words"], id="a test"),
        pytest.param("analyser/rows/words.txt", ["analyser/rows/test_store", "app/test_words"], id="data"),
        pytest.param("analyser/rows/gone.py", ["analyser/rows/test_store"], id="a module that is gone"),
        pytest.param("Makefile", [], id="nothing"),
    ],
)  # fmt: skip
def test_what_is_picked(changed: str, picked: list[str], project: Path) -> None:
    assert touched_by([Path(changed)], project) == [Path(f"tests/{name}.py") for name in picked]


def test_a_name_is_followed_to_its_file(project: Path) -> None:
    assert imports(project)[Path("tests/app/test_through_the_room.py")] == {Path("analyser/flows/table.py")}


def test_what_git_sees_as_changed(project: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    git("add", ".")
    git("commit", "-m", "one")
    assert changed_files(project) == []
    git("checkout", "-b", "work")
    (project / "analyser/flows/shelf.py").write_text("a = 1")
    git("commit", "-am", "two")
    (project / "analyser/rows/store.py").unlink()
    (project / "analyser/rows/new.py").write_text("")
    assert [str(path) for path in changed_files(project)] == [
        "analyser/flows/shelf.py", "analyser/rows/new.py", "analyser/rows/store.py",
    ]  # fmt: skip
