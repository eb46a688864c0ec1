"""The program that captures: packets of interfaces to files and to the program that analyses them.

In: a job as JSON in the first argument. Out: messages (`message_pipe.py`) on standard output, files. It is a program of
its own so that packets are taken from the kernel, and written, whatever the analysis is busy with. It ends when
standard input does.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from wirewitness.analyser.capture.message_pipe import CAPTURE, LINE, PACKETS, STATE, Outlet
from wirewitness.analyser.capture.pcapng_write import packet_blocks, section, statistics
from wirewitness.analyser.capture.privileges import (
    CAP_DAC_OVERRIDE,
    CAP_NET_RAW,
    NOBODY,
    Fence,
    User,
    confine,
    invoking_user,
    may,
)
from wirewitness.analyser.capture.program import NUMPY, Imports, import_all, readable
from wirewitness.analyser.capture.ring import NoInterfaceError, Ring, interface_facts
from wirewitness.analyser.capture.ring_files import RingFiles, WritingStoppedError
from wirewitness.analyser.capture.syn_watch import SynWatch
from wirewitness.analyser.capture.workload_naming import Naming

STATE_EVERY_S = 0.25
RETRY_EVERY_S = 0.25
BLOCKS_AT_A_TIME = 16
_LAST_BLOCKS_S = 0.2
_IMPORTS = Imports(("wirewitness.analyser.capture",), (*NUMPY, "traceback", "linecache", "unicodedata"))
_BEHIND = "the analysis is behind: packets that there is no room for are dropped and counted"
_NUMBERS = "; the file has them, so its later packets have other numbers than are told here: analyse the file itself"


@dataclass(frozen=True, slots=True)
class CaptureJob:
    """What to capture. program: lines of the filter. write: path of a file, None for none; most_bytes, most_files: see
    `RingFiles`. identities: are the identities of connections looked up? syn_program: lets SYNs through, for
    `syn_watch.py`; without it connections that are over soon have no identity. ring_bytes: of each interface, in the
    kernel.
    backlog_bytes: held for an analysis that is behind."""

    interfaces: tuple[str, ...]
    program: tuple[tuple[int, int, int, int], ...] = ()
    write: str | None = None
    most_bytes: int = 0
    most_files: int = 0
    identities: bool = False
    syn_program: tuple[tuple[int, int, int, int], ...] = ()
    ring_bytes: int = 64 << 20
    backlog_bytes: int = 256 << 20


def main() -> None:
    """Run the job in the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = json.loads(sys.argv[1])
    for name in ("program", "syn_program"):
        told[name] = tuple(tuple(line) for line in told[name])
    job = CaptureJob(**told)
    with suppress(BrokenPipeError):
        Capturing(job, Outlet(sys.stdout.fileno(), job.backlog_bytes)).run(sys.stdin.fileno())
    os._exit(0)  # buffers of standard output hold nothing


def job_text(job: CaptureJob) -> str:
    """The argument that gives `main` this job."""
    return json.dumps(asdict(job))


