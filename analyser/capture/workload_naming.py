"""The identities of captured connections, on their way into the capture. In: blocks of packets, answers about
identities.

Out: the same blocks, in which the first packet that an end sends after its identity is known has it among its options.
A block with a connection that is new waits a moment for the first answers; what comes later goes to a later packet.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from wirewitness.analyser.base.faults import told
from wirewitness.analyser.capture.endpoints import EndpointTable
from wirewitness.analyser.capture.fragments import Fragments
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, PacketBatch, Records
from wirewitness.analyser.capture.pcapng_write import packet_blocks, with_options
from wirewitness.analyser.capture.ring import LinkPackets
from wirewitness.analyser.capture.segments import decode_records
from wirewitness.analyser.capture.syn_watch import Begun
from wirewitness.analyser.capture.workload_messages import Question
from wirewitness.analyser.capture.workload_options import identity_options
from wirewitness.analyser.capture.workload_program import IdentityProgram, end_of
from wirewitness.analyser.capture.workloads.kernel.lookup import Answer, LocalIdentity
from wirewitness.analyser.capture.workloads.kernel.sock_diag import End

HOLD_S = 0.1
MOST_HELD_BYTES = 16 << 20
MOST_PAIRS, MOST_EARLY = 100_000, 10_000
# A pair of ends costs some 700 bytes: beyond so many they are forgotten where three quarters of them are over.
PAIRS_TO_KEEP, _OVER = 10_000, 0.75
# Each question costs some 0.1 ms, here and where it is answered: of a flood of connections a part is asked about.
MOST_PER_S = 5_000
# An end that has sent nothing for so long is told on a packet that it received: a filter may let only these through.
_SILENT_S = 1.0
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_FLOOD = f"more than {MOST_PER_S:,} connections begin in a second: not of all of them the owner is asked for"
_ENDED = "who owns connections is not known any more: the program that looks it up has ended"

# An identity, and since when it is known.
_Untold = dict[bool, tuple[LocalIdentity, float]]


@dataclass(slots=True)
class HeldBlock:
    """A block on its way. place: of its interface. batch: its TCP segments, by packets of the block from 0 on; None
    where nobody looks at them. waits: questions of which the first look is not over."""

    packets: LinkPackets
    place: int
    until_s: float
    batch: PacketBatch | None = None
    waits: set[tuple[int, bool]] = field(default_factory=set)

    def forget(self) -> None:
        """Nothing is told in it."""
        self.batch = None
        self.waits.clear()


@dataclass(slots=True)
class Asked:
    """A question about a connection. first_seq: of its SYN, None where that was not seen. pair: its number, None until
    a packet of it came out of a ring. settled: ends at which the first look is over."""

    number: int
    first_seq: int | None
    pair: int | None = None
    identities: dict[bool, LocalIdentity] = field(default_factory=dict)
    settled: set[bool] = field(default_factory=set)


class Naming:
    """Blocks in, blocks with identities out, in the same order. remarks: for people, each once. failed: by a fault
    of our own."""

    def __init__(self) -> None:
        """Raises OSError where there is no other program."""
        self.program: IdentityProgram | None = IdentityProgram()
        self.remarks: list[str] = []
        self.failed = False
        self._held: deque[HeldBlock] = deque()
        self._held_bytes = 0
        self._number = 0
        self._allowed, self._allowed_s = 0.0, time.monotonic() - 1
        self._is_flood_told = False
        self._forget()

    def _forget(self) -> None:
        """Pairs are numbered anew; what was asked of them is not waited for."""
        self._endpoints = EndpointTable()
        self._known = 0
        self._over: set[int] = set()
        self._stats = CaptureStats("")
        self._fragments = Fragments(CaptureLimits(), self._stats)
        self._asked: dict[int, Asked] = {}  # by the number of the question
        self._last: dict[int, Asked] = {}  # by pair
        self._early: OrderedDict[tuple[End, End], Asked] = OrderedDict()
        self._untold: dict[int, _Untold] = {}

    def begun(self, connections: Iterable[Begun]) -> None:
        """Connections that begin now, whose packets come out of a ring later."""
        self._allow()
        for low, high, seq in connections:
            early = self._early.get((low, high))
            if (early is None or early.first_seq != seq) and self._may_ask():
                self._early[low, high] = self._ask(low, high, seq)
                self._early.move_to_end((low, high))
                if len(self._early) > MOST_EARLY:
                    _, oldest = self._early.popitem(last=False)
                    self._asked.pop(oldest.number, None)

    def take(self, packets: LinkPackets, place: int, link_type: int) -> None:
        """A block from the ring; `ready` gives it back."""
        if not self._held and len(self._endpoints) > PAIRS_TO_KEEP and len(self._over) > _OVER * len(self._endpoints):
            self._forget()
        held = HeldBlock(packets, place, time.monotonic() + HOLD_S)
        self._held.append(held)
        self._held_bytes += len(packets.data)
        if self.program is None:
            return
        if len(self._endpoints) > MOST_PAIRS or len(self._asked) > 2 * MOST_PAIRS:
            for one in self._held:
                one.forget()
            self._forget()
        try:
            held.batch = self._decoded(packets, link_type)
            held.waits = {
                (asked.number, is_high)
                for asked in self._of_block(held.batch)
                for is_high in (False, True)
                if is_high not in asked.settled
            }
        except Exception as error:  # capturing goes on
            held.forget()
            self.failed = True
            self._stop(told(error, "looking for connections", "owners of them are not told any more"))

    def hear(self) -> None:
        """Take the answers that are there, and send what is asked."""
        if self.program is None:
            return
        self.program.flush()
        now = time.monotonic()
        for one in self.program.answers():
            if isinstance(one, str):
                self.remarks.append(one)
            else:
                self._answered(one, now)
        if self.program.ended:
            self._stop(_ENDED)

    def ready(self, all_there_is: bool = False) -> list[HeldBlock]:
        """The blocks that wait no more, in their order; those of `all_there_is` whatever they wait for."""
        found = []
        now = time.monotonic()
        while self._held:
            first = self._held[0]
            waits = first.waits and self.program is not None and now < first.until_s
            if waits and not all_there_is and self._held_bytes < MOST_HELD_BYTES:
                break
            found.append(self._held.popleft())
            self._held_bytes -= len(first.packets.data)
        return found

    def wait_s(self) -> float:
        """How long the first block still waits; infinite where there is none."""
        return max(self._held[0].until_s - time.monotonic(), 0.0) if self._held else math.inf

    def pcapng(self, held: HeldBlock) -> bytes:
        """A block's packets, with identities."""
        blocks: list[memoryview | bytes] = [*packet_blocks(held.packets, held.place)]
        if self._untold and held.batch is not None:
            for row, options in self._told(held.batch).items():
                blocks[row] = with_options(memoryview(blocks[row]), options)
        return b"".join(blocks)

    def tell_again(self) -> None:
        """A file begins, which is to have the identities of connections that stand, too."""
        now = time.monotonic()
        for pair, asked in self._last.items():
            if asked.identities:
                self._untold[pair] = {is_high: (identity, now) for is_high, identity in asked.identities.items()}

    def close(self) -> None:
        """Ask no more."""
        if self.program is not None:
            self.program.close()

    def _decoded(self, packets: LinkPackets, link_type: int) -> PacketBatch:
        records = Records(0, packets.start, packets.captured, packets.wire, packets.ts_ns, link_type)
        return decode_records(packets.data, records, self._endpoints, self._stats, self._fragments)

    def _of_block(self, batch: PacketBatch) -> list[Asked]:
        """What is asked about the connections that begin in a block or are seen for the first time."""
        self._allow()
        fresh: dict[int, int | None] = {}
        for at in np.flatnonzero((batch.flags & (_SYN | _ACK)) == _SYN)[: 2 * MOST_PER_S].tolist():
            pair, seq = int(batch.pair[at]), int(batch.seq[at])
            if pair not in self._last or self._last[pair].first_seq != seq:  # not sent again
                fresh[pair] = seq
                self._over.discard(pair)
        for pair in range(self._known, min(len(self._endpoints), self._known + 2 * MOST_PER_S)):
            fresh.setdefault(pair)
        self._known = len(self._endpoints)
        self._over.update(batch.pair[(batch.flags & (_FIN | _RST)) != 0].tolist())
        asked = (self._of_pair(pair, seq) for pair, seq in fresh.items())
        return [one for one in asked if one is not None]

    def _allow(self) -> None:
        """Some questions more, by the time that went by."""
        now = time.monotonic()
        self._allowed = min(self._allowed + (now - self._allowed_s) * MOST_PER_S, MOST_PER_S)
        self._allowed_s = now

    def _may_ask(self) -> bool:
        self._allowed -= self._allowed >= 1
        if self._allowed < 1 and not self._is_flood_told:
            self._is_flood_told = True
            self.remarks.append(_FLOOD)
        return self._allowed >= 1

    def _of_pair(self, pair: int, seq: int | None) -> Asked | None:
        """None where too much is asked."""
        ends = self._endpoints[pair]
        low, high = End(end_of(ends.low_address), ends.low_port), End(end_of(ends.high_address), ends.high_port)
        early = self._early.pop((low, high), None)
        asked = early if early is not None and seq in (None, early.first_seq) else None
        if asked is None:
            if not self._may_ask():
                return None
            asked = self._ask(low, high, seq)
        before = self._last.get(pair)
        if before is not None:
            self._asked.pop(before.number, None)
        asked.pair = pair
        self._last[pair] = asked
        self._untold.pop(pair, None)
        if asked.identities:
            now = time.monotonic()
            self._untold[pair] = {is_high: (identity, now) for is_high, identity in asked.identities.items()}
        return asked

    def _ask(self, low: End, high: End, seq: int | None) -> Asked:
        self._number = self._number % 0xFFFFFFFF + 1
        asked = Asked(self._number, seq)
        if self.program is not None and self.program.ask(Question(self._number, low, high)):
            self._asked[self._number] = asked
        else:
            asked.settled = {False, True}
        return asked

    def _answered(self, one: Answer, now: float) -> None:
        asked = self._asked.get(one.question)
        if asked is None:
            return
        if one.identity is None:
            asked.settled.add(one.is_high)
            for held in self._held:
                held.waits.discard((one.question, one.is_high))
            return
        asked.identities[one.is_high] = one.identity
        if asked.pair is not None:
            self._untold.setdefault(asked.pair, {})[one.is_high] = one.identity, now

    def _told(self, batch: PacketBatch) -> dict[int, bytes]:
        """Options by packets of a block."""
        found: dict[int, bytes] = {}
        now = time.monotonic()
        for at in np.flatnonzero(np.isin(batch.pair, [*self._untold])).tolist():
            pair, row = int(batch.pair[at]), int(batch.packet[at])
            sender_is_high, receiver_is_high = not batch.from_low[at], bool(batch.from_low[at])
            untold = self._untold.get(pair)
            if untold is None or row in found:
                continue
            if sender_is_high in untold:
                found[row] = identity_options(untold.pop(sender_is_high)[0], sent=True)
            elif now > untold[receiver_is_high][1] + _SILENT_S:
                found[row] = identity_options(untold.pop(receiver_is_high)[0], sent=False)
            if not untold:
                del self._untold[pair]
        return found

    def _stop(self, why: str) -> None:
        self.close()
        self.program = None
        self.remarks.append(why)
