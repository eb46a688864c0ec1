"""The contract between the analyser and a protocol. One page; read it before adding a protocol.

A protocol is a folder and one line in `dissectors/registry.py`; docs/adding-a-protocol.md walks through one. It gives a
`Dissector`:

    probe         do these first bytes of both directions look like the protocol? Says how sure, 0 to 100.
    framer        makes the object that cuts ONE direction's stream into frames.
    decoder  makes the object that turns the frames of BOTH directions of one flow into rows.
    inspect       the tree of one frame: fields with byte spans, and what must not be shown.

The analyser reassembles streams, asks every probe, then feeds framers and the decoder. Frames of both directions
reach the decoder in the order in which a listener could read them, whatever the size of the pieces they came in;
where a boundary is looked for, segments come one by one, and all frames before each are fed.
Framers and decoders hold state of one flow only, do no I/O and are picklable, so that flows can move between
processes. Nothing they do may raise on any bytes; what cannot be decoded becomes an expert info and an honest row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.deferred import Later
from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.core.inspect import Inspect, MayHide, anything, undecoded
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame, Row
from wirewitness.dissectors.core.options import DecodeOptions

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.streams import Opens, Streams, WholeRead

# A probe that is so sure decides by itself.
DECIDES = 50
# Rows of one table that wait in a list: by what `Sink.grow` was told, and by their number.
MAX_HELD_BYTES = 8 * 1024 * 1024
MAX_HELD_ROWS = 1 << 15


class Sink:
    """Collects rows of the tables somebody asked for.

    `rows(table)` is the list to append to, or None when nobody wants the table: then the rows need not be made at all.
    `drain(table)` takes away its rows so far; `grow` calls it, since one message may give more than memory should hold.
    `wanted`: names of the tables somebody asked for.
    `take`: takes the rows of blocks (`core/blocks.py`); None where tuples are appended in their place.
    `later`: where decoders leave frames that are decoded with those of others; None where they must not.
    `faults`: what is said of faults of our own, and of limits that end the decoding of a connection, by how often each
    came up, whoever wants the remarks.
    """

    __slots__ = ("_held_bytes", "_rows", "drain", "faults", "later", "take", "wanted")

    def __init__(self, wanted: Sequence[str]) -> None:
        self.wanted = frozenset(wanted)
        self._rows: dict[str, list[Row]] = {table: [] for table in wanted}
        self._held_bytes: dict[str, int] = {}
        self.drain: Callable[[str], None] = _keep
        self.take: Callable[[str, Block, int, int], None] | None = None
        self.later: Later | None = None
        self.faults: Counter[str] = Counter()

    def rows(self, table: str) -> list[Row] | None:
        """The list of that table's rows, None when it is not wanted."""
        return self._rows.get(table)

    def tables(self) -> Mapping[str, list[Row]]:
        """Every wanted table's list."""
        return self._rows

    def grow(self, table: str, size_bytes: int) -> None:
        """Rows of about this size were appended; for tables whose rows can be large or come in masses."""
        held = self._held_bytes.get(table, 0) + size_bytes
        if held >= MAX_HELD_BYTES:
            held = 0
            self.drain(table)
        self._held_bytes[table] = held

    def relieve(self) -> None:
        """Rows of tables that have many of them leave; for whoever gives a connection's frames."""
        for table, rows in self._rows.items():
            if len(rows) > MAX_HELD_ROWS:
                self.drain(table)

    def block(self, table: str, block: Block, first: int, until: int) -> None:
        """Append these rows of a block, if anybody wants the table."""
        rows = self._rows.get(table)
        if rows is None:
            return
        if self.take is not None:
            self.take(table, block, first, until)
        else:
            rows.extend(block.rows(first, until))
            if len(rows) > MAX_HELD_ROWS:
                self.drain(table)

    def expert(self, row: Row) -> None:
        """Add a remark (EXPERT_FIELDS)."""
        rows = self._rows.get("expert_infos")
        if rows is not None:
            rows.append(row)

    def fault(self, text: str, row: Row) -> None:
        """Add a remark on one of `faults`. text: its sentence, the same for all that are counted together."""
        self.faults[text] += 1
        self.expert(row)


def _keep(_: str) -> None:
    """Nobody takes rows away."""


class Skipped(NamedTuple):
    """Bytes `start` to `end` (positions in the data fed) that belong to no frame, and why."""

    start: int
    end: int
    reason: str


# Cut.need where no frame can start although one must, or a very large one starts.
STUCK = -1


class Cut(NamedTuple):
    """What a framer made of the data: frames as parallel lists of positions, and where it stopped.

    position: first byte not used up; the caller feeds it again with what follows.
    need: bytes from `position` on that must be there before feeding again is worth while (0: any more will do).
        STUCK: the data is to be fed again from there, segment by segment and with somebody's judgement.
    """

    starts: list[int]
    ends: list[int]
    position: int
    need: int
    skipped: list[Skipped]


