"""The contract of a carrier: a byte stream inside another one, such as WebSocket inside TCP.

What a carrier carries is identified, framed and decoded like any other stream; dissectors see the inner bytes only.

    may_open   could a connection whose client begins like this open the carrier? Cheap: asked about every flow.
    opening    what both sides said to open it, once it is all there.
    looks_like could a segment in the middle of a stream begin like this? For connections that were open before.
    unwrapper  makes the object that takes the inner bytes out of ONE direction, told where in the outer stream each
               piece lay, so that messages can be named by outer stream offsets and credentials found in packets.

Nothing here may raise on any bytes; what cannot be read becomes a `Told`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.limits import Limits

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.streams import Opens


class Carried(NamedTuple):
    """Inner bytes, carried by the outer bytes `start` to before `end`: as many, unless they were compressed.

    behind: outer offset behind the frame that they came in, which must be whole to be read; 0 where that is `end`.
    """

    data: bytes
    start: int
    end: int
    behind: int = 0


class Interrupted(NamedTuple):
    """Inner bytes are missing here: `size` of them, 0 when nobody knows how many."""

    size: int


class Told(NamedTuple):
    """A remark on the outer bytes `start` to before `end`."""

    severity: str
    group: str
    code: str
    text: str
    start: int
    end: int


Item = Carried | Interrupted | Told


class Pieces(NamedTuple):
    """Many pieces of inner bytes, none of them compressed, column by column.

    starts: the outer offset of each; behind: the one behind the frame that it came in. used: so many of the outer bytes
    that were fed are done with or kept; the others are to be fed again, one segment after the other.
    """

    data: list[bytes]
    starts: list[int]
    behind: list[int]
    used: int


class HiddenBytes(NamedTuple):
    """Outer bytes with a credential, before the carried bytes begin."""

    direction: int
    start: int
    end: int


class Opening(NamedTuple):
    """How a connection became a carrier.

    before: bytes of the client's and the server's stream in front of the carried ones. inner: the name that both sides
    gave the inner protocol, None without one. compression: what was agreed on about it, empty without. encryption: what
    is known of it where the carried bytes are encrypted; it grows while they are read. agreed: what else the carrier
    itself needs for its unwrappers.
    """

    before: tuple[int, int]
    inner: str | None
    compression: str
    hidden: tuple[HiddenBytes, ...]
    told: Told | None
    encryption: Encryption | None = None
    agreed: object = None


class Unwrapper(Protocol):
    """Takes the inner bytes out of one direction.

    headers: None, or a list of somebody who wants to know which outer bytes, from and to before, are the carrier's own.
    over: nothing more comes of it, whatever it is fed.
    """

    headers: list[tuple[int, int]] | None
    over: bool

    @property
    def held_bytes(self) -> int:
        """Outer bytes up to the latest that were not given out yet and still may be."""
        ...

    @property
    def searched_from(self) -> int | None:
        """Outer offset since which no frame was found; None while frames are read."""
        ...

    def feed(self, data: bytes, offset: int) -> list[Item]:
        """One segment's bytes, which begin at this offset of the outer stream and follow those fed before."""
        ...

    def gap(self, size: int, offset: int) -> list[Item]:
        """The next `size` bytes of the outer stream are missing."""
        ...

    def feed_many(self, data: bytes, offset: int) -> Pieces | None:
        """Of the bytes of several segments, fed as to `feed`, what can be read at once in the ordinary course. None,
        and nothing is done: segment by segment, please; nothing is fed here while `headers` are wanted."""
        ...


@dataclass(frozen=True, slots=True)
class Carrier:
    """One carrier. looks_like: the direction that could send such a segment, None when neither could.

    unwrapper: (direction, how it was opened or None in the middle of a stream, limits) -> Unwrapper.
    again: gives an unwrapper that was kept what is never kept, such as keys; None where there is nothing.
    opens: `may_open` of the first bytes of many clients, see `core/columns/streams.py`. None: they may.
    lies_in: names of carriers that it may lie in, too; it may always be in TCP alone.
    """

    name: str
    may_open: Callable[[bytes], bool]
    opening: Callable[[bytes, bytes], Opening | None]
    looks_like: Callable[[bytes], int | None]
    unwrapper: Callable[[int, Opening | None, Limits], Unwrapper]
    again: Callable[[Unwrapper], None] | None = None
    opens: Opens | None = None
    lies_in: tuple[str, ...] = ()
