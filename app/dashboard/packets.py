"""From ids to messages with all their fields, for the flow view and the inspector. In: an opened capture; out: views.

The kept tables say where a message lies, so nothing is decoded before its own packets, and only the captures that hold
these are read: one that is gone or damaged takes nothing from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, overload

import streamlit as st

from wirewitness.analyser.analysis.evidence.bytes import BytesGone
from wirewitness.analyser.analysis.evidence.index import Index
from wirewitness.analyser.analysis.evidence.rows import UnknownId, parse_message_id
from wirewitness.analyser.analysis.evidence.table_rows import CaptureTimes, TableRows
from wirewitness.analyser.archive.dataset.index import open_dataset_index
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.files import file_at
from wirewitness.analyser.capture import CaptureError, Source, in_time_order
from wirewitness.analyser.capture.packet_positions import Places, find_places
from wirewitness.analyser.decoding.run.capture_rows import file_label
from wirewitness.analyser.tables.selection import conditions
from wirewitness.app.dashboard.opened import Opened
from wirewitness.reports.base.formats.message_view import MessageView, view_message

_CAPTURES = """
    SELECT file, epoch_ns(ts_first) AS first_ns, epoch_ns(ts_last) AS last_ns, lines IS NOT NULL AS is_log,
           batches IS NOT NULL AS is_segment FROM captures"""
_PLACES_KEPT = 64


class NoPackets(Exception):
    """The bytes of a message cannot be shown; the text is a sentence."""


def exchange_views(opened: Opened, message_id: str, *, payload: bool) -> list[MessageView]:
    """The message and the other one of its exchange, the client's first. Raises NoPackets."""
    with _told(message_id), st.spinner("Reading the packets"), packet_index(opened) as index:
        row = index.message(parse_message_id(message_id))
        partner = index.partner(row)
        both = [row] if partner is None else sorted((row, partner), key=lambda one: one.direction)
        return [view_message(index, one, payload=payload) for one in both]


@contextmanager
def _told(message_id: str) -> Iterator[None]:
    """What keeps a message from being read becomes NoPackets."""
    try:
        yield
    except BytesGone as error:
        raise NoPackets(f"{error}. The capture changed since it was analysed.") from error
    except (CaptureError, OSError) as error:
        raise NoPackets(f"The packets cannot be read: {error}") from error
    except UnknownId as error:
        raise NoPackets(f"No message {message_id} in this capture.") from error


def payload_of(opened: Opened, message_id: str) -> bytes | None:
    """What an application sent in that message; None where it is not whole, or not told from the rest.

    Raises NoPackets.
    """
    with _told(message_id), st.spinner("Reading the packets"), packet_index(opened) as index:
        view = view_message(index, index.message(parse_message_id(message_id)), payload=True)
    found = next((node for node in view.tree.nodes if node.name == "payload"), None)
    whole = view.row.complete and not view.tree.hidden and view.tree.error is None
    return bytes(view.content.data[found.start : found.end]) if found is not None and whole else None


@contextmanager
def packet_index(opened: Opened) -> Iterator[Index]:
    """The messages of a capture and where their packets lie. Raises NoPackets, CaptureError."""
    with open_dataset_index(opened.folder) if opened.is_dataset else _kept_index(opened) as index:
        index.places = _PlacesOf(index.sources)
        yield index


def gone_captures(opened: Opened, files: Iterable[str]) -> list[str]:
    """Of the captures that tables name those that are not where they were."""
    names = {file_label(path): path for path in opened.paths}
    return [file for file in files if not _is_there(names.get(file, file))]


def _is_there(name: str) -> bool:
    try:
        path = file_at(name)
    except OSError:
        return False
    return path is not None and path.is_file()


def _kept_index(opened: Opened) -> Index:
    if not opened.paths:
        raise NoPackets("No packets are kept of a live capture that is only shared; `wirewitness live --write` does.")
    names = {file_label(path): path for path in opened.paths}
    told = {row["file"]: row for row in opened.sql(_CAPTURES).to_pylist()}
    sources = in_time_order(
        Source(
            file, file_at(names.get(file, file)), first_ns=row["first_ns"], is_log=row["is_log"],
            is_segment=row["is_segment"],
        )
        for file, row in told.items()
    )  # fmt: skip

    def answer(columns: str, table: str, condition: str, when: ReadOptions) -> Sequence[Mapping[str, Any]]:
        chosen = " AND ".join([*conditions(table, when), condition])
        rows: list[Mapping[str, Any]] = opened.sql(f"SELECT {columns} FROM {table} WHERE {chosen}").to_pylist()
        return rows

    times = [
        CaptureTimes(one.name, one.first_ns, told[one.name]["last_ns"], None if one.other_kind is None else 0)
        for one in sources
    ]
    return Index(TableRows(answer, times), sources, (), keylogs=opened.reading.keylogs)


class _PlacesOf(Sequence[Places]):
    """Where packets lie in each capture, found when one is asked for."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, number: int) -> Places: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Places]: ...

    def __getitem__(self, number: int | slice) -> Places | Sequence[Places]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        source = self._sources[number]
        if source.path is None or not source.path.is_file():
            return Places()
        found = source.path.stat()
        return _places(source, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=_PLACES_KEPT)
def _places(source: Source, _size: int, _mtime_ns: int) -> Places:
    """Size and time: a file that was written anew has other places."""
    return find_places(source)
