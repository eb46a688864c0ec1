"""The contract of a protocol whose server logs what it was asked and what it answered.

A line of such a log is an exchange that the server has decoded already. It becomes the same rows as the exchange on the
wire, by the same row makers. What a log cannot know (packets, sizes, records) is null in them.

In rows, a line takes the place of a packet (`packet_of` its file and its number in the file); the analyser knows which
files are logs, and shows lines there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from wirewitness.dissectors.core.inspect import Inspected
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink


class LogError(Exception):
    """A line that says nothing. code: the kind, for remarks; the text says what is wrong, without the line's words."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Numbered(NamedTuple):
    """A number that rises by one from request to request of what `counter` names.

    unlogged: so many in a row may be left out of a log that has every line. sure: else what is left out is missing;
    without it it may be. all_of_it: it numbers all requests of the connection.
    """

    counter: str
    number: int
    unlogged: range
    sure: bool
    all_of_it: bool


class LoggedExchange(Protocol):
    """What one line says, as far as the analyser reads it.

    connection: tells the connections of one server apart. client, server: address and port. asked: what tells this
    request from the others of its connection; a connection is named by the first one. duration_ns: from when the
    request was read until its answer was sent. numbered: tells that requests before it are not in the log. odd: codes
    of what is strange about the line although it could be read.
    """

    @property
    def connection(self) -> str: ...
    @property
    def client(self) -> tuple[str, int]: ...
    @property
    def server(self) -> tuple[str, int]: ...
    @property
    def asked(self) -> str: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def numbered(self) -> Numbered | None: ...
    @property
    def odd(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a line stands, packed as packets are, and Unix times in ns of the request and of its answer."""

    line: int
    ts_ns: int
    ts_response_ns: int


class LoggedDecoder(Protocol):
    """Makes rows of the lines of one connection, in the order of the log."""

    def add(self, exchange: LoggedExchange, moment: Moment, out: Sink) -> None:
        """Append the rows of one exchange."""
        ...

    def finish(self, out: Sink) -> None:
        """The log ended: give the rows of the connection as a whole."""
        ...


@dataclass(frozen=True, slots=True)
class LogReader:
    """How lines are read.

    read: the text of a line, from the first brace to the end -> what it says; raises LogError.
    decoder: (limits, options) -> what makes rows of one connection.
    meanings: what the codes of `LoggedExchange.odd` and of LogError mean, as the end of a sentence that begins with
        `3 lines`.
    inspect: the text of a line and a message's role -> its tree, in which no field has bytes; never raises.
    """

    read: Callable[[bytes], LoggedExchange]
    decoder: Callable[[Limits, DecodeOptions], LoggedDecoder]
    meanings: dict[str, str]
    inspect: Callable[[bytes, str | None], Inspected]
