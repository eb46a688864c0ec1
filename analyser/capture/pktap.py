"""Apple's PKTAP headers. In: the records of one block. Out: the packets inside, and whose they are.

Source: xnu's bsd/net/pktap.h. Both versions of the header are in the byte order of the Mac that captured, which is
little endian wherever PKTAP is. `tcpdump -k` writes pcapng with process blocks instead (`pcapng_workloads.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.link import LINK_LAYERS
from wirewitness.analyser.capture.model import NOBODY, Flags, Ids, Ints, PacketIdentities, Records, Rows
from wirewitness.analyser.capture.workloads.workload import Identity, identity

# LINKTYPE_PKTAP, and DLT_USER2, which PKTAP is in files of older Macs: there a header must look like one.
PKTAP, OLD_PKTAP = 258, 149
# pth_flags stand at the same place in both versions and tell which one it is.
_FLAGS_AT, _IN, _OUT, _VERSION_2 = 36, 1, 2, 0x80000
_LEAST, _LEAST_VERSION_2, _MOST = 108, 40, 1024
_PACKET = 1  # pth_type_next
_NAME = "V17"  # MAXCOMLEN + 1
_FLAGS = np.dtype([("flags", "<u4")])
_FIRST = np.dtype(
    {
        "names": ["length", "next", "link", "pid", "name", "effective_pid", "effective_name"],
        "formats": ["<u4", "<u4", "<u4", "<i4", _NAME, "<i4", _NAME],
        "offsets": [0, 4, 8, 52, 56, 84, 88],
        "itemsize": _LEAST,
    }
)
_SECOND = np.dtype(
    {
        "names": ["length", "name_at", "effective_name_at", "link", "pid", "effective_pid"],
        "formats": ["u1", "u1", "u1", "<u2", "<i4", "<i4"],
        "offsets": [0, 4, 5, 6, 28, 32],
        "itemsize": _LEAST_VERSION_2,
    }
)


class _Headers(NamedTuple):
    """Columns of some headers. row: which record. name: the bytes of a command's name, up to a zero."""

    row: Ints
    length: Ints
    link: Ints
    pid: Ints
    name: Rows
    flags: Ints


def is_pktap(link_type: int | Ids) -> bool:
    """May any of these link types be PKTAP?"""
    if isinstance(link_type, int):
        return link_type in (PKTAP, OLD_PKTAP)
    return bool(np.isin(link_type, (PKTAP, OLD_PKTAP)).any())


def unwrapped(data: bytearray, records: Records) -> Records:
    """The records without the PKTAP headers that are whole and make sense; others stay as they are."""
    count = len(records.start)
    link = np.full(count, records.link_type, np.int32) if isinstance(records.link_type, int) else records.link_type
    row = np.flatnonzero(np.isin(link, (PKTAP, OLD_PKTAP)) & (records.captured >= _LEAST_VERSION_2))
    flags = gather(data, records.start[row] + _FLAGS_AT, _FLAGS)["flags"].astype(np.int64)
    newer = (flags & _VERSION_2) != 0
    parts = [_of_first(data, records, row[~newer], flags[~newer]), _of_second(data, records, row[newer], flags[newer])]
    start, captured, wire, inner = records.start.copy(), records.captured.copy(), records.wire.copy(), link.copy()
    sender, receiver = np.full(count, NOBODY, np.int32), np.full(count, NOBODY, np.int32)
    identities: list[Identity] = []
    for part in parts:
        start[part.row] += part.length
        captured[part.row] -= part.length
        wire[part.row] = np.maximum(wire[part.row] - part.length, 0)
        inner[part.row] = part.link
        codes = _codes(part, identities)
        for side, direction in ((receiver, _IN), (sender, _OUT)):
            own = (part.flags & (_IN | _OUT)) == direction
            side[part.row[own]] = codes[own]
    uniform = bool((inner == inner[0]).all())
    return replace(
        records,
        start=start,
        captured=captured,
        wire=wire,
        link_type=int(inner[0]) if uniform else inner,
        identities=records.identities or PacketIdentities(sender, receiver, identities),
    )


def _of_first(data: bytearray, records: Records, row: Ints, flags: Ints) -> _Headers:
    whole = records.captured[row] >= _LEAST
    row, flags = row[whole], flags[whole]
    header = gather(data, records.start[row], _FIRST)
    length = header["length"].astype(np.int64)
    good = (header["next"] == _PACKET) & (length >= _LEAST) & _plausible(length, header["link"], records.captured[row])
    header, row = header[good], row[good]
    acts = header["pid"] > 0
    pid = np.where(acts, header["pid"], header["effective_pid"])
    name = np.where(acts, header["name"], header["effective_name"])
    return _Headers(row, length[good], header["link"].astype(np.int64), pid.astype(np.int64), name, flags[good])


def _of_second(data: bytearray, records: Records, row: Ints, flags: Ints) -> _Headers:
    header = gather(data, records.start[row], _SECOND)
    length = header["length"].astype(np.int64)
    good = (length >= _LEAST_VERSION_2) & _plausible(length, header["link"], records.captured[row])
    header, row, length = header[good], row[good], length[good]
    acts = header["pid"] > 0
    pid = np.where(acts, header["pid"], header["effective_pid"])
    at = np.where(acts, header["name_at"], header["effective_name_at"]).astype(np.int64)
    there = (at >= _LEAST_VERSION_2) & (at < length)
    # A name near the end of the header is shorter than others; a zero ends it, as do the 17 bytes.
    name = gather(data, records.start[row] + np.where(there, at, 0), np.dtype([("name", _NAME)]))["name"]
    name[~there] = np.zeros(1, _NAME)[0]
    return _Headers(row, length, header["link"].astype(np.int64), pid.astype(np.int64), name, flags[good])


def _plausible(length: Ints, link: Rows, captured: Ints) -> Flags:
    return (length <= np.minimum(captured, _MOST)) & np.isin(link, list(LINK_LAYERS))


def _codes(part: _Headers, identities: list[Identity]) -> Ids:
    """Who each header names, as numbers in `owners`, which grow."""
    keys = np.zeros(len(part.row), np.dtype([("pid", "<i8"), ("name", _NAME)]))
    keys["pid"], keys["name"] = part.pid, part.name
    unique, place = np.unique(keys.view(f"V{keys.dtype.itemsize}"), return_inverse=True)
    found: list[Identity] = []
    for one in unique.view(keys.dtype):
        name = one["name"].tobytes().partition(b"\0")[0].decode("utf-8", "replace")
        found.append(identity(pid=int(one["pid"]), command=name, source="pktap"))
    known = np.fromiter((one.known for one in found), np.bool_, len(found))
    codes = np.where(known[place], place + len(identities), NOBODY) if found else np.zeros(0)
    identities += found
    return codes.astype(np.int32)
