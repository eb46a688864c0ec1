"""Runs of lookups: the same question with other values, asked for one row after the other.

In: the commands of one application as columns. Out: runs of one shape, as places of rows.

A loop sends each question when the answer to the last one is there, so that never two are under way at once and hardly
any time lies between them, whatever the way to the server takes. Users who come by themselves do that by chance: how
likely is said by the rate of the run itself (Poisson arrivals). A run that follows a list of about as many documents
needs no such proof: it may also go out as one burst over a pool.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.base.times import NS_PER_MS
from wirewitness.analyser.engine.rules.frame import Frame, places_of
from wirewitness.analyser.engine.rules.limits import compared

Places = npt.NDArray[np.intp]
_Times = npt.NDArray[np.int64]

QUERIES = ("find", "aggregate", "count", "distinct")
# Between an answer and the next question of a loop: what the application does with each row.
_PAUSES_MS = (2.0, 5.0, 10.0)
# Longer ones, as on a host without time to spare, in runs that wait for answers most of their time: a program that
# sleeps between its questions does not.
_LONG_PAUSES_MS = (25.0, 50.0, 100.0)
_WAITING_LEAST = 1 / 3
_PAUSE_IN_BURST_MS = 50.0
_CHANCE_BEHIND_LIST = 0.001
# A way that is so far allows pauses as long as its round trip, up to this.
_LONGEST_ROUND_MS = 100.0
# So soon behind its list a run begins.
_BEHIND_LIST_MS = 100.0
_LIST_LEAST = 10
# A lookup brings one row or what belongs to it; what brings more is a list, or a batch of lookups ($in).
_MOST_DOCUMENTS, _MOST_OF_IN = 10.0, 1.5


class Columns(NamedTuple):
    """Commands of an application in the order of time. end: of the answer, of the request without one. literals: of the
    queries of some shapes, else nothing."""

    ts: _Times
    end: _Times
    shape: npt.NDArray[np.int64]
    literals: npt.NDArray[np.int64]
    documents: npt.NDArray[np.float64]
    is_query: npt.NDArray[np.bool_]
    is_list: npt.NDArray[np.bool_]


class LookupRun(NamedTuple):
    """places: of its commands. listed: the place of the list it follows, None where none is known."""

    places: Places
    different: int
    listed: int | None
    at_once: bool


class Limits(NamedTuple):
    """Thresholds of MON105."""

    queries_least: int
    share_least: float
    chance: float


def lookup_runs(frame: Frame, limits: Limits) -> Iterator[list[LookupRun]]:
    """Runs of each shape that has any, in the order of time; they do not overlap."""
    columns = _columns_of(frame)
    shapes = [same for same in _by_shape(columns, limits.queries_least) if _brings_little(frame, columns, same)]
    if shapes:
        columns = columns._replace(literals=frame["literals_id"].texts().codes.astype(np.int64))
    everything = np.arange(len(columns.ts))
    for same in shapes:
        found: list[LookupRun] = []
        for run in (
            *_behind_lists(columns, same, limits),
            *_one_by_one(columns, same, same, limits),
            *_one_by_one(columns, everything, same, limits),
        ):
            compared(len(found))
            if not any(_overlap(run.places, other.places) for other in found):
                found.append(run)
        if found:
            yield sorted(found, key=lambda run: int(run.places[0]))


def _columns_of(frame: Frame) -> Columns:
    ts, documents = frame["ts"].numbers(), frame["documents_returned"].floats()
    command, shape = frame["command"].texts(), frame["shape_id"].texts().codes
    return Columns(
        ts,
        np.maximum(frame["ts_response"].numbers(), ts),  # without an answer it is the lowest number
        shape.astype(np.int64),
        np.empty(0, np.int64),
        documents,
        (shape >= 0) & frame["literals_id"].is_known() & command.among(QUERIES),
        command.among((*QUERIES, "getMore")) & (documents >= _LIST_LEAST),
    )


def _by_shape(columns: Columns, least: int) -> Iterator[Places]:
    """The queries of each shape that has so many."""
    queries = np.flatnonzero(columns.is_query)
    for places in places_of(columns.shape[queries]):
        if len(places) >= least:
            yield queries[places]


def _brings_little(frame: Frame, columns: Columns, same: Places) -> bool:
    """Does a query of this shape bring as few documents as a lookup does?"""
    documents = columns.documents[same]
    if np.all(np.isnan(documents)):
        return True
    shape = frame["query_shape"].array()[int(same[0])].as_py() or ""
    return bool(np.nanmean(documents) <= (_MOST_OF_IN if '"$in"' in shape else _MOST_DOCUMENTS))


def _overlap(one: Places, other: Places) -> bool:
    return bool(one[0] <= other[-1] and other[0] <= one[-1])


def _pieces(
    columns: Columns, places: Places, pause_ms: float, least: int, one_at_a_time: bool = True
) -> Iterator[Places]:
    """Stretches of so many at least in which each begins soon behind the answers before it.

    one_at_a_time: and never before them.
    """
    ts, end = columns.ts[places], columns.end[places]
    gaps = ts[1:] - np.maximum.accumulate(end)[:-1]
    round_trips = np.minimum((end - ts)[:-1], _LONGEST_ROUND_MS * NS_PER_MS)
    breaks = gaps > np.maximum(pause_ms * NS_PER_MS, round_trips)
    if one_at_a_time:
        breaks |= gaps < 0
    bounds = np.concatenate(([0], np.flatnonzero(breaks) + 1, [len(places)]))
    # Most stretches are short where many are at work: only those that are long enough are cut out.
    for place in np.flatnonzero(np.diff(bounds) >= least).tolist():
        yield places[bounds[place] : bounds[place + 1]]


def _behind_lists(columns: Columns, same: Places, limits: Limits) -> Iterator[LookupRun]:
    """Runs that follow lists of about as many documents, one by one or, behind one list, at once."""
    lists = np.flatnonzero(columns.is_list & (columns.shape != columns.shape[same[0]]))
    if not len(lists):
        return
    for pause_ms in (*_PAUSES_MS, *_LONG_PAUSES_MS):
        for piece in _pieces(columns, same, pause_ms, limits.queries_least):
            near = _near(columns, lists, piece)
            if not len(near) or not _many(columns, piece, limits):
                continue
            share = len(piece) / float(columns.documents[near].sum())
            if 1 / 3 <= share <= 1.2 and _chance(columns, piece, pause_ms) <= math.log(_CHANCE_BEHIND_LIST):
                yield LookupRun(piece, _different(columns, piece), int(near[0]), at_once=False)
    for piece in _pieces(columns, same, _PAUSE_IN_BURST_MS, limits.queries_least, one_at_a_time=False):
        near = _near(columns, lists, piece)
        if len(near) == 1 and _many(columns, piece, limits):
            share = len(piece) / float(columns.documents[near[0]])
            if 0.8 <= share <= 1.05:
                yield LookupRun(piece, _different(columns, piece), int(near[0]), at_once=True)


def _near(columns: Columns, lists: Places, piece: Places) -> Places:
    """Lists that were answered shortly before these or while they went on."""
    begun, ended = columns.ts[piece[0]], columns.ts[piece[-1]]
    answered = columns.end[lists]
    near: Places = lists[(answered >= begun - _BEHIND_LIST_MS * NS_PER_MS) & (answered <= ended)]
    return near


def _different(columns: Columns, piece: Places) -> int:
    return len(np.unique(columns.literals[piece]))


def _many(columns: Columns, piece: Places, limits: Limits) -> bool:
    return len(piece) >= limits.queries_least and _different(columns, piece) >= limits.queries_least


def _one_by_one(columns: Columns, among: Places, same: Places, limits: Limits) -> Iterator[LookupRun]:
    """Runs without two under way at once that users who come by themselves do not make.

    among: the places that the run is made of: of the shape alone, or of all commands of the application.
    """
    shape = columns.shape[same[0]]
    for pause_ms in (*_PAUSES_MS, *_LONG_PAUSES_MS):
        for piece in _pieces(columns, among, pause_ms, limits.queries_least):
            own = piece[columns.is_query[piece] & (columns.shape[piece] == shape)]
            if not _many(columns, own, limits) or len(own) < limits.share_least * (own[-1] - own[0] + 1):
                continue
            if pause_ms in _LONG_PAUSES_MS and _waiting(columns, piece) < _WAITING_LEAST:
                continue
            if _chance(columns, piece, pause_ms) <= math.log(limits.chance):
                yield LookupRun(own, _different(columns, own), None, at_once=False)


def _waiting(columns: Columns, piece: Places) -> float:
    """The part of its time in which it waits for answers."""
    whole = columns.end[piece[-1]] - columns.ts[piece[0]]
    return float((columns.end[piece] - columns.ts[piece]).sum() / max(whole, 1))


def _chance(columns: Columns, piece: Places, pause_ms: float) -> float:
    """Logarithm of the chance that so many Poisson arrivals at this rate come one by one and this soon."""
    took = (columns.end[piece] - columns.ts[piece]) / NS_PER_MS
    whole = (columns.end[piece[-1]] - columns.ts[piece[0]]) / NS_PER_MS
    rate = len(piece) / max(float(whole), 1e-6)
    pause = max(pause_ms, min(float(np.median(took)), _LONGEST_ROUND_MS))
    soon = -math.expm1(-rate * pause)
    return (len(piece) - 1) * (-rate * float(took.mean()) + math.log(max(soon, 1e-300)))
