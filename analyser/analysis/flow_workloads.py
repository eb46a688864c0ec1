"""Who is at both ends of flows. In: the flows, what captures saw of identities, files that name addresses. Out: the
flows with their columns about identities, and what is to be said about them.

What was seen at a connection counts before what a file says of its address; each fills in what the other one does not
know. Where nothing is known nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.capture.workloads.address_names import AddressNames, Entry, Found
from wirewitness.analyser.capture.workloads.hosts_file import names_somebody
from wirewitness.analyser.capture.workloads.seen import IdentitiesSeen, Seen
from wirewitness.analyser.capture.workloads.workload import Identity, agreed, identity
from wirewitness.analyser.tables.owners import FIELDS, SIDES

Ints = npt.NDArray[np.int64]
_ENDS = ("address", "port")
_NAMED = 3  # so many addresses are named in a remark


@dataclass
class Use:
    """What became of looking up addresses: the addresses by what was found, and by their identities. differing: ends of
    connections at which several processes were seen."""

    found: dict[Found, set[str]] = field(default_factory=dict)
    identities: dict[str, set[Identity]] = field(default_factory=dict)
    differing: int = 0

    def add(self, address: str, found: Found, one: Identity | None = None) -> None:
        """The address was looked up."""
        self.found.setdefault(found, set()).add(address)
        if one is not None and found is Found.NAMED:
            self.identities.setdefault(address, set()).add(one)


def with_identities(
    flows: pa.Table, seen: Sequence[IdentitiesSeen], names: AddressNames | None
) -> tuple[pa.Table, list[str]]:
    """The flows, and remarks for people."""
    held = [one for one in seen if len(one)]
    if (not held and names is None) or not flows.num_rows:
        return flows, _unused(names)
    use = Use()
    by_end = _by_end(held)
    begins, ends = (pc.cast(flows.column(name), pa.int64()).to_numpy() for name in ("ts_first", "ts_last"))
    for side, other in (SIDES, SIDES[::-1]):
        observed = _observed(flows, side, other, by_end, begins, ends, use) if by_end else None
        told = None if names is None else _told(flows, side, names, begins, use)
        identities, codes = _merged(observed, told)
        if identities:
            flows = _with_columns(flows, side, identities, codes)
    return flows, remarks_on(names, use)


def names_with_captures(names: AddressNames | None, told: Iterable[Mapping[str, str]]) -> AddressNames | None:
    """names: of files. told: name of each address, as captures have it; a file that has the address counts before."""
    entries = [
        Entry(address, identity(host=name, source="capture"))
        for of_capture in told for address, name in of_capture.items() if names_somebody(address)
    ]  # fmt: skip
    return (names or AddressNames([])).beside(entries) if entries else names


def _by_end(held: Iterable[IdentitiesSeen]) -> dict[tuple[Any, ...], list[Seen]]:
    found: dict[tuple[Any, ...], list[Seen]] = {}
    for one in held:
        for seen in one:
            found.setdefault(seen.end, []).append(seen)
    return found


class _Codes:
    """Identities by numbers, from 1 on; 0 is nobody."""

    def __init__(self) -> None:
        self.identities: list[Identity] = [Identity()]
        self._numbers: dict[Identity, int] = {Identity(): 0}

    def of(self, one: Identity) -> int:
        number = self._numbers.setdefault(one, len(self.identities))
        if number == len(self.identities):
            self.identities.append(one)
        return number


def _observed(
    flows: pa.Table,
    side: str,
    other: str,
    by_end: Mapping[tuple[Any, ...], list[Seen]],
    begins: Ints,
    ends: Ints,
    use: Use,
) -> tuple[list[Identity], Ints]:
    codes = _Codes()
    columns = [flows.column(f"{one}_{name}").to_pylist() for one in (side, other) for name in _ENDS]
    wrapped = flows.column("encapsulation").to_pylist()
    numbers = np.zeros(flows.num_rows, np.int64)
    for row, (address, port, peer, peer_port, around) in enumerate(zip(*columns, wrapped, strict=True)):
        there = by_end.get((address, port, peer, peer_port, around or ""))
        if there is None:
            continue
        first, last = begins[row], ends[row]
        own = {one.identity for one in there if one.first_ns <= last and one.last_ns >= first}
        if own:
            use.differing += len(own) > 1 and len({one.pid for one in own}) > 1
            numbers[row] = codes.of(agreed(own))
    return codes.identities, numbers


def _told(flows: pa.Table, side: str, names: AddressNames, begins: Ints, use: Use) -> tuple[list[Identity], Ints]:
    codes = _Codes()
    encoded = pc.dictionary_encode(flows.column(f"{side}_address").combine_chunks())
    places = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    numbers = np.zeros(flows.num_rows, np.int64)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(len(encoded.dictionary) + 1))
    for place, address in enumerate(encoded.dictionary.to_pylist()):
        timeline = names.timeline(address)
        if timeline is None:
            use.add(address, Found.UNKNOWN)
            continue
        rows = order[bounds[place] : bounds[place + 1]]
        at = np.searchsorted(np.array(timeline.starts, np.int64), begins[rows], side="right") - 1
        for answer in np.unique(at).tolist():
            one, found = timeline.answers[answer]
            use.add(address, found, one)
            if one is not None:
                numbers[rows[at == answer]] = codes.of(one)
    return codes.identities, numbers


def _merged(
    observed: tuple[list[Identity], Ints] | None, told: tuple[list[Identity], Ints] | None
) -> tuple[list[Identity], Ints]:
    """Identities by numbers, the first of which is nobody; none where nobody is known."""
    if observed is None or told is None:
        identities, codes = observed or told or ([], np.zeros(0, np.int64))
        return (identities, codes) if len(identities) > 1 else ([], codes)
    width = len(told[0])
    unique, place = np.unique(observed[1] * width + told[1], return_inverse=True)
    pairs = [divmod(pair, width) for pair in unique.tolist()]
    identities = [both(observed[0][seen], told[0][named]) for seen, named in pairs]
    return (identities, place) if any(one.known for one in identities) else ([], place)


def both(seen: Identity, told: Identity) -> Identity:
    """What was seen, and what a file says beside it; of another pod than the one seen it says nothing."""
    if seen.pod is not None and told.pod is not None and seen.pod != told.pod:
        return seen
    known = {name: value for name, value in seen._asdict().items() if value is not None}
    return told._replace(**known)


def _with_columns(flows: pa.Table, side: str, identities: Sequence[Identity], codes: Ints) -> pa.Table:
    taken = pa.array(codes)
    for name, kind, value in FIELDS:
        column = f"{side}_{name}"
        values = pa.array([value(one) if one.known else None for one in identities], kind)
        if values.null_count < len(values):
            schema = flows.schema.field(column)
            flows = flows.set_column(flows.schema.get_field_index(column), schema, pc.take(values, taken))
    return flows


def _unused(names: AddressNames | None) -> list[str]:
    return [] if names is None else _passed_over(names)


def _passed_over(names: AddressNames) -> list[str]:
    return [
        f"{printable(file.path)}: {count(file.passed_over, 'entry', 'entries')} without an address, a name or a time "
        "that can be read, passed over"
        for file in names.files
        if file.passed_over
    ]


def remarks_on(names: AddressNames | None, use: Use) -> list[str]:
    """What people are told of looking up identities."""
    remarks = [] if names is None else [*_passed_over(names), *_of_names(names, use)]
    if use.differing:
        ends = count(use.differing, "connection has", "connections have")
        remarks.append(f"{ends} packets of several processes at one end: what these differ in is left out")
    return remarks


def _of_names(names: AddressNames, use: Use) -> Iterable[str]:
    known = use.found.get(Found.NAMED, set()) | use.found.get(Found.SEVERAL, set())
    every = set().union(*use.found.values())
    for file in names.files:
        own = {entry.address for entry in file.entries}
        if file.entries and not own & every:
            yield (
                f"{printable(file.path)} has {count(len(own), 'address', 'addresses')}, none of them in the capture: "
                "is it of another cluster or network?"
            )
    if several := use.found.get(Found.SEVERAL):
        whom = "nobody, or only the node they are on, is named there"
        yield f"{_addresses(several)} several owners at once: {whom}"
    if elsewhen := use.found.get(Found.OTHER_TIME, set()) - known:
        yield f"{_addresses(elsewhen)} owners at other times than the capture's only: nobody is named there"
    if changed := [address for address, identities in use.identities.items() if len(identities) > 1]:
        whom = "each connection has the owner that its address had when it began"
        yield f"{_addresses(changed)} changed hands during the capture: {whom}"


def _addresses(addresses: Iterable[str]) -> str:
    chosen = sorted(addresses)
    verb = "has" if len(chosen) == 1 else "have"
    return f"{names_text(chosen, _NAMED)} {verb}"
