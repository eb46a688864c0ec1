"""Processes in pcapng files. In: the options of packets, and blocks that describe processes. Out: who sends and who
receives each packet.

Three programs write them:

  epb_processid_threadid (option 8, draft-ietf-opsawg-pcapng; Wireshark 4.7 shows it): the process that sent the packet
  ptcpdump: comments on packets (`analyser/capture/pcapng_workloads.py`), with the direction in epb_flags
  Apple's tcpdump: process blocks (0x80000001), named by options 0x8001 and 0x8003 of packets by their places in the
    section (libpcap's pcap-ng.h and pcap-darwin.c); the second is the process that the first one acts for

A process at a packet is that of the capturing machine: the sender's where epb_flags say outbound, the receiver's where
they say inbound. Without a direction only epb_processid_threadid says whose it is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.capture.model import NOBODY, Flags, Ids, Ints, PacketIdentities
from wirewitness.analyser.capture.pcapng_options import read_options, text_option
from wirewitness.analyser.capture.pcapng_packet_options import (
    COMMENT,
    DARWIN_EFFECTIVE,
    DARWIN_PROCESS,
    FLAGS,
    PROCESS,
    Options,
)
from wirewitness.analyser.capture.workloads.seen import IdentitiesSeen
from wirewitness.analyser.capture.workloads.workload import Identity, identity

# What ptcpdump writes into the comments of packets. In: the text of a comment. Out: what it says of a process.
#
# Source: ptcpdump's internal/writer/pcapng.go and internal/types/context.go. A packet has up to six comments, each of
# lines `Key: value`:
#
#     PID: 4711\nCmd: /usr/bin/java\nArgs: java -jar payments.jar
#     ThreadId: 4730\nThreadName: kafka-producer
#     UserId: 1000\nGroupId: 1000
#     ParentPID: 1\nParentCmd: /sbin/init\nParentArgs: init
#     ContainerName: payments\nContainerId: 8f14e45f...\nContainerImage: shop/payments:3\nContainerLabels: {...}
#     PodName: payments-7d4f\nPodNamespace: shop\nPodUID: ...\nPodLabels: {...}\nPodAnnotations: {...}
#
# Arguments may hold credentials: they are not kept. What stands behind the first line that a comment of its kind does
# not have was written by the process itself, as in arguments with line ends, and is not read.

# Keys by the first key of a comment. Older versions write Command and TID.
_KINDS: dict[str, tuple[str, ...]] = {
    "PID": ("PID", "Cmd", "Command"),
    "UserId": ("UserId", "GroupId", "UserName"),
    "ContainerName": ("ContainerName", "ContainerId"),
    "PodName": ("PodName", "PodNamespace"),
    "ThreadId": ("ThreadId", "ThreadName"),
    "TID": ("TID", "ThreadName"),
    "ParentPID": ("ParentPID",),
}
MAX_READ_BYTES = 1024  # of a comment: what is read stands first
_CUT = "..."
_SHORT_ID = 12  # as `docker ps` shows an id


class Said(NamedTuple):
    """What comments of one packet say of its process; None what they do not."""

    pid: int | None = None
    command: str | None = None
    user: str | None = None
    container: str | None = None
    pod: str | None = None
    namespace: str | None = None


def said(comment: bytes) -> Said | None:
    """What one comment says: nothing known where it is of a thread or parent, None where ptcpdump did not write it."""
    first = comment.partition(b":")[0].decode("utf-8", "replace")
    keys = _KINDS.get(first)
    if keys is None:
        return None
    found: dict[str, str] = {}
    for line in comment[:MAX_READ_BYTES].decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        if not colon or key not in keys or key in found:
            break
        found[key] = value.strip()
    command = (found.get("Cmd") or found.get("Command") or "").removesuffix(_CUT).rpartition("/")[2]
    return Said(
        pid=_number(found.get("PID")),
        command=command or None,
        user=found.get("UserName") or (found.get("UserId") if _number(found.get("UserId")) is not None else None),
        container=found.get("ContainerName") or (found.get("ContainerId") or "")[:_SHORT_ID] or None,
        pod=found.get("PodName") or None,
        namespace=found.get("PodNamespace") or None,
    )


def together(parts: list[Said]) -> Said:
    """What several comments of one packet say; the first one counts."""
    return Said(*(next((value for value in values if value is not None), None) for values in zip(*parts, strict=True)))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 10 else None


DARWIN_BLOCK = 0x80000001
_DARWIN_NAME = 2
_INBOUND, _OUTBOUND, _DIRECTION = 1, 2, 3
# Processes described in one section, and comments remembered; a day of ptcpdump has some thousand.
_MAX_DESCRIBED, _MAX_COMMENTS = 65_536, 16_384


class PcapngIdentities:
    """The processes of one pcapng file."""

    def __init__(self, seen: IdentitiesSeen) -> None:
        self._seen = seen
        # Processes that were described, and before which packet of this walk; where sections begin among both.
        self._described: list[Identity] = []
        self._before: list[int] = []
        self._sections: list[tuple[int, int]] = [(0, 0)]
        self._comments: dict[bytes, Said | None] = {}

    def new_section(self, packet: int) -> None:
        """Processes are numbered anew from this packet of the walk on."""
        self._sections.append((packet, len(self._described)))

    def describe(self, body: bytes, order: str, packet: int) -> None:
        """A process block of at least four bytes, before this packet of the walk."""
        self._seen.described += 1
        (pid,) = struct.unpack_from(order + "I", body)
        names = [text_option(value) for code, value in read_options(body[4:], order) if code == _DARWIN_NAME]
        if len(self._described) < _MAX_DESCRIBED:
            self._described.append(identity(pid=pid, command=names[0] if names else None, source="capture"))
            self._before.append(packet)

    def end_walk(self) -> None:
        """Packets are counted anew; what sections described that are over is not needed any more."""
        _, first = self._sections[-1]
        self._described, self._sections = self._described[first:], [(0, 0)]
        self._before = [0] * len(self._described)

    def told(
        self, data: bytearray, options: Mapping[int, Options], packets: int
    ) -> tuple[PacketIdentities | None, list[tuple[int, bytes]]]:
        """Who is at each of so many packets (None where none is told), and the comments of people: (row, comment)."""
        columns: list[tuple[Ids, Sequence[Identity]]] = []
        people: list[tuple[int, bytes]] = []
        if COMMENT in options:
            of_comments, people = self._of_comments(data, options[COMMENT], packets)
            columns += of_comments
        # These codes are for local use: in a file without process blocks they are another program's.
        if self._seen.described and options.keys() & {DARWIN_PROCESS, DARWIN_EFFECTIVE}:
            columns.append(self._of_blocks(data, options, packets))
        if not columns and PROCESS not in options:
            return None, people
        direction: Ids = np.zeros(packets, np.int32)
        if FLAGS in options:
            row, flags = options[FLAGS].numbers(data)
            direction[row] = flags & _DIRECTION
        return self._sides(columns, direction, options.get(PROCESS), data), people

    def _sides(
        self,
        columns: list[tuple[Ids, Sequence[Identity]]],
        direction: Ids,
        processes: Options | None,
        data: bytearray,
    ) -> PacketIdentities:
        """Identities by direction; of several columns the first one that knows a packet."""
        packets = len(direction)
        identities: list[Identity] = []
        local: Ids = np.full(packets, NOBODY, np.int32)
        for codes, who in columns:
            fresh = (local == NOBODY) & (codes != NOBODY)
            local[fresh] = codes[fresh] + len(identities)
            identities += who
        named = local != NOBODY
        sender = np.where(named & (direction == _OUTBOUND), local, NOBODY).astype(np.int32)
        receiver = np.where(named & (direction == _INBOUND), local, NOBODY).astype(np.int32)
        undirected = named & (direction != _OUTBOUND) & (direction != _INBOUND)
        self._seen.undirected += int(np.count_nonzero(undirected))
        if processes is not None:
            row, pid = processes.numbers(data, size=8)
            # The option names who sent the packet: of one that came in that is somebody elsewhere.
            chosen = (pid > 0) & (direction[row] != _INBOUND) & (sender[row] == NOBODY)
            numbers, place = np.unique(pid[chosen], return_inverse=True)
            sender[row[chosen]] = place + len(identities)
            identities += [identity(pid=number, source="capture") for number in numbers.tolist()]
        return PacketIdentities(sender, receiver, identities)

    def _of_blocks(
        self, data: bytearray, options: Mapping[int, Options], packets: int
    ) -> tuple[Ids, Sequence[Identity]]:
        codes: Ids = np.full(packets, NOBODY, np.int32)
        wrong: Flags = np.zeros(packets, np.bool_)
        # The process that holds the socket counts; whom it acts for, where nothing else is told.
        for code in (DARWIN_EFFECTIVE, DARWIN_PROCESS):
            if code in options:
                row, number = options[code].numbers(data)
                begins, bases = np.array(self._sections, np.int64).T
                section = np.searchsorted(begins, row, side="right") - 1
                number = number + bases[section]
                there = number < np.append(bases[1:], len(self._described))[section]
                there[there] = np.array(self._before, np.int64)[number[there]] <= row[there]
                codes[row[there]] = number[there]
                wrong[row[~there]] = True
        self._seen.undescribed += int(np.count_nonzero(wrong))
        return codes, self._described

    def _of_comments(
        self, data: bytearray, comments: Options, packets: int
    ) -> tuple[list[tuple[Ids, Sequence[Identity]]], list[tuple[int, bytes]]]:
        kinds, texts = _alike(data, comments)
        read = [self._read(text) for text in texts]
        is_own = np.fromiter((one is not None for one in read), np.bool_, len(read))[kinds]
        people = [
            (int(comments.row[at]), bytes(data[comments.start[at] : comments.start[at] + comments.length[at]]))
            for at in np.flatnonzero(~is_own).tolist()
        ]
        if not is_own.any():
            return [], people
        own = np.flatnonzero(is_own)
        row, kind = comments.row[own], kinds[own]
        # Packets whose comments are alike get one identity: (comment, comment, ...) as one number, comment by comment.
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        sets: dict[int, tuple[int, ...]] = {0: ()}
        state: Ints = np.zeros(len(starts), np.int64)
        length = np.diff(np.append(starts, len(row)))
        for step in range(int(length.max())):
            there = np.flatnonzero(length > step)
            pairs = state[there] * len(texts) + kind[starts[there] + step]
            unique, place = np.unique(pairs, return_inverse=True)
            first = len(sets)
            for offset, pair in enumerate(unique.tolist()):
                before, comment = divmod(pair, len(texts))
                sets[first + offset] = (*sets[before], comment)
            state[there] = place + first
        used, place = np.unique(state, return_inverse=True)
        identities = [
            _identity([one for one in (read[at] for at in sets[number]) if one is not None]) for number in used
        ]
        codes: Ids = np.full(packets, NOBODY, np.int32)
        known = np.fromiter((one.known for one in identities), np.bool_, len(identities))[place]
        codes[row[starts[known]]] = place[known]
        return [(codes, identities)], people

    def _read(self, text: bytes) -> Said | None:
        if text not in self._comments:
            if len(self._comments) >= _MAX_COMMENTS:
                self._comments.clear()
            self._comments[text] = said(text)
        return self._comments[text]


def _identity(parts: list[Said]) -> Identity:
    one = together(parts)
    return identity(
        pid=one.pid,
        command=one.command,
        user=one.user,
        container=one.container,
        pod=one.pod,
        namespace=one.namespace,
        source="comment",
    )


def _alike(data: bytearray, comments: Options) -> tuple[Ints, list[bytes]]:
    """Comments by the beginnings that are read of them: a number for each, and the texts of the numbers."""
    length = np.minimum(comments.length, MAX_READ_BYTES)
    numbers: Ints = np.zeros(len(length), np.int64)
    texts: list[bytes] = []
    for size in np.unique(length).tolist():
        own = np.flatnonzero(length == size)
        if not size:
            numbers[own] = len(texts)
            texts.append(b"")
            continue
        windows = np.ndarray((len(data) - size + 1,), dtype=f"V{size}", buffer=data, strides=(1,))
        unique, place = np.unique(windows[comments.start[own]], return_inverse=True)
        numbers[own] = place + len(texts)
        texts += [one.tobytes() for one in unique]
    return numbers, texts
