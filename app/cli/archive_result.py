"""What a run of an archive says at its end. In: its summary and the dataset; out: lines, and the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wirewitness.app.shared.failure import Status

if TYPE_CHECKING:
    from wirewitness.analyser.archive.run import Summary

_CLOCKS = "CAP108"


def result_lines(summary: Summary, output: str) -> Iterator[str]:
    """What was read, rows of each table, findings by severity, what was set aside."""
    from wirewitness.analyser.base.severity import SEVERITIES
    from wirewitness.analyser.base.words import count
    from wirewitness.reports.base.formats.printable import visible

    if summary.run is None:
        yield f"{visible(output)}: nothing new"
    else:
        yield f"{visible(output)}: run {int(summary.run)}"
    size = sum(one.bytes for one in summary.files)
    yield f"read       {', '.join(_read(summary))}, {size:,} bytes{_times(summary)}"
    if summary.opened.captures:
        captures, connections = summary.opened
        text = f"{count(captures, 'capture')} of earlier runs by new keys: {count(connections, 'connection')}"
        yield f"opened     {text}"
    if summary.known:
        yield f"known      {count(summary.known, 'capture')} of earlier runs"
    if summary.aside:
        yield f"set aside  {count(len(summary.aside), 'capture')}"
    if summary.run is not None:
        rows = ", ".join(f"{name} {number:,}" for name, number in sorted(summary.rows.items()) if number)
        yield f"rows       {rows or 'none'}"
        found = ", ".join(
            f"{summary.findings[name]} {name}" for name in reversed(SEVERITIES) if summary.findings.get(name)
        )
        yield f"findings   {found or 'none'}"


def _read(summary: Summary) -> Iterator[str]:
    """How many files of each kind, and their packets."""
    from wirewitness.analyser.base.words import count

    kinds: Counter[str] = Counter(one.kind for one in summary.files)
    if kinds["packets"] or not kinds:
        yield count(kinds["packets"], "capture")
        yield f"{sum(one.packets for one in summary.files):,} packets"
    for kind, name in (("log", "request log"), ("segment", "log segment")):
        if kinds[kind]:
            yield count(kinds[kind], name)


def complaints(summary: Summary, output: str) -> Iterator[str]:
    """A line for each input of which something is missing in the dataset, and for clocks that disagree."""
    from wirewitness.analyser.archive.ingest.arriving import is_by_choice

    for one in summary.aside:
        if not is_by_choice(one.reason or ""):
            yield f"set aside: {one.reason or one.path}"
    for one in summary.files:
        if one.reason is not None:
            named = one.reason if one.reason.startswith(one.path) else f"{one.path}: {one.reason}"
            yield f"cannot read all of {named}"
    if summary.run is not None:
        yield from _clock_sentences(output)


def notes(summary: Summary) -> Iterator[str]:
    """A line for each capture that is left out for its time, or for a later run, and for what is remarked on all."""
    from wirewitness.analyser.archive.ingest.arriving import is_by_choice

    yield from (f"note: {one.reason}" for one in summary.aside if is_by_choice(one.reason or ""))
    yield from (f"note: {remark}" for remark in summary.remarks)


def status_of(summary: Summary, output: str) -> Status:
    """SOME_INPUT_UNREAD when something is missing in the dataset that the caller wanted in it, OWN_FAULT when anything
    broke on the way."""
    if summary.faults or any(failure.is_own_fault for failure in summary.failures):
        return Status.OWN_FAULT
    from wirewitness.analyser.archive.ingest.arriving import is_by_choice

    held = _held_keys(output)
    missing = [one for one in summary.aside if one.key not in held and not is_by_choice(one.reason or "")]
    return Status.SOME_INPUT_UNREAD if missing or any(one.reason for one in summary.files) else Status.DONE


def _held_keys(output: str) -> set[str]:
    from wirewitness.analyser.archive.dataset.dataset import Dataset

    return {one.key for one in Dataset.open(output).manifest.inputs if one.status == "read"}


def _clock_sentences(output: str) -> list[str]:
    """What the rule on clocks found: capture points that disagree make times across them unsure."""
    import pyarrow.parquet as pq

    from wirewitness.analyser.archive.dataset.dataset import Dataset
    from wirewitness.analyser.base.storage.files import file_at, for_parquet

    dataset = Dataset.open(output)
    told: list[str] = []
    for path in dataset.paths(dataset.parts("findings")):
        file = file_at(path)
        rows = (
            []
            if file is None
            else pq.read_table(for_parquet(file), columns=["code", "sentence"], partitioning=None).to_pylist()
        )
        told += [row["sentence"] for row in rows if row["code"] == _CLOCKS]
    return told


def _times(summary: Summary) -> str:
    from wirewitness.reports.base.formats.values import time_text

    first = min((one.first_ns for one in summary.files if one.first_ns is not None), default=None)
    last = max((one.last_ns for one in summary.files if one.last_ns is not None), default=None)
    return "" if first is None or last is None else f", {time_text(first)} to {time_text(last)}"