class Capturing:
    """Rings of all interfaces, the files, and the outlet."""

    def __init__(self, job: CaptureJob, outlet: Outlet) -> None:
        self._job, self._outlet = job, outlet
        self._link_types = [interface_facts(name)[0] for name in job.interfaces]
        self._rings: list[Ring | None] = [None] * len(job.interfaces)
        self._dropped = [0] * len(job.interfaces)  # by rings that are closed
        self._before = [0] * len(job.interfaces)  # drops before the capture or file began
        self._told: tuple[list[int], int] = ([], 0)
        self._packets = self._dropped_on_way = 0
        self._due_s = self._retry_s = 0.0
        self._naming: Naming | None = None
        self._syns: list[SynWatch | None] = [None] * len(job.interfaces)
        self._stop: int | None = None
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._files: RingFiles | None = None
        if job.write is not None:
            self._files = RingFiles(job.write, job.most_bytes, job.most_files, started, self._head, self._over)

    def run(self, stop: int) -> None:
        """Capture until `stop`, a descriptor, ends; then pass on what is still in the rings."""
        self._stop = stop
        if not readable(_user_after(self._job.write), _IMPORTS):
            import_all(_IMPORTS)
        self._start_naming()
        self._open_rings(first=True)
        _give_up_rights(self._job.write)
        self._begin()  # who sees the file may rely on packets being captured
        while not self._wait(stop):
            self._take()
            self._watch()
        until = time.monotonic() + _LAST_BLOCKS_S
        while time.monotonic() < until:
            self._wait(None)
            self._take()
        self._pass_on_named(all_there_is=True)
        self._tell_drops()
        if self._files is not None:
            self._files.close()
        self._send_state()
        self._outlet.finish()

    def _start_naming(self) -> None:
        """While this process still has its rights, which the program that looks identities up keeps some of."""
        if self._job.identities:
            try:
                self._naming = Naming()
            except OSError as error:
                self._say(f"owners of connections are not known: no program that looks them up: {error.strerror}")

    def _over(self) -> bool:
        return self._stop is not None and bool(select.select([self._stop], [], [], 0)[0])

    def _head(self) -> bytes:
        return section(list(zip(self._job.interfaces, self._link_types, strict=True)))

    def _begin(self) -> None:
        """Begin a capture: a file where some are written, else the only one."""
        name, head = ", ".join(self._job.interfaces), self._head()
        if self._files is not None:
            try:
                self._files.next_file()
                name = self._files.name
            except WritingStoppedError as error:
                self._stop_writing(error)
        self._outlet.send(CAPTURE, name.encode("utf-8", "surrogateescape"))
        self._outlet.send(PACKETS, head)

    def _open_rings(self, first: bool = False) -> None:
        for place, name in enumerate(self._job.interfaces):
            if self._rings[place] is not None:
                continue
            try:
                ring = _opened(name, self._job)
            except (OSError, NoInterfaceError) as error:
                if first:
                    self._say(f"{error}; waiting for it")
                continue
            if ring.link_type != self._link_types[place]:
                ring.close()
                continue
            self._rings[place] = ring
            self._watch_syns(place)
            if not first:
                self._say(f"interface {name} is back")

    def _watch_syns(self, place: int) -> None:
        """Without it identities are asked for when packets come out of the ring."""
        if self._naming is not None and self._job.syn_program:
            with suppress(OSError, NoInterfaceError):
                self._syns[place] = SynWatch(self._job.interfaces[place], self._job.syn_program)

    def _wait(self, stop: int | None) -> bool:
        """Wait for packets or for room in the pipe; True when it is time to stop."""
        poll = select.poll()
        for ring in self._rings:
            if ring is not None:
                poll.register(ring, select.POLLIN)
        if stop is not None:
            poll.register(stop, select.POLLIN)
        if self._outlet.held_bytes:
            poll.register(sys.stdout.fileno(), select.POLLOUT)
        wait_s = STATE_EVERY_S / 5
        if self._naming is not None:
            wait_s = min(wait_s, self._naming.wait_s())
            if self._naming.program is not None:
                poll.register(self._naming.program, select.POLLIN)
        syns = [watch for watch in self._syns if watch is not None]
        for watch in syns:
            poll.register(watch, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(math.ceil(wait_s * 1000))}
        for watch in syns:
            if self._naming is not None and watch.fileno() in ready:
                self._naming.begun(watch.begun())
        self._outlet.flush()
        return stop in ready

    def _take(self) -> None:
        found = [
            (packets, place)
            for place, ring in enumerate(self._rings)
            if ring is not None
            for packets in ring.blocks(BLOCKS_AT_A_TIME)
        ]
        if len(self._rings) > 1:
            found.sort(key=lambda entry: int(entry[0].ts_ns[0]))
        for packets, place in found:
            if self._naming is None:
                self._pass_on(b"".join(packet_blocks(packets, place)), len(packets.start))
            else:
                self._naming.take(packets, place, self._link_types[place])
        self._pass_on_named()

    def _pass_on_named(self, all_there_is: bool = False) -> None:
        """Blocks that waited for identities of connections, with these."""
        if self._naming is not None:
            self._naming.hear()
            for held in self._naming.ready(all_there_is):
                self._pass_on(self._naming.pcapng(held), len(held.packets.start))
            for remark in self._naming.remarks:
                self._say(remark)
            self._naming.remarks.clear()

    def _pass_on(self, piece: bytes, packets: int) -> None:
        if self._files is not None and self._files.full(len(piece)):
            self._tell_drops()
            self._before, self._dropped_on_way = self._drops(), self._outlet.dropped
            self._begin()
            if self._naming is not None:
                self._naming.tell_again()
        self._packets += packets
        self._write(piece)
        self._outlet.send(PACKETS, piece, packets)

    def _write(self, piece: bytes) -> None:
        if self._files is not None:
            try:
                self._files.write(piece)
            except WritingStoppedError as error:
                self._stop_writing(error)

    def _stop_writing(self, error: WritingStoppedError) -> None:
        self._files = None
        self._say(f"{error}; the analysis goes on")

    def _watch(self) -> None:
        """What is done a few times a second: look after interfaces, tell how it goes."""
        now = time.monotonic()
        if now >= self._retry_s:
            self._retry_s = now + RETRY_EVERY_S
            self._close_gone()
            self._open_rings()
        if now >= self._due_s:
            self._due_s = now + STATE_EVERY_S
            if self._outlet.dropped and not self._told[1]:
                self._say(_BEHIND + (_NUMBERS if self._files is not None else ""))
            if self._told != (self._drops(), self._outlet.dropped):
                self._tell_drops()
            self._send_state()

    def _close_gone(self) -> None:
        for place, ring in enumerate(self._rings):
            if ring is None or not ring.gone:
                continue
            self._take()
            self._dropped[place] += ring.dropped()
            ring.close()
            self._rings[place] = None
            if (syns := self._syns[place]) is not None:
                syns.close()
                self._syns[place] = None
            self._say(f"interface {ring.name} went away; waiting for it to come back")

    def _drops(self) -> list[int]:
        return [
            before + (ring.dropped() if ring is not None else 0)
            for before, ring in zip(self._dropped, self._rings, strict=True)
        ]

    def _tell_drops(self) -> None:
        """The counts go into the capture; packets that only the analysis did not get are no loss to the file."""
        now_ns = time.time_ns()
        on_way = self._outlet.dropped - self._dropped_on_way
        for place, (dropped, before) in enumerate(zip(self._drops(), self._before, strict=True)):
            self._write(statistics(place, now_ns, dropped - before))
            self._outlet.send(PACKETS, statistics(place, now_ns, dropped - before, on_way if place == 0 else 0))
        self._told = self._drops(), self._outlet.dropped

    def _send_state(self) -> None:
        state = {
            "packets": self._packets,
            "kernel_drops": sum(self._drops()),
            "backlog_drops": self._outlet.dropped,
            "backlog_bytes": self._outlet.held_bytes,
            "interfaces_up": [ring.name for ring in self._rings if ring is not None],
            "file": self._files.name if self._files is not None else None,
            "writing_stopped": self._files is None and self._job.write is not None,
            "own_fault": self._naming is not None and self._naming.failed,
        }
        self._outlet.send(STATE, json.dumps(state).encode())

    def _say(self, text: str) -> None:
        self._outlet.send(LINE, text.encode("utf-8", "surrogateescape"))


def _user_after(write: str | None) -> User | None:
    """The user that this process becomes when it drops its privileges. None: it stays who it is.

    A folder of root's stays with root where nobody called sudo: files that nobody owns would be open to others.
    """
    user = invoking_user()
    return None if write is not None and user is not None and user.name == NOBODY else user


def _give_up_rights(write: str | None) -> None:
    """Keep the right to open sockets, for interfaces that come back, and what the folder of the files needs."""
    user, keep = _user_after(write), [CAP_NET_RAW]
    if write is None:
        confine(user, Fence(keep=keep))
        return
    path = Path(os.path.realpath(write))
    if user is not None and not may(user, [path if path.exists() else path.parent, path.parent], os.W_OK):
        keep.append(CAP_DAC_OVERRIDE)
    confine(user, Fence([path.parent], keep=keep))


def _opened(name: str, job: CaptureJob) -> Ring:
    """A ring as large as asked for, or a smaller one where memory is short."""
    ring_bytes = job.ring_bytes
    while True:
        try:
            return Ring(name, job.program, ring_bytes)
        except OSError as error:
            if isinstance(error, PermissionError) or ring_bytes <= 4 << 20:
                raise
            ring_bytes //= 2
