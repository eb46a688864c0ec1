"""What is compared: of each sample every table, the JSON document and the text report, as lines of text.

In: the path of a sample, below the project's folder. Out: name of the thing -> its lines, in an order that does not
depend on the machine. Of an archive of cut samples: the tables of the dataset, which have to be those of `analyse`.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import wirewitness
from tests.conftest import ROOT
from tests.support.archived import differences
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.run import ArchiveOptions, archive
from wirewitness.analyser.archive.spark.java import find_java
from wirewitness.analyser.archive.spark.session import SessionSettings, open_session
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.base.questions.reviews import NO_REVIEW
from wirewitness.reports.report.contents import report
from wirewitness.reports.report.json_document import json_pieces

JSON, TEXT = "JSON", "TEXT"
# Samples cut in three files, and in how many runs these are taken.
CUT = {"kafka_fenced_commit.pcapng": 2, "mqtt_takeover_loop.pcapng": 1, "mongo_show_databases.pcapng": 1}
ARCHIVE = "archive of cut samples"
_WIDTH = 120


class Result(NamedTuple):
    """One line of the golden file. count: rows of a table, lines of a document."""

    sample: str
    thing: str
    count: int
    digest: str


def samples() -> list[str]:
    """All captures of sample_pcaps, below the project's folder, and the archive, which takes longest, first."""
    found = (path for path in (ROOT / "sample_pcaps").rglob("*") if ".pcap" in path.name and path.is_file())
    return [ARCHIVE, *sorted(str(path.relative_to(ROOT)) for path in found)]


def things(sample: str) -> Iterator[tuple[str, list[str]]]:
    """Each thing of a sample with its lines. The working folder is the project's: rows name their file."""
    if sample == ARCHIVE:
        yield from _archived()
        return
    with wirewitness.read(sample) as analysis:
        for table in analysis.tables():
            yield table, [json.dumps(row, default=str) for row in analysis.arrow(table).to_pylist()]
        document = json.loads(b"".join(json_pieces(analysis)))
        yield JSON, json.dumps(document, indent=1, ensure_ascii=False).splitlines()
        sections = report(analysis, review=NO_REVIEW)
        yield TEXT, render(sections, _WIDTH, colour=False).splitlines()


def results(sample: str) -> list[Result]:
    """The golden lines of a sample."""
    return [Result(sample, thing, len(lines), digest(lines)) for thing, lines in things(sample)]


def digest(lines: Iterable[str]) -> str:
    """Sixteen hexadecimal digits of these lines."""
    made = hashlib.sha256()
    for line in lines:
        made.update(f"{line}\n".encode())
    return made.hexdigest()[:16]


def _archived() -> Iterator[tuple[str, list[str]]]:
    """Of each sample that is cut: what differs from `analyse`, which is nothing, and the rows of each table."""
    settings = SessionSettings(master="local[2]", app_name="wirewitness golden")
    with tempfile.TemporaryDirectory() as folder, open_session(settings, find_java()) as spark:
        for name, runs in CUT.items():
            captures = rotated(packets_of(ROOT / "sample_pcaps" / name), Path(folder, "captures", name), 3)
            root = Path(folder, "datasets", name)
            for known in (captures[:-1], captures)[-runs:]:
                archive(known, root, spark, ArchiveOptions(shards=3))
            yield f"{name}: differences from analyse", differences(root, captures)
            with wirewitness.read(root) as dataset:
                yield f"{name}: rows", [f"{table} {dataset.arrow(table).num_rows}" for table in dataset.tables()]