# position in the data -> does a frame start there? None: more bytes needed to tell.
Plausible = Callable[[int], bool | None]


class Framer(Protocol):
    """Cuts one direction of one flow into frames."""

    @property
    def synchronised(self) -> bool:
        """True while the next byte is known to start a frame."""
        ...

    def feed(self, data: bytes, hints: Sequence[int], plausible: Plausible | None) -> Cut:
        """Cut `data`, which starts where the last Cut stopped. `hints` are the positions where segments start.

        `plausible` is the decoder's judgement of a boundary, asked only while not synchronised. None, only while
        synchronised: there may be many segments, so no boundary is looked for; the Cut may be STUCK.
        """
        ...

    def lost(self) -> None:
        """Bytes are missing before the next feed, or none will follow: look for a plausible boundary everywhere."""
        ...


class Decoder(Protocol):
    """Decodes the frames of one flow and pairs requests with responses."""

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; append rows to `out`."""
        ...

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """Does a frame start at this position of a stream that lost bytes? Strict: no message may be made up.

        hinted: a segment starts here. None: more bytes are needed to tell.
        """
        ...

    def finish(self, out: Sink) -> None:
        """The flow or the capture ended: give the rows of what is still open."""
        ...


@runtime_checkable
class PairsByOrder(Protocol):
    """What a decoder also has when nothing but their order tells which response answers which request."""

    def lost(self, direction: int, out: Sink) -> None:
        """Bytes of this direction are missing between the frames fed so far and the next one."""
        ...


@runtime_checkable
class HoldsRequests(Protocol):
    """What a decoder also has in which messages wait for their answers."""

    @property
    def held_bytes(self) -> int:
        """Memory of what waits, with the overhead of objects, roughly; see `core/budget.py`."""
        ...

    def let_go(self, out: Sink) -> None:
        """Give the rows of what waits, with no status since an answer may come, and hold it no longer."""
        ...


@runtime_checkable
class CountsJudged(Protocol):
    """What a decoder also has whose `boundary` may read far: how many bytes all its judgements have read."""

    judged: Judged


def no_files() -> None:
    """There are none."""


@dataclass(frozen=True, slots=True)
class Dissector:
    """One protocol.

    name: as in the column `protocol` and in options. title: as people write it. colour: its marks in charts, `#rrggbb`.
    letters: the first three of its rules' codes, such as those of KAF101.
    ports: usual server ports, a hint only.
    probe: (client bytes, server bytes, start of both streams seen) -> certainty 0 to 100; DECIDES decides.
    framer: (direction, stream starts at its beginning, limits) -> Framer.
    decoder: (limits, options) -> Decoder.
    rows: own tables -> the fields of their rows.
    error_names: error code -> name.
    inspect: (bytes of a frame, what is known of it, options) -> tree of fields; see core/inspect.py.
    may_hide: may such a message hold credentials? Where it says no, nobody looks.
    receive_buffer: the settings of its programs that size a socket's receive buffer, as people write them.
    subprotocols: names by which a carrier announces the protocol (WebSocket: Sec-WebSocket-Protocol), a hint only.
    server_names: parts of names by which TLS clients ask for its servers, beside `name`; a hint only.
    opens: may connections begin so, in the bytes of the client, which speaks first? See `core/columns/streams.py`.
        None: they may.
    whole: reads connections of which every byte is there, many at once (`columns/streams.py`), those whose first
        segment no other protocol's probe gives anything; the rows are the same as a decoder's. None: nobody does.
    read_files: reads all that lies in files beside its modules and that it opens only when it first needs it.
    timed_waits: is the time to the answer of a request that asks to wait (`awaitable`) worth a latency_ms?
    left_open: operations whose response a client that leaves does not wait for: what they ask or wait for changes
        nothing.
    at_once: of these, operations that a server answers at once: a response was due even where the capture ends soon
        after.
    resumed: operations whose handshake may go on in the session's next connection.

    `decoder`, `inspect` and `may_hide` import the modules that do it when they are called: every process has all
    dissectors, and most captures speak one protocol.
    """

    name: str
    title: str
    colour: str
    letters: str
    ports: tuple[int, ...]
    probe: Callable[[bytes, bytes, bool], int]
    framer: Callable[[int, bool, Limits], Framer]
    decoder: Callable[[Limits, DecodeOptions], Decoder]
    rows: Mapping[str, Fields]
    error_names: Mapping[int, str]
    inspect: Inspect = undecoded
    may_hide: MayHide = anything
    receive_buffer: str = ""
    subprotocols: tuple[str, ...] = ()
    server_names: tuple[str, ...] = ()
    read_files: Callable[[], None] = no_files
    timed_waits: bool = True
    left_open: frozenset[str] = frozenset()
    at_once: frozenset[str] = frozenset()
    resumed: frozenset[str] = frozenset()
    opens: Opens | None = None
    whole: Callable[[Streams, Limits, DecodeOptions, Sink], WholeRead] | None = None
