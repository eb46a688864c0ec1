"""One MongoDB connection, told as messages: what tests of the dissector feed and look at."""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mongo.decoder import MongoDecoder
from wirewitness.dissectors.mongo.rows import MONGO_ROWS

TABLES = {table: fields.names for table, fields in (CORE_ROWS | MONGO_ROWS).items()}
MS = 1_000_000


class Wire:
    """Feeds messages one by one, a packet and a millisecond each, and keeps what comes out."""

    def __init__(self, limits: Limits | None = None, options: DecodeOptions | None = None) -> None:
        self.out = Sink(list(TABLES))
        self.decoder = MongoDecoder(limits or Limits(), options)
        self._at = [0, 0]
        self._packet = 0

    def client(self, *messages: bytes, complete: bool = True) -> Wire:
        return self._frames(CLIENT_TO_SERVER, messages, complete)

    def server(self, *messages: bytes, complete: bool = True) -> Wire:
        return self._frames(SERVER_TO_CLIENT, messages, complete)

    def finish(self) -> Wire:
        self.decoder.finish(self.out)
        return self

    def _frames(self, direction: int, messages: tuple[bytes, ...], complete: bool) -> Wire:
        for content in messages:
            self._packet += 1
            data, offset, packet = b"noise" + content + b"noise", self._at[direction], self._packet
            end = 5 + len(content)
            frame = Frame(packet, direction, data, 5, end, offset, packet, packet, packet * MS, complete)
            self._at[direction] += len(content)
            self.decoder.feed([frame], self.out)
        return self

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        places = [TABLES[table].index(column) for column in columns]
        return [tuple(row[place] for place in places) for row in self.out.rows(table) or ()]

    def commands(self, *columns: str) -> list[tuple[Any, ...]]:
        return self.rows("mongo_commands", *columns)

    def command(self, *columns: str) -> Any:
        """The columns of the only row; one column's value alone."""
        (row,) = self.commands(*columns)
        return row[0] if len(columns) == 1 else row

    def remarks(self) -> list[str]:
        return [row[6] for row in self.out.rows("expert_infos") or ()]
