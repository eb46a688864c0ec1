"""The search for deliveries: what happened at MQTT servers passes through them, and what they find goes into tables.

In: a connection for `events_of_servers`. Out: tables of FOUND in it. Rows leave servers as they become certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base.collector import collector_paused
from wirewitness.analyser.mqtt.facts.deliveries import Server
from wirewitness.analyser.mqtt.facts.events import (
    BATCH_ROWS,
    CONNECTED,
    DELIVERED,
    ENDED,
    KIND,
    PUBLISHED,
    SUBSCRIBED,
    UNSUBSCRIBED,
    Event,
    events_of_servers,
)
from wirewitness.analyser.mqtt.facts.memory import Memory
from wirewitness.analyser.mqtt.facts.messages import Integers, Message
from wirewitness.analyser.mqtt.facts.publishes_without_subscriber import MESSAGE_COLUMNS, Unheard
from wirewitness.analyser.mqtt.facts.sessions import Connect

# Rows of one server that wait to be handed over: there may be many servers.
_SERVER_ROWS = 1_024

_NUMBER, _TEXT = pa.int64(), pa.string()
_MESSAGE, _SUBSCRIBER = ("message", _NUMBER), ("subscriber", _NUMBER)
_SERVER, _PORTS = ("server", _TEXT), [("near_port", _NUMBER), ("far_port", _NUMBER)]
# In the order of `messages.py` and of `Absence`; servers behind that.
FOUND: Mapping[str, pa.Schema] = {
    "context_deliveries": pa.schema(
        [
            *(_MESSAGE, _SUBSCRIBER, ("share_name", _TEXT), ("topic_filter", _TEXT), ("status", _TEXT)),
            *(("got", _NUMBER), ("got_ns", _NUMBER), ("waited_ns", _NUMBER), *_PORTS),
            *(("members", pa.list_(_NUMBER)), _SERVER),
        ]
    ),
    "context_absences": pa.schema(
        [
            *(("flow", _NUMBER), ("next_flow", _NUMBER), ("client_id", _TEXT), ("left_ns", _NUMBER)),
            *(("back_ns", _NUMBER), ("session_present", pa.bool_()), ("messages", _NUMBER), ("expired", _NUMBER)),
            *(("qos_0_subscription", _NUMBER), ("qos_0_publish", _NUMBER)),
            *(("complete", pa.bool_()), ("first_message", _NUMBER), ("last_message", _NUMBER)),
            ("topics", pa.list_(_TEXT)),
        ]
    ),
    "context_counts": pa.schema([_MESSAGE, ("expected", _NUMBER), ("delivered", _NUMBER)]),
    "context_unheard": pa.schema([_MESSAGE]),
    "context_copies": pa.schema([_MESSAGE, _SUBSCRIBER]),
    "context_joined": pa.schema([_SERVER, *_PORTS]),
    "context_sessions": pa.schema(
        [
            *(("flow", _NUMBER), ("last_flow", _NUMBER), ("from_ns", _NUMBER), ("until_ns", _NUMBER)),
            *(("left_ns", _NUMBER), ("started_by", _TEXT), ("ended_by", _TEXT), ("connections", _NUMBER)),
            ("resumed", _NUMBER),
        ]
    ),
    "context_active": pa.schema(
        [("subscription", _NUMBER), ("session", _NUMBER), ("until_ns", _NUMBER), ("ended_by", _TEXT)]
    ),
}


def search(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of FOUND."""
    found = _Found(con)
    servers: dict[str, Server] = {}
    memory = Memory()
    with collector_paused():
        for address, events in events_of_servers(con):
            server = servers.get(address)
            if server is None:
                server = servers[address] = Server(memory=memory)
            if isinstance(events, Unheard):
                server.published_unheard(events)
            else:
                for event in events:
                    _TAKE[event[KIND]](server, event)
                    if memory.has_let_go:
                        found.take_all(servers, memory)
                    elif len(server.told.rows) >= _SERVER_ROWS:
                        found.take(address, server)
            if memory.has_let_go:
                found.take_all(servers, memory)
            elif len(server.told) >= _SERVER_ROWS:
                found.take(address, server)
    ends_ns = con.execute("SELECT max(epoch_ns(ts_last)) FROM flows").fetchall()[0][0]
    for address, server in servers.items():
        server.finish(server.now_ns if ends_ns is None else ends_ns)
        found.take(address, server)
        found.joined(address, server)
    found.end()


