"""The report as JSON. In: an analysis; out: pieces of one UTF-8 document, written as they are made.

Keys: schema_version, captures, quality, flows, operations, those of `reports/report/protocols.py` (groups for Kafka,
mongo), encrypted_connections (by client and server, of those that could not be read), unjudged_errors (kinds of errors
that no rule judged), stands_out (what differs from its likes), findings.
Where wirewitness itself failed there are faults, a list of sentences, and quality.faults with numbers of connections;
what a part of the report that failed would have is null, or missing. `captures`, `flows`, `stands_out` and `findings`
are the rows of these tables (evidence and numbers as JSON, and of findings `first_cause`: what their incident begins
with, in a line); the others are the values of the text report. Times are ISO 8601 with 9 digits and `Z`; unknown is
null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import pyarrow as pa

from wirewitness.analyser.base.words import json_text
from wirewitness.analyser.tables.tables import SCHEMA_VERSION
from wirewitness.reports.base.formats.rows import join_lines, json_rows, slices
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.questions.causes import findings
from wirewitness.reports.base.questions.encrypted import EncryptedPair, encrypted_pairs
from wirewitness.reports.base.questions.operations import Operation, operations
from wirewitness.reports.base.questions.quality import Quality, quality
from wirewitness.reports.base.questions.review_rows import reviewed_rows
from wirewitness.reports.base.questions.reviews import Review
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.base.questions.unclassified import unjudged_errors
from wirewitness.reports.base.sections.failing_parts import part
from wirewitness.reports.report.protocols import PROTOCOL_REPORTS
from wirewitness.reports.report.unclassified import unjudged_values
from wirewitness.reports.report.why.first_cause import first_causes, of_findings


def json_pieces(source: Source, review: Review | None = None, faults: list[str] | None = None) -> Iterator[bytes]:
    """The whole document; tables stream through, so a capture of a million flows needs no more memory than one.

    review: findings have the columns of `reports/base/questions/review_rows.py` too, and none is left out. faults: see
    `report`.
    """
    yield f'{{"schema_version": {SCHEMA_VERSION},\n"captures": '.encode()
    yield from _table(source, "captures")
    faults = [] if faults is None else faults

    def made(what: str, make: Callable[[], Any]) -> Any:
        return part(what, make, faults.append)

    yield b',\n"quality": ' + _dumped(made("quality", lambda: _quality(quality(source))))
    yield b',\n"flows": '
    yield from _table(source, "flows")
    yield b',\n"operations": ' + _dumped(made("operations", lambda: [_operation(o) for o in operations(source)]))
    for title, protocol in PROTOCOL_REPORTS.items():
        for key, value in (made(f"the part about {title}", partial(protocol.values, source)) or {}).items():
            yield b",\n" + _dumped(key) + b": " + _dumped(value)
    encrypted = made("encrypted connections", lambda: [_encrypted_pair(one) for one in encrypted_pairs(source)])
    yield b',\n"encrypted_connections": ' + _dumped(encrypted)
    unjudged = made("errors", lambda: unjudged_values(unjudged_errors(source, findings(source))))
    yield b',\n"unjudged_errors": ' + _dumped(unjudged)
    yield b',\n"stands_out": '
    yield from _table(source, "stands_out")
    yield b',\n"findings": '
    lines = made("first causes", lambda: first_causes(source)) or {}
    batches = source.batches("findings") if review is None else reviewed_rows(source, review)
    yield from _rows("findings", _with_first_causes(batches, lines))
    if faults:
        yield b',\n"faults": ' + _dumped(faults)
    yield b"}\n"


def findings_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """A document of findings alone. batches: their rows, with whatever columns."""
    yield f'{{"schema_version": {SCHEMA_VERSION},\n"findings": '.encode()
    yield from _rows("findings", batches)
    yield b"}\n"


def _table(source: Source, name: str) -> Iterator[bytes]:
    return _rows(name, source.batches(name))


def _rows(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    opening = b"[\n"
    for batch in slices(batches):
        yield opening + join_lines(json_rows(name, batch, batch.schema.names), ",\n")
        opening = b",\n"
    yield b"[]" if opening == b"[\n" else b"\n]"


def _with_first_causes(batches: Iterable[pa.RecordBatch], lines: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Rows of findings with `first_cause`: what their incident begins with, in a line; null where that is not sure."""
    for batch in batches:
        told = of_findings(lines, batch.column("incident_id").to_pylist())
        yield batch.append_column(pa.field("first_cause", pa.string()), pa.array(told, pa.string()))


def _quality(value: Quality) -> dict[str, Any]:
    span = value.span_ns
    return {
        "packets": value.packets,
        "lines": value.lines,
        "batches": value.batches,
        "ts_first": time_text(span[0]) if span else None,
        "ts_last": time_text(span[1]) if span else None,
        "messages": value.messages,
        "cut_messages": value.cut_messages,
        "undecoded_packets": sum(c.undecoded_packets for c in value.captures),
        "truncated_packets": sum(c.truncated_packets for c in value.captures),
        "dropped_packets": _sum_of_known([c.dropped_packets for c in value.captures]),
        "flows": [asdict(flows) for flows in value.flows],
        "undecoded_messages": [asdict(undecoded) for undecoded in value.undecoded],
        "answers_out_of_order": [asdict(one) for one in value.out_of_order],
        **({"faults": [asdict(one) for one in value.faults]} if value.faults else {}),
    }


def _sum_of_known(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _operation(value: Operation) -> dict[str, Any]:
    return {
        "protocol": value.protocol,
        "operation": value.operation,
        "exchanges": value.exchanges,
        "errors": value.errors,
        "unanswered": value.unanswered,
        "orphans": value.orphans,
        "waiting": value.waiting,
        "latency_ms": {
            "median": _ms(value.median_ms),
            "p99": _ms(value.p99_ms),
            "max": _ms(value.max_ms),
        },
        "error_names": value.error_names,
    }


def _encrypted_pair(value: EncryptedPair) -> dict[str, Any]:
    protocol, by = value.likely or (None, None)
    return asdict(value) | {
        "handshake_ms": _ms(value.handshake_ms), "likely_protocol": protocol, "likely_by": by,
    }  # fmt: skip


def _ms(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _dumped(value: Any) -> bytes:
    return json_text(value, indent=1).encode()
