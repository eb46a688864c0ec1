"""The rows behind extracted packets. In: an analysis, what was asked for. Out: files of a folder, or a zip file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wirewitness.app.cli.output import whole_file
from wirewitness.app.shared.failure import CallerError

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.analysis.evidence.rows import MessageRow


class Asked(NamedTuple):
    """What packets are wanted of. kind: finding, flow, message or exchange; wanted: its id."""

    kind: str
    wanted: str


@contextmanager
def new_bundle(target: Path) -> Iterator[Path]:
    """A folder to fill; a zip file is made of it when the target's name ends so."""
    from wirewitness.analyser.base.private_files import TemporaryFolder
    from wirewitness.analyser.base.written_files import Refused, filled

    if target.suffix.lower() != ".zip":
        try:
            with filled(str(target)) as folder:
                yield folder
        except Refused as error:
            raise CallerError(f"{target}: {error.strerror}") from error
        return
    with TemporaryFolder() as folder:
        yield Path(folder)
        with whole_file(str(target)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for one in sorted(Path(folder).iterdir()):
                packed.write(one, one.name)


def fill_bundle(folder: Path, analysis: Analysis, asked: Sequence[Asked], rows: Sequence[MessageRow]) -> None:
    """A file of JSON lines for each table that has rows of these messages, connections and findings; of findings their
    part of the report, too. rows: the messages."""
    from wirewitness.analyser.tables.tables import ALL_TABLES
    from wirewitness.reports.base.formats.rows import jsonl_pieces
    from wirewitness.reports.base.formats.text import render
    from wirewitness.reports.base.questions.causes import causes, findings
    from wirewitness.reports.report.findings import finding_section

    found = {one.wanted for one in asked if one.kind == "finding"}
    ids = {
        "finding_id": _listed(found),
        "flow_id": _listed(one.wanted for one in asked if one.kind == "flow"),
        **dict.fromkeys(
            ("message_id", "exchange_id", "request_message_id", "response_message_id"),
            _listed(row.message_id().text() for row in rows),
        ),
    }
    for name in analysis.tables():
        columns = ALL_TABLES[name].column_names()
        asking = ["finding_id"] if name == "findings" else [column for column in ids if column in columns]
        where = " OR ".join(f"{column} IN ({ids[column]})" for column in asking if ids[column]) or "false"
        pieces = b"".join(jsonl_pieces(name, analysis.batches(name, where=where), columns))
        if pieces:
            _write(folder / f"{name}.jsonl", pieces)
    if found:
        own = causes([finding for finding in findings(analysis) if finding.finding_id in found])
        text = render([finding_section(analysis, own)], 100)
        _write(folder / "report.txt", text.encode("utf-8", "backslashreplace"))


def _write(path: Path, data: bytes) -> None:
    with whole_file(str(path)) as file:
        file.write(data)


def _listed(ids: Iterable[str]) -> str:
    return ", ".join("'" + one.replace("'", "''") + "'" for one in ids)
