"""Node programs of the lab. In: the name of a folder beside this file. Out: a copy of it with what npm fetched.

npm fetches exactly what package-lock.json names, and runs no script of a package.
"""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

from tests.lab.clients import CLIENTS_DIR
from tests.lab.places import WORK_DIR
from tests.lab.processes import LabError, run


@functools.cache
def fetched(name: str) -> Path:
    """Return where the programs of the folder NAME are, fetching their packages unless these very ones are there."""
    source, target = CLIENTS_DIR / name, WORK_DIR / name
    wanted = (source / "package-lock.json").read_text()
    stamp = target / "lock.stamp"
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, target / path.name)
    if not (stamp.exists() and stamp.read_text() == wanted):
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=target)
        stamp.write_text(wanted)
    missing = [one for one in json.loads(wanted)["packages"][""]["dependencies"]
               if not (target / "node_modules" / one).is_dir()]  # fmt: skip
    if missing:
        raise LabError(f"npm has not fetched {', '.join(missing)}")
    return target


def pin(name: str, package: str) -> str:
    """Return "NAME VERSION" of a package as the folder's package.json pins it."""
    return f"{package} {json.loads((CLIENTS_DIR / name / 'package.json').read_text())['dependencies'][package]}"