class _Found:
    """The tables of FOUND, to which rows are added."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._tables = {name: _Rows(con, name, schema) for name, schema in FOUND.items()}

    def take(self, address: str, server: Server) -> None:
        """What a server told so far."""
        told = server.told
        self._tables["context_deliveries"].add([(*row, address) for row in told.rows])
        self._tables["context_counts"].add(told.counts)
        self._tables["context_absences"].add(told.absences)
        self._tables["context_copies"].add(told.copies)
        self._tables["context_sessions"].add(told.sessions)
        self._tables["context_active"].add(told.subscriptions)
        for rows in told.unheard:
            self._tables["context_unheard"].add_numbers(rows)
        told.clear()

    def take_all(self, servers: Mapping[str, Server], memory: Memory) -> None:
        """What all servers told so far: any of them may have let go of all that waited."""
        memory.has_let_go = False
        for address, server in servers.items():
            self.take(address, server)

    def joined(self, address: str, server: Server) -> None:
        """Ports of a server that are of one."""
        self._tables["context_joined"].add([(address, *ports) for ports in server.joined_ports])

    def end(self) -> None:
        """All rows were told."""
        for rows in self._tables.values():
            rows.flush()


class _Rows:
    """A table in DuckDB that rows are appended to, a batch at a time."""

    def __init__(self, con: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
        # A cursor of its own: the connection itself is still reading events.
        self._con = con.cursor()
        self._name = name
        self._schema = schema
        self._held: list[tuple[Any, ...]] = []
        self._numbers: list[Integers] = []
        self._con.register("columns_of", schema.empty_table())
        self._con.execute(f"CREATE TABLE {name} AS FROM columns_of")

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._held += rows
        if len(self._held) >= BATCH_ROWS:
            self.flush()

    def add_numbers(self, rows: Integers) -> None:
        """Rows of a table of one column."""
        self._numbers.append(rows)
        if sum(map(len, self._numbers)) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        columns: Iterable[Any] = zip(*self._held, strict=True)
        if self._numbers:
            columns = [np.concatenate(self._numbers)]
        elif not self._held:
            return
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._con.register("held", pa.table(arrays, schema=self._schema))
        self._con.execute(f"INSERT INTO {self._name} FROM held")
        self._con.unregister("held")
        self._held, self._numbers = [], []


def _published(server: Server, event: Event) -> None:
    server.published(Message(*event[:_MESSAGE_END]))


def _delivered(server: Server, event: Event) -> None:
    server.delivered(Message(*event[:_MESSAGE_END]))


def _connected(server: Server, event: Event) -> None:
    _, flow, port, now_ns, client, _, session_present, clean, _, lasts_ns, *_ = event
    server.connected(flow, port, client, Connect(session_present, clean, lasts_ns), now_ns)


def _subscribed(server: Server, event: Event) -> None:
    row, flow, _, now_ns, name, _, no_local, retain_as_published, qos, _, share_name, _ = event
    if name is None:
        server.subscribed_unknown()
    else:
        kind = bool(no_local), bool(retain_as_published), int(qos or 0)
        server.subscribed(flow, name, share_name, *kind, row, now_ns)


def _unsubscribed(server: Server, event: Event) -> None:
    _, flow, _, now_ns, name, _, _, _, _, _, share_name, _ = event
    server.unsubscribed(flow, name, share_name, now_ns)


def _ended(server: Server, event: Event) -> None:
    _, flow, _, now_ns, *_ = event
    server.ended(flow, now_ns)


_MESSAGE_END = len(MESSAGE_COLUMNS)
_TAKE: Mapping[int, Callable[[Server, Event], None]] = {
    CONNECTED: _connected,
    SUBSCRIBED: _subscribed,
    PUBLISHED: _published,
    DELIVERED: _delivered,
    UNSUBSCRIBED: _unsubscribed,
    ENDED: _ended,
}
