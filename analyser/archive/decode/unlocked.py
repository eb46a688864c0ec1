"""Which connections of a dataset keys open that came after their captures, and the captures to read again for them.

In: the keys of a run, the manifest, and what the state keeps of connections without a key: what their keys are
found by. Out: connections and captures, and nothing that is secret. A capture that is not needed is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from wirewitness.analyser.analysis.evidence.identity import content_key
from wirewitness.analyser.archive.dataset.manifest import InputFile
from wirewitness.analyser.archive.dataset.place import ANEW, DatasetError
from wirewitness.analyser.archive.dataset.state_files import kept_table
from wirewitness.analyser.archive.decode.decode_stage import LOCKED_FILE, shard_name
from wirewitness.analyser.archive.decode.read_again import Again
from wirewitness.analyser.archive.decode.shard_decoder import Before
from wirewitness.analyser.archive.ingest.plan import Plan, PlannedFile
from wirewitness.analyser.base.storage.address import address_of, local_path
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.capture import CaptureError, open_captures
from wirewitness.analyser.decoding.run.flow_records import LOCKED
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.core.model import split_packet


@dataclass(slots=True)
class Unlocked:
    """plan: the captures to read again. again: the connections. missing: sentences on captures that would be needed
    and are not there any more."""

    plan: Plan
    again: Again
    missing: list[str] = field(default_factory=list)


def find_unlocked(
    ring: KeyRing, state: FolderPath, shards: Iterable[int], inputs: Iterable[InputFile]
) -> Unlocked | None:
    """None where the keys open nothing. shards: all that the state has, that of brokers' files too. inputs: of the
    manifest. DatasetError."""
    held = [one for one in inputs if one.status == "read"]
    flows = {shard: own for shard in shards if (own := _opened(ring, state / shard_name(shard) / LOCKED_FILE))}
    files = {number for own in flows.values() for one in own.items() for number in _files(one, held)}
    if not files:
        return None
    sources = {number: _source(number, held[number]) for number in sorted(files)}
    lost = {number for number, source in sources.items() if source is None}
    there = {
        shard: {first: last for first, last in own.items() if lost.isdisjoint(_files((first, last), held))}
        for shard, own in flows.items()
    }
    needed = {number for own in there.values() for one in own.items() for number in _files(one, held)}
    plan = Plan(
        [source for number, source in sources.items() if source is not None and number in needed],
        had_broker_files=any(one.kind != "packets" for one in held),
    )
    text = "is not there as it was taken in: connections in it that the keys open stay encrypted."
    return Unlocked(plan, Again(there, _before(held)), [f"{held[number].path} {text}" for number in sorted(lost)])


def _opened(ring: KeyRing, path: FolderPath) -> dict[int, int]:
    """First and last packets of the connections in this file for which there are keys that were not there before."""
    locked = kept_table(path, LOCKED)
    found = {}
    for first, last, random, session, tried in zip(*(one.to_pylist() for one in locked.columns), strict=True):
        if None in (last, random, tried):
            raise DatasetError(f"{path} is no state of a dataset: {ANEW}.")
        if ring.kinds(random, session or b"") & ~tried:
            found[first] = last
    return found


def _files(span: tuple[int, int], held: Sequence[InputFile]) -> list[int]:
    """The captures from that of a connection's first packet to that of its last one."""
    first, last = (split_packet(packet)[0] for packet in span)
    numbers = range(max(first, 0), min(last + 1, len(held)))
    return [number for number in numbers if held[number].kind == "packets"]


def _source(number: int, known: InputFile) -> PlannedFile | None:
    """The capture, where it is as it was taken in."""
    try:
        if address_of(known.path) is None and not local_path(known.path).is_file():
            return None
        (source,) = open_captures([known.path])
        if source.path is None or content_key(source.path) != known.key:
            return None
        path = source.path.absolute()
        return PlannedFile(number, replace(source, path=path), path, path.stat().st_size, known.key)
    except (CaptureError, OSError, ValueError):
        return None


def _before(held: Sequence[InputFile]) -> dict[int, Before]:
    """What lies before each file."""
    found, packets, clock_ns = {}, 0, -(1 << 62)
    for number, one in enumerate(held):
        found[number] = Before(packets, clock_ns)
        if one.kind == "packets":
            packets, clock_ns = packets + one.packets, max(clock_ns, one.last_ns or clock_ns)
    return found
