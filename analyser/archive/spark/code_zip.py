"""Our own code as one zip, for workers that have Python and its packages but not wirewitness.

In: the packages as they are imported here. Out: a zip that Spark puts on a worker's module path, data files included,
and the small program that spark-submit wants by its side.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from wirewitness.analyser.base.package import PACKAGE_FOLDER
from wirewitness.analyser.base.written_files import without_links, written

PACKAGE = "wirewitness"
# Its parts, which are links to folders of a checkout, or folders where it is installed.
PARTS = ("dissectors", "analyser", "reports", "app")
SUBMIT_PROGRAM = "wirewitness_submit.py"
_SUBMIT_TEXT = '''"""Runs wirewitness under spark-submit, with the zip of its code given as --py-files."""

from wirewitness.app.start import main

main()
'''
# A zip knows no time before this one; with one time for all files equal code gives an equal zip.
_TIME = (1980, 1, 1, 0, 0, 0)


def source_root() -> Path | None:
    """The folder that holds our package; None when it is imported from a zip."""
    root = PACKAGE_FOLDER
    return root.parent if root.is_dir() and (root / "dissectors").is_dir() else None


def pack_code(path: Path) -> Path:
    """Write the zip to `path` and return it. OSError where there are no files to pack."""
    root = source_root()
    if root is None:
        raise OSError("this code runs from a zip already")
    with written(str(path)) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for part in ("__init__.py", *PARTS):
            folder = (root / PACKAGE / part).resolve()
            for file in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
                if file.is_file() and "__pycache__" not in file.parts:
                    entry = zipfile.ZipInfo(str(Path(PACKAGE, part, file.relative_to(folder))), _TIME)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    packed.writestr(entry, file.read_bytes())
    return path


def pack_for_submit(folder: Path) -> tuple[Path, Path]:
    """Write zip and program for spark-submit to a folder; their paths."""
    folder = without_links(str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / SUBMIT_PROGRAM
    with written(str(program)) as file:
        file.write(_SUBMIT_TEXT.encode())
    return pack_code(folder / "wirewitness.zip"), program
