"""Questions to an analysis, each with an answer of bounded size. In: names, SQL, ids; out: text, mostly JSON lines.

Who asks is a program whose memory is small, and which another program may have talked into anything: answers end after
so many rows and bytes and say so, a query is given up after a while, and nothing but the analysis can be reached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Timer
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.base.bounded import bounded, bounded_json, bounded_lines
from wirewitness.analyser.base.memory_room import room_for
from wirewitness.analyser.base.severity import SEVERITIES
from wirewitness.analyser.base.words import json_text
from wirewitness.analyser.tables.queries import literal

if TYPE_CHECKING:
    import pyarrow as pa

    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.reports.base.why.packets import Around

MOST_ROWS, MOST_BYTES, MOST_SECONDS = 1000, 60_000, 30.0
# Beyond what the process has: of a question that makes long texts of nothing.
MOST_MEMORY = 1 << 30
_PIECE_BYTES = 1 << 20
_MOST_HEX_BYTES = 256
_MOST_DIFFERENCES = 50
_FINDING_COLUMNS = (
    "finding_id, code, name, title, severity, confidence, provisional, subject, sentence, ts_first, ts_last"
)
_OUTLIER_COLUMNS = "rank, measure, subject, value, usual, others, unit, score, sentence, evidence"


class NoAnswer(Exception):
    """Why a question has none, in a bounded line for who asked."""

    def __init__(self, why: str) -> None:
        super().__init__(bounded(why))


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
        return _bounded(iter("\n".join(f"{name}:\n{self.query(sql)}" for name, sql in parts.items()).splitlines()))

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

    def query(self, sql: str, limit: int = 100, nothing: str = "No row: nothing in the capture is like that.") -> str:
        """The rows of one SELECT, a JSON line each. nothing: the answer without any. Raises NoAnswer."""
        rows = max(0, min(limit, MOST_ROWS))
        wanted = f"SELECT * FROM ({sql.strip().rstrip(';')}\n) LIMIT {rows + 1}"
        with self._in_time("ask for fewer rows: a narrower `where`, a range of `ts`, or counts with `group by`"):
            rows_text = (bounded_json(line, MOST_BYTES) for line in self._lines(wanted))
            return _bounded(rows_text, rows) or bounded(nothing)

    def findings(self, severity: str = "", limit: int = 50) -> str:
        """What the rules concluded, the worst first. Raises NoAnswer."""
        if severity and severity not in SEVERITIES:
            raise NoAnswer(f"severity must be one of {', '.join(SEVERITIES)}, or empty for all; not {severity!r}")
        where = f"where severity = {literal(severity)}" if severity else ""
        of = f" of severity {severity}" if severity else ""
        return self.query(
            f"select {_FINDING_COLUMNS} from findings {where} order by incident_order, code, subject",
            limit,
            f"No finding{of}: no rule found anything wrong. `stands_out` tells what differs from its likes.",
        )

    def stands_out(self) -> str:
        """What differs from its likes, or from what is usual for it, and no finding tells. Raises NoAnswer."""
        return self.query(
            f"select {_OUTLIER_COLUMNS} from stands_out order by rank",
            nothing="Nothing stands out: all is like its likes, or findings tell it.",
        )

    def finding(self, finding_id: str) -> str:
        """One finding with its evidence and numbers. Raises NoAnswer."""
        found = self.query(f"select * from findings where finding_id = {literal(finding_id)}", 1, "")
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
        sql = view_sql(view, column="group_id", names=names, until_ns=until_ns, now_ns=until_ns)
        nothing = f"No group is called {group} then." if group else "No group of Kafka has partitions in the capture."
        return self.query(sql, MOST_ROWS, nothing)

    def compare(self, at: str = "", first: str = "", second: str = "") -> str:
        """What differs before and after `at`, or in two times FROM/TO of the capture. Raises NoAnswer."""
        from wirewitness.reports.base.formats.document import Section
        from wirewitness.reports.base.formats.text import render
        from wirewitness.reports.base.questions.causes import findings
        from wirewitness.reports.report.compare.comparison import Side, compared
        from wirewitness.reports.report.compared import comparison_blocks
        from wirewitness.reports.report.differences import differences

        if bool(at) == bool(first and second):
            raise NoAnswer("give `at`, or both `first` and `second` as FROM/TO, of which one end may be empty")
        ends = (("before", f"/{at}"), ("after", f"{at}/")) if at else (("first", first), ("second", second))
        options = self.analysis.options
        a, b = (
            Side(name, f"{name} ({words})", self.analysis, replace(options, from_ns=times[0], to_ns=times[1]))
            for name, words in ends for times in [self._times(words)]
        )  # fmt: skip
        with self._in_time("compare shorter times"):
            tables = compared(a, b, (findings(a), findings(b)))
            blocks = comparison_blocks((a, b), tables, differences(tables), _MOST_DIFFERENCES)
            return _bounded(iter(render([Section("", tuple(blocks))], 120).splitlines()))

    def differ(self, where: str, all_operations: bool = False) -> str:
        """What exchanges that are like this have in common, and others have not. Raises NoAnswer."""
        from wirewitness.reports.base.formats.document import Section
        from wirewitness.reports.base.formats.text import render
        from wirewitness.reports.report.compare.distinguishing import common_of
        from wirewitness.reports.report.compared import common_blocks

        with self._in_time("narrow `where` to one operation, or to a range of `ts`"):
            found = common_of(self.analysis, f"{where}\n", all_operations=all_operations)
            blocks = common_blocks(found, where, _MOST_DIFFERENCES)
            return _bounded(iter(render([Section("", tuple(blocks))], 120).splitlines()))

    def expect(self, contract: str = "", about: Mapping[str, str] | None = None) -> str:
        """Whether the traffic keeps to a contract that comes along; without a name, which these are. Raises
        NoAnswer."""
        from wirewitness.app.expect.bound import check_about
        from wirewitness.app.expect.checking import check_all, doubts
        from wirewitness.app.expect.errors import RulesError
        from wirewitness.app.expect.outcomes import outcome_sections
        from wirewitness.app.expect.rules import ready_contract, ready_contracts
        from wirewitness.reports.base.formats.text import render

        if not contract:
            return "\n".join(f"{one.name}: {one.line}" for one in ready_contracts().values())
        try:
            wanted = [replace(one, about={**one.about, **(about or {})}) for one in ready_contract(contract)]
            for one in wanted:
                check_about(one, one.name)
            with self._in_time("narrow it with `about`"):
                sections = outcome_sections(check_all(self.analysis, wanted), doubts(self.analysis), strict=False)
        except RulesError as error:
            raise NoAnswer("; ".join([str(error), *error.hints])) from error
        return _bounded(iter(render(sections, 120).splitlines()))

    def why(self, subject: str, at: str = "") -> str:
        """The chain of causes behind a subject, as text. Raises NoAnswer."""
        from wirewitness.reports.base.formats.text import render
        from wirewitness.reports.base.why.asking import Asking
        from wirewitness.reports.base.why.model import NoSubject
        from wirewitness.reports.report.why.section import chain_sections
        from wirewitness.reports.report.why.subjects import answer

        with self._in_time("ask why of one partition, or of one finding, rather than of a whole group or client"):
            try:
                until_ns = self.moment(at) if at else None
                ask = Asking(self.analysis, until_ns, self._around)
                text = render(chain_sections(answer(ask, [subject]), rows=True), 120)
            except NoSubject as error:
                raise NoAnswer(str(error)) from error
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

    @contextmanager
    def _in_time(self, narrower: str) -> Iterator[None]:
        """Whatever is asked in here is given up after a while. narrower: what to ask in its place. Raises NoAnswer."""
        given_up: list[bool] = []
        interrupt = self.analysis.connection.interrupt  # asked for here: it makes what is not made yet

        def give_up() -> None:
            given_up.append(True)
            interrupt()

        watch = Timer(MOST_SECONDS, give_up)
        watch.daemon = True
        watch.start()
        try:
            with room_for(MOST_MEMORY):
                yield
        except MemoryError as error:
            raise NoAnswer(f"given up: it takes more than {MOST_MEMORY >> 20:,} MiB of memory; {narrower}") from error
        except ValueError as error:  # QueryError is one
            if given_up:
                raise NoAnswer(f"given up after {MOST_SECONDS:.0f} s without an answer; {narrower}") from error
            raise NoAnswer(str(error)) from error
        finally:
            watch.cancel()

    def _times(self, words: str) -> tuple[int | None, int | None]:
        """`FROM/TO` as Unix ns. Raises NoAnswer."""
        begin, slash, end = words.partition("/")
        if not slash or not (begin or end):
            raise NoAnswer(f"{words!r} is no time: write FROM/TO, such as 2026-03-01T03:00/2026-03-01T03:10")
        try:
            return (self.moment(begin) if begin else None), (self.moment(end) if end else None)
        except ValueError as error:
            raise NoAnswer(str(error)) from error

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

        pieces = (piece for batch in self.analysis.query(sql) for piece in _small(batch))
        batches: Iterator[pa.RecordBatch] = map(plain_batch, pieces)
        first = next(batches)
        for piece in jsonl_pieces("findings", batches, first.schema.names):
            yield from piece.decode("utf-8", "backslashreplace").splitlines()


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces, so that little more is made into text than an answer holds; itself where it has no rows."""
    rows = max(1, _PIECE_BYTES * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, max(1, batch.num_rows), rows):
        yield batch.slice(start, rows)


def _bounded(lines: Iterator[str], most: int = MOST_ROWS) -> str:
    """So many lines, and so many bytes; a last line says that there are more."""
    kept, is_more = bounded_lines(lines, most, MOST_BYTES)
    more = [json_text({"more": True, "shown": len(kept), "hint": "narrow the question, or count"})] if is_more else []
    return "\n".join([*kept, *more])
