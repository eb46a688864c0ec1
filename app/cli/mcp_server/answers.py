"""Questions to an analysis, each with an answer of bounded size. In: names, SQL, ids; out: text, mostly JSON lines.

Who asks is a program whose memory is small, and which another program may have talked into anything: answers end after
so many rows and characters and say so, a query is given up after a while, and nothing but the analysis can be reached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.base.words import json_text
from wirewitness.analyser.tables.queries import QueryError, literal

if TYPE_CHECKING:
    import pyarrow as pa

    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.reports.base.why.packets import Around

MOST_ROWS, MOST_CHARACTERS, MOST_SECONDS = 1000, 60_000, 30.0
_MOST_HEX_BYTES = 256
_FINDING_COLUMNS = (
    "finding_id, code, name, title, severity, confidence, provisional, subject, sentence, ts_first, ts_last"
)


class NoAnswer(Exception):
    """Why a question has none, in a line for who asked."""


@dataclass(frozen=True, slots=True)
class Answers:
    """open_index: the messages of the same captures; it may take as long as reading them. moment: Unix ns of a time as
    people write it, or ValueError. payload: whether what applications sent may be shown."""

    analysis: Analysis
    open_index: Callable[[], Index]
    moment: Callable[[str], int]
    payload: bool = False

    def overview(self) -> str:
        """The captures, how many exchanges of which protocol, how many findings of which severity."""
        parts = {
            "captures": "select file, format, packets, lines, ts_first, ts_last from captures",
            "exchanges": """select protocol, count(*) as exchanges, count(*) filter (status = 'error') as errors,
                count(distinct client_id) as clients, min(ts) as ts_first, max(ts) as ts_last
                from exchanges group by protocol order by exchanges desc""",
            "findings": "select severity, code, name, count(*) as findings from findings group by all "
            "order by severity, findings desc",
        }
        return "\n".join(f"{name}:\n{self.query(sql)}" for name, sql in parts.items())

    def tables(self) -> str:
        """All tables, a JSON line each."""
        from wirewitness.analyser.tables.tables import ALL_TABLES

        held = set(self.analysis.tables())
        told = (
            {"table": table.name, "protocol": table.protocol, "rows": table.meaning}
            for name, table in ALL_TABLES.items()
            if name in held
        )
        return _bounded(map(json_text, told))

    def columns(self, table: str) -> str:
        """The columns of a table, a JSON line each. Raises NoAnswer."""
        from wirewitness.analyser.tables.tables import ALL_TABLES

        if table not in self.analysis.tables():
            raise NoAnswer(f"there is no table {table}; `tables` lists them")
        told = (
            {"column": column.name, "type": column.kind, "unit": column.unit, "meaning": column.meaning}
            for column in ALL_TABLES[table].columns
        )
        return _bounded(map(json_text, told))

    def query(self, sql: str, limit: int = 100) -> str:
        """The rows of one SELECT, a JSON line each. Raises NoAnswer."""
        rows = max(0, min(limit, MOST_ROWS))
        wanted = f"SELECT * FROM ({sql.strip().rstrip(';')}\n) LIMIT {rows + 1}"
        watch = Timer(MOST_SECONDS, self.analysis.connection.interrupt)
        watch.daemon = True
        watch.start()
        try:
            return _bounded(self._lines(wanted), rows)
        except QueryError as error:
            raise NoAnswer(str(error)) from error
        finally:
            watch.cancel()

    def findings(self, severity: str = "", limit: int = 50) -> str:
        """What the rules concluded, the worst first. Raises NoAnswer."""
        where = f"where severity = {literal(severity)}" if severity else ""
        return self.query(
            f"select {_FINDING_COLUMNS} from findings {where} order by incident_order, code, subject", limit
        )

    def finding(self, finding_id: str) -> str:
        """One finding with its evidence and numbers. Raises NoAnswer."""
        found = self.query(f"select * from findings where finding_id = {literal(finding_id)}", 1)
        if not found:
            raise NoAnswer(f"there is no finding {finding_id}; `findings` lists them")
        return found

    def rule(self, code: str) -> str:
        """How a rule decides, and when it is wrong. Raises NoAnswer."""
        from wirewitness.analyser.analysis.all_rules import RULES

        known = RULES.get(code.upper())
        if known is None:
            raise NoAnswer(f"there is no rule {code}; findings have their code")
        return f"{known.page}\n\nThresholds: {json.dumps(dict(known.thresholds), default=str)}"

    def groups(self, group: str = "", at: str = "") -> str:
        """Partitions of Kafka's groups: committed offset, lag, consumer, who committed last. Raises NoAnswer."""
        from wirewitness.reports.protocols.kafka.questions.view import view_sql
        from wirewitness.reports.protocols.kafka.questions.views import VIEWS

        try:
            until_ns = self.moment(at) if at else None
        except ValueError as error:
            raise NoAnswer(str(error)) from error
        names = (group,) if group else ()
        view = VIEWS["groups"][""]
        return self.query(view_sql(view, column="group_id", names=names, until_ns=until_ns, now_ns=until_ns), MOST_ROWS)

    def why(self, subject: str, at: str = "") -> str:
        """The chain of causes behind a subject, as text. Raises NoAnswer."""
        from wirewitness.reports.base.formats.text import render
        from wirewitness.reports.base.why.asking import Asking
        from wirewitness.reports.base.why.model import NoSubject
        from wirewitness.reports.report.why.section import chain_sections
        from wirewitness.reports.report.why.subjects import answer

        watch = Timer(MOST_SECONDS, self.analysis.connection.interrupt)
        watch.daemon = True
        watch.start()
        try:
            until_ns = self.moment(at) if at else None
            ask = Asking(self.analysis, until_ns, self._around)
            text = render(chain_sections(answer(ask, [subject]), rows=True), 120)
        except (NoSubject, QueryError, ValueError) as error:
            raise NoAnswer(str(error)) from error
        finally:
            watch.cancel()
        return _bounded(iter(text.splitlines()))

    def message(self, message_id: str) -> str:
        """One message with all its fields, and the beginning of its bytes. Raises NoAnswer."""
        from wirewitness.analyser.analysis.evidence.bytes import BytesGone
        from wirewitness.analyser.analysis.evidence.rows import UnknownId, parse_message_id
        from wirewitness.analyser.capture.errors import CaptureError
        from wirewitness.reports.base.formats.message_view import text_lines, view_message

        try:
            index = self.open_index()
            view = view_message(index, index.message(parse_message_id(message_id)), payload=self.payload)
        except (UnknownId, BytesGone, CaptureError) as error:
            raise NoAnswer(str(error)) from error
        return _bounded(iter(text_lines(view, 120, _MOST_HEX_BYTES)))

    def _around(self, exchange: Mapping[str, Any]) -> Around:
        from wirewitness.analyser.capture.errors import CaptureError
        from wirewitness.reports.base.why.packets import Around, around

        try:
            return around(self.open_index(), exchange)
        except CaptureError as error:
            return Around(None, f"its packets cannot be read again: {error}")

    def _lines(self, sql: str) -> Iterator[str]:
        from wirewitness.reports.base.formats.plain import plain_batch
        from wirewitness.reports.base.formats.rows import jsonl_pieces

        batches: Iterator[pa.RecordBatch] = (plain_batch(batch) for batch in self.analysis.query(sql))
        first = next(batches)
        for piece in jsonl_pieces("findings", batches, first.schema.names):
            yield from piece.decode("utf-8", "backslashreplace").splitlines()


def _bounded(lines: Iterator[str], most: int = MOST_ROWS) -> str:
    """So many lines, and so many characters; a last line says that there are more."""
    kept: list[str] = []
    size = 0
    for line in lines:
        if len(kept) == most or size + len(line) > MOST_CHARACTERS:
            kept.append(json_text({"more": True, "shown": len(kept), "hint": "narrow the question, or count"}))
            break
        kept.append(line)
        size += len(line) + 1
    return "\n".join(kept)
