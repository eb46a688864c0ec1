"""Which files a run takes in, in which order, and in which ranges they are read.

In: what the user named, and what the dataset holds already. Out: new files in time order, as the offline command reads
them, and one line for everything that is set aside.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from wirewitness.analyser.analysis.evidence.identity import content_key
from wirewitness.analyser.archive.dataset.manifest import InputFile, Manifest
from wirewitness.analyser.archive.ingest.arriving import AGAIN, WAITS, Intake
from wirewitness.analyser.base.storage.address import Address, address_of, local_path
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at
from wirewitness.analyser.capture import CaptureError, Source, in_time_order, open_captures
from wirewitness.analyser.capture.opening import captures_among, probed
from wirewitness.analyser.capture.sources import STANDARD_INPUT, explain
from wirewitness.analyser.capture.trees import Tree, objects_in

REBUILD = "`--rebuild` makes the dataset anew with it"


class PlannedFile(NamedTuple):
    """A file to take in. number: its place among all that the dataset reads. size: bytes of it that are there now."""

    number: int
    source: Source
    path: FilePath
    size: int
    key: str


@dataclass(slots=True)
class Plan:
    """files: in the order of reading. aside: what is not taken in, with the reason. known: how many are in already.
    had_broker_files: request logs or log segments are in already."""

    files: list[PlannedFile] = field(default_factory=list)
    aside: list[InputFile] = field(default_factory=list)
    known: int = 0
    had_broker_files: bool = False

    def broker_files(self) -> dict[int, Source]:
        """The request logs and log segments among the files, by number."""
        return {file.number: file.source for file in self.files if file.source.kind != "packets"}

    def leave_out(self, lost: Mapping[int, str], run: str) -> None:
        """Set aside files that a store did not give to their end, and those that come behind them: once later ones are
        in, nothing goes before them. lost: file -> why. run: which one this is."""
        first, kept, kinds = self.files[0].number, list[PlannedFile](), set[str]()
        for file in self.files:
            source = file.source
            reason = f"{source.name} {WAITS}" if source.kind in kinds else None
            if file.number in lost:
                reason = f"{lost[file.number].removesuffix('.')}; {AGAIN}"
                kinds |= {source.kind} & {"packets", "log"}
            if reason is None:
                kept.append(file._replace(number=first + len(kept)))
            else:
                self.aside.append(_aside(source.name, file.key, file.size, source.first_ns, reason, run))
        self.files = kept


class _Log(NamedTuple):
    """A request log that is in already."""

    path: str
    key: str


def plan_files(
    inputs: Sequence[str | os.PathLike[str]],
    previous: Manifest | None,
    run: str,
    intake: Intake | None = None,
    log_zone_ns: int | None = None,
    *,
    joins: bool = True,
) -> Plan:
    """The files of a run. Unreadable ones, and directories without captures, are set aside like those that cannot be
    taken in any more. log_zone_ns: as in ReadOptions. joins: request logs may stand beside captures."""
    held = [one for one in (previous.inputs if previous else ()) if one.status == "read"]
    plan = Plan(had_broker_files=any(one.kind != "packets" for one in held))
    paths, keys = {one.path: one for one in held}, {one.key: one.path for one in held}
    logs = {one.begins: _Log(one.path, one.key) for one in held if one.begins}
    latest_ns = _latest_ns(held)
    intake = intake or Intake()
    for source in in_time_order(_sources(inputs, plan, run, log_zone_ns, paths)):
        path = Path(source.name) if source.path is None else source.path
        try:
            size, key = path.stat().st_size, content_key(path)
        except OSError as error:
            plan.aside.append(_aside(source.name, "", 0, None, explain(source.name, error), run))
            continue
        before = logs.get(source.begins) if source.begins else None
        if (source.name in paths and paths[source.name].key == key) or _is_rotated(source, key, before):
            plan.known += 1
            continue
        reason = intake.reason(source)
        if reason is None and (before is not None or (source.name in paths and not source.begins)):
            was = "" if before is None or before.path == source.name else f", as {before.path}"
            reason = f"{source.name} has changed since it was taken in{was}; {REBUILD}."
        if reason is None and key in keys:
            reason = f"{source.name} has the same content as {keys[key]}."
        if reason is None and _begins_before(source, latest_ns):
            reason = f"{source.name} begins before what the dataset already holds; {REBUILD}."
        if reason is None and not joins:
            reason = _beside(source, {*(one.kind for one in held), *(one.source.kind for one in plan.files)})
        if reason is None:
            keys[key] = source.name
            if source.begins:
                logs[source.begins] = _Log(source.name, key)
            plan.files.append(PlannedFile(len(held) + len(plan.files), source, path, size, key))
        else:
            plan.aside.append(_aside(source.name, key, size, source.first_ns, reason, run))
    return plan


def _is_rotated(source: Source, key: str, before: _Log | None) -> bool:
    """A request log that was taken in under another name, or before it was compressed."""
    return before is not None and before.path != source.name and (before.key == key or source.is_packed)


def _begins_before(source: Source, latest_ns: Mapping[str, int]) -> bool:
    return source.first_ns is not None and source.first_ns < latest_ns.get(source.kind, source.first_ns)


def _beside(source: Source, kinds: Collection[str]) -> str | None:
    """Why a capture is not taken beside request logs, nor a request log beside captures, where nothing tells which
    exchanges are in both."""
    other = {"packets": "log", "log": "packets"}.get(source.kind)
    if other not in kinds:
        return None
    what, beside = ("a request log", "captures") if other == "packets" else ("a capture", "request logs")
    return (
        f"{source.name} is {what}, and {beside} are in this dataset: without the tables messages and exchanges "
        "(--tables) what both tell would count twice."
    )


def _latest_ns(held: Iterable[InputFile]) -> dict[str, int]:
    """When the last capture and the last request log begin: connections of one kind of them go on from file to file,
    of the other they are others."""
    latest: dict[str, int] = {}
    for one in held:
        if one.first_ns is not None:
            latest[one.kind] = max(one.first_ns, latest.get(one.kind, one.first_ns))
    return latest


def _sources(
    inputs: Iterable[str | os.PathLike[str]],
    plan: Plan,
    run: str,
    log_zone_ns: int | None,
    held: Mapping[str, InputFile],
) -> Iterator[Source]:
    """The sources that the inputs name, each file once. held: what the dataset has, by name."""
    seen: set[str] = set()
    for name in named(inputs):
        try:
            if name == STANDARD_INPUT or not _is_file_or_folder(name):
                raise CaptureError(f"{name} can be read once only; an archive takes files.")
            address = address_of(name)
            found = open_captures([name]) if address is None else _new_below(name, address, held, plan)
        except CaptureError as error:
            plan.aside.append(_aside(name, "", 0, None, str(error), run))
            continue
        for source in found:
            if source.name not in seen:
                seen.add(source.name)
                if source.path is not None:
                    source = replace(source, path=source.path.absolute())
                yield probed(source, log_zone_ns) if source.is_log and log_zone_ns is not None else source


def _new_below(name: str, address: Address, held: Mapping[str, InputFile], plan: Plan) -> list[Source]:
    """The captures at and below an address that the dataset does not hold as they are; the others count as known, and
    nothing of them is fetched. CaptureError."""
    try:
        one = object_at(address)
        tree = objects_in(address) if one is None else Tree([one])
        new = [path for path in tree.files if not _is_held(path, held)]
    except OSError as error:
        raise CaptureError(explain(name, error)) from error
    if len(new) == len(tree.files):
        return open_captures([name])
    plan.known += len(tree.files) - len(new)
    with suppress(CaptureError):  # what else lies there is no capture
        return captures_among(name, Tree(new, tree.unreadable))
    return []


def _is_held(path: FilePath, held: Mapping[str, InputFile]) -> bool:
    known = held.get(str(path))
    tag = tag_of(path)
    return known is not None and bool(tag) and (known.tag, known.bytes) == (tag, path.stat().st_size)


def tag_of(path: FilePath) -> str:
    """What its store knows an object by; nothing for a file."""
    return path.state.tag if isinstance(path, ObjectPath) else ""


def named(inputs: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Paths and what patterns stand for; addresses of objects as they are, whose keys are no patterns."""
    for given in inputs:
        name = os.fspath(given)
        if (address := address_of(name)) is not None:
            yield str(address)  # one name for it, whatever the scheme is called
            continue
        name = str(local_path(name))
        matches = [] if os.path.lexists(name) or not glob.has_magic(name) else sorted(glob.glob(name, recursive=True))
        yield from matches or [name]


def check_any_there(inputs: Iterable[str | os.PathLike[str]]) -> None:
    """CaptureError where all that is named are files of this machine which are not there, so that no run is begun for
    nothing."""
    names = [*named(inputs)]
    if not any(address_of(name) is not None or name == STANDARD_INPUT or os.path.lexists(name) for name in names):
        raise CaptureError(" ".join(f"{name}: no such file or directory." for name in names))


def _is_file_or_folder(name: str) -> bool:
    return not os.path.exists(name) or os.path.isfile(name) or os.path.isdir(name)


def _aside(path: str, key: str, size: int, first_ns: int | None, reason: str, run: str) -> InputFile:
    return InputFile(path, key, size, 0, first_ns, None, "set_aside", reason, run)
