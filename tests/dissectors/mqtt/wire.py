"""One MQTT connection told as packets, for tests: what becomes of them."""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mqtt.decoder import MqttDecoder
from wirewitness.dissectors.mqtt.rows import MQTT_ROWS

FIELDS = {table: fields.names for table, fields in (CORE_ROWS | MQTT_ROWS).items()}
MS = 1_000_000


class Wire:
    """Feeds packets one by one and keeps what comes out. Packet n comes at n milliseconds."""

    def __init__(self, *, whole: bool = True, limits: Limits | None = None, payload: bool = False) -> None:
        self.out = Sink(list(FIELDS))
        options = DecodeOptions(payload=payload, whole=whole)
        self.decoder = MqttDecoder(limits or Limits(), options)
        self._at = [0, 0]
        self._packet = 0

    def client(self, *packets: bytes, complete: bool = True) -> Wire:
        """Packets from the client."""
        return self._feed(CLIENT_TO_SERVER, packets, complete)

    def server(self, *packets: bytes, complete: bool = True) -> Wire:
        """Packets from the server."""
        return self._feed(SERVER_TO_CLIENT, packets, complete)

    def wait(self, packets: int) -> Wire:
        """As if so many other packets had passed."""
        self._packet += packets
        return self

    def finish(self) -> Wire:
        """The capture ends."""
        self.decoder.finish(self.out)
        return self

    def _feed(self, direction: int, packets: tuple[bytes, ...], complete: bool) -> Wire:
        for content in packets:
            self._packet += 1
            data, size, number = b"noise" + content + b"noise", len(content), self._packet
            frame = Frame(
                number, direction, data, 5, 5 + size, self._at[direction], number, number, number * MS, complete
            )  # fmt: skip
            self._at[direction] += size
            self.decoder.feed([frame], self.out)
        return self

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The rows so far, only these columns."""
        places = [FIELDS[table].index(column) for column in columns]
        return [tuple(row[place] for place in places) for row in self.out.rows(table) or ()]

    def only(self, table: str, *columns: str) -> tuple[Any, ...]:
        """The one row of a table."""
        (row,) = self.rows(table, *columns)
        return row

    def codes(self) -> list[str]:
        """The codes of all remarks."""
        return [code for (code,) in self.rows("expert_infos", "code")]
