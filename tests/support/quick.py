"""`make quick`: the tests that the changed files touch, and ruff on these files.

Changed is what differs from where the branch left main, committed or not, and what git does not know yet. Of a module
those tests are run that lie in its room or the one around it (tests mirror the rooms), or that import it: themselves,
through a helper of the tests, or through a module of its own room. A file that is no module belongs to the package that
it lies in and to the tests that name it. Exhaustive tests and those of the lab are left to their targets.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.imports import imports

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = "not lab and not bench and not exhaustive"
FEW = 3  # so many test files are read sooner by one process than by two

Graph = Mapping[Path, set[Path]]


def main() -> int:
    """Say what is picked and run it; the exit status of the first that fails."""
    changed = changed_files(ROOT)
    picked = touched_by(changed, ROOT)
    python = [str(path) for path in changed if path.suffix == ".py" and (ROOT / path).exists()]
    print(f"{len(changed)} changed files touch {len(picked)} test files", flush=True)
    for test in picked:
        print(f"  {test}", flush=True)
    if python and (status := _run("ruff", "check", *python) or _run("ruff", "format", "--check", *python)):
        return status
    if not picked:
        print("no test to run")
        return 0
    several = ["--numprocesses", "2", "--dist", "loadfile"] if len(picked) > FEW else []
    return _run("pytest", "-q", "-m", WITHOUT, *several, *map(str, picked))


def changed_files(root: Path) -> list[Path]:
    """Paths below the root that differ from main, deleted ones among them."""
    base = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    return sorted(
        {Path(line) for line in _git(root, "diff", "--name-only", "--no-renames", base[0])}
        | {Path(line) for line in _git(root, "ls-files", "--others", "--exclude-standard")}
    )


def touched_by(changed: Iterable[Path], root: Path) -> list[Path]:
    """The test files that these files touch."""
    graph = imports(root)
    tests = [path for path in graph if path.parts[0] == "tests" and path.name.startswith("test_")]
    picked: set[Path] = set()
    for path in changed:
        if path.suffix == ".py":
            picked |= _of_module(path, graph, tests)
        else:
            picked |= _of_data(path, graph, tests, root)
    return sorted(picked)


def _of_module(module: Path, graph: Graph, tests: list[Path]) -> set[Path]:
    importers = {path for path, imported in graph.items() if module in imported}
    near = {path for path in importers if path.parts[0] == "tests" or path.parent == module.parent}
    return {
        test
        for test in tests
        if test == module or test in importers or graph[test] & near or _is_of_room(test, module.parent)
    }


def _of_data(data: Path, graph: Graph, tests: list[Path], root: Path) -> set[Path]:
    """Tests that name the file or lie in its package's room, and those of the module that names its folder."""
    words = [data.name, f'"{data.name.partition(".")[0]}"', *([f'"{data.parent}"'] if data.suffix == ".md" else [])]
    picked = {test for test in tests if any(word in (root / test).read_text() for word in words)}
    package = next((one for one in data.parents if one / "__init__.py" in graph), None)
    if package is not None:
        picked |= {test for test in tests if (Path("tests") / package) in test.parents}
        folder = f'"{data.parent.name}'
        readers = [one for one in graph if package in one.parents and folder in (root / one).read_text()]
        picked |= {test for reader in readers for test in _of_module(reader, graph, tests)}
    return picked


def _is_of_room(test: Path, room: Path) -> bool:
    """Does the test lie where the tests of this folder of the product lie, or of the one around it?"""
    rooms = [one for one in (room, room.parent) if len(one.parts) > 1 and one.parts[0] != "tests"]
    return test.parent in [Path("tests") / one for one in rooms]


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def _run(module: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
