"""Rows to take along: CSV for the browser, and the command that gives the same. In: chosen rows; out: buttons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import streamlit as st

from wirewitness.app.dashboard.chosen_rows import Choice
from wirewitness.app.dashboard.command_line import command_line, show_command
from wirewitness.app.dashboard.opened import Selected
from wirewitness.reports.base.formats.rows import csv_pieces
from wirewitness.reports.base.questions.source import narrowed

# What a browser takes as CSV is held in memory, here and there; the command line writes to a file.
CSV_ROWS = 200_000


def offer_rows(source: Selected, key: str, chosen: Choice, columns: Sequence[str], total: int) -> None:
    """Buttons for all rows of a choice, not only those of the page that is shown."""
    text = chosen.text(columns)
    _button(key, partial(csv_of, source, text, chosen.order, columns))
    query = " ".join(f"{narrowed(text, source.options)} ORDER BY {chosen.order}".split())
    if total <= CSV_ROWS:
        show_command(command_line(source.opened, "query", query))
        return
    about = f"The download has the first {CSV_ROWS:,} rows. The command line writes them all to a file:"
    show_command(f"{command_line(source.opened, 'query', query, '--format', 'csv')} > {key}.csv", about)


def offer_table(key: str, rows: pa.Table, columns: Sequence[str]) -> None:
    """A button for rows that are at hand."""
    _button(key, partial(_csv, rows, columns))


def csv_of(source: Selected, text: str, order: str, columns: Sequence[str]) -> bytes:
    """The first CSV_ROWS rows as CSV, in the formats of `wirewitness table --format csv`."""
    batches = source.opened.ordered(narrowed(text, source.options), [order], CSV_ROWS)
    return b"".join(csv_pieces((batch.select(list(columns)) for batch in batches), columns))


def _csv(rows: pa.Table, columns: Sequence[str]) -> bytes:
    return b"".join(csv_pieces(rows.select(list(columns)).to_batches(), columns))


def _button(key: str, make: partial[bytes]) -> None:
    st.download_button("CSV", make, file_name=f"{key}.csv", mime="text/csv", key=f"{key}.csv", on_click="ignore",
                       icon=":material/download:", type="tertiary")  # fmt: skip
