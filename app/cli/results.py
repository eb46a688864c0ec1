"""Rows of a query, or blocks, to standard output or a file. In: a SELECT, or blocks; out: text, csv, jsonl, Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from wirewitness.app.cli.conditions import query_limit
from wirewitness.app.cli.output import colour_wanted, result_sink, terminal_width, whole_file, width_limit
from wirewitness.app.cli.rows import formatted
from wirewitness.app.shared.failure import CallerError

if TYPE_CHECKING:
    import pyarrow as pa

    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.reports.base.formats.document import Block


def write_query(analysis: Analysis, sql: str, form: str, output: str | None) -> None:
    """Write what a SELECT answers. CallerError when it cannot be computed, LimitError where it needs too much."""
    from wirewitness.analyser.tables.queries import QueryError, QueryTooLarge

    try:
        batches = _batches(analysis, sql)
        first = next(batches)
        if form == "parquet" and output is not None:
            with whole_file(output) as file:
                _write_parquet(chain([first], batches), first.schema, file)
            return
        with result_sink(output, text=form == "table") as write:
            for piece in formatted(
                chain([first], batches), first.schema.names, form, None if output else width_limit()
            ):
                write(piece)
    except QueryTooLarge as error:
        raise query_limit(error, "the query") from error
    except QueryError as error:
        raise CallerError(f"query: {error}") from error


def write_blocks(blocks: Sequence[Block], output: str | None) -> None:
    """Write blocks as text, as wide as the terminal."""
    from wirewitness.reports.base.formats.document import Section
    from wirewitness.reports.base.formats.text import render

    text = render([Section("", tuple(blocks))], terminal_width(), colour=colour_wanted(output))
    with result_sink(output, text=True) as write:
        write(text.encode("utf-8", "backslashreplace"))


def _batches(analysis: Analysis, sql: str) -> Iterator[pa.RecordBatch]:
    """Rows of the result in plain types; at least one batch, so that columns are known."""
    from wirewitness.reports.base.formats.plain import plain_batch

    return (plain_batch(batch) for batch in analysis.query(sql))


def _write_parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Any) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(_of_types(batch, schema))


def _of_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a file have one type for each column, whatever comes later."""
    for field in schema:
        if batch.schema.field(field.name).type != field.type:
            raise CallerError(
                f"query: {field.name} has values that its type in a file, {field.type}, cannot hold",
                f"write them as text, in the query: {field.name}::VARCHAR",
            )
    return batch
