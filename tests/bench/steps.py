"""What each step of an archive costs, beside the others. In: a capture. Out: processor seconds of each step.

The processor time is that of Spark, its Java and all its Python workers together; a step begins with the line in which
`wirewitness archive` says so, so what Spark's own threads do meanwhile counts to it.
"""

from __future__ import annotations

import shutil
import struct
from collections import defaultdict
from pathlib import Path

from tests.bench.process_tree import measure_tree
from tests.bench.programs import WIREWITNESS

FILES = 10
# How the lines begin, and what they are of; what stands here not is of the step before.
STEPS = {
    "looking through": "packets",
    "decoding": "decoding",
    "putting together": "tables",
    "writing tables": "tables",
    "context": "context",
    "findings": "rules",
    "aggregates": "aggregates",
}


def archive_steps(capture: Path, folder: Path, master: str = "local[2]") -> dict[str, float]:
    """CPU seconds of each step of an archive of the capture, cut into FILES files. Nothing stays in the folder."""
    captures, dataset, errors = folder / "cut", folder / "dataset", folder / "errors.txt"
    try:
        cut(capture, captures, FILES)
        steps = _Steps(errors)
        command = [*WIREWITNESS, "archive", str(captures), "--output", str(dataset), "--master", master]
        measure_tree(command, folder / "output.txt", errors, steps.looked)
        return steps.took
    finally:
        for path in (captures, dataset):
            shutil.rmtree(path, ignore_errors=True)


def cut(capture: Path, folder: Path, files: int) -> None:
    """A pcap file of this machine's byte order as so many files of about equal size."""
    folder.mkdir()
    least = capture.stat().st_size // files
    with capture.open("rb") as source:
        head = source.read(24)
        for number in range(files):
            with (folder / f"{number:03}.pcap").open("wb") as out:
                out.write(head)
                while (out.tell() < least or number == files - 1) and (record := source.read(16)):
                    out.write(record + source.read(struct.unpack_from("=I", record, 8)[0]))


class _Steps:
    """Deals processor time to the step that is under way."""

    def __init__(self, errors: Path) -> None:
        self.took: dict[str, float] = defaultdict(float)
        self._errors, self._step, self._before = errors, "start", 0.0

    def looked(self, cpu_s: float) -> None:
        """Processor time so far."""
        self.took[self._step] += cpu_s - self._before
        self._before = cpu_s
        said = (line.partition("] ")[2] for line in self._errors.read_text(errors="replace").splitlines())
        steps = [name for text in said for begin, name in STEPS.items() if text.startswith(begin)]
        self._step = steps[-1] if steps else self._step
