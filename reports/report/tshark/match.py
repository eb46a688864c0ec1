"""Finds the same message on both sides.

In: messages of both sides, each in the order of packets. Out: pairs, and messages that only one side has. A message is
found by its stream, size and number, in the same packet or, where segments came out of order, in a later one of
tshark's. What is then left in one packet and direction is paired in order, so that a difference in size or number shows
as one. Both sides are held for WINDOW packets at most.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import duckdb

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.report.tshark.message import Endpoint, Flow, Key, Ours, Theirs
from wirewitness.reports.report.tshark.protocols import COMPARED

# Our tables to messages: one query for each capture file, its rows in the order of the packets.
#
# In: an analysis that holds TABLES. Out: messages of the compared protocols with the values that tshark shows too.

TABLES = (
    "captures",
    "flows",
    "messages",
    "exchanges",
    *(table for compared in COMPARED.values() for table in compared.tables),
)
BATCH_ROWS = 1 << 13


class FlowState(NamedTuple):
    """What of a flow can explain a difference."""

    gap: bool = False
    midstream: bool = False
    encrypted: bool = False


def continued_flows(tables: Tables, file: str) -> frozenset[frozenset[Endpoint]]:
    """Endpoints of flows with messages in a file that began before its first packet; none of the first file."""
    query = f"""
        select distinct client_address, client_port, server_address, server_port
        from flows semi join (select flow_id from messages where file = {literal(file)}) using (flow_id)
        where ts_first < (select min(ts_first) from captures where file = {literal(file)})"""
    return frozenset(
        frozenset(((row[0], row[1]), (row[2], row[3]))) for row in tables.connection.execute(query).fetchall()
    )


class Tables(Protocol):
    """The part of `analyser.Analysis` that is used here."""

    options: ReadOptions

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection with a view of every table."""
        ...


_MESSAGES = """
    select m.packet_last, m.protocol, m.src_address, m.src_port, m.dst_address, m.dst_port, m.length_bytes,
           m.correlation_id, m.operation, m.role, m.version, m.message_id, m.flow_id, m.complete, m.error, m.client_id,
           f.carrier,
           f.out_of_order_segments + f.retransmitted_segments > 0 as disorder,
           a.exchange_id is not null as answers, a.request_packet, q.correlation_id as request_number,
           coalesce(a.error_code, 0) as error_code, a.error_code is not null as error_known,
           {columns}
    from messages m join flows f using (flow_id)
    left join exchanges r on r.request_message_id = m.message_id
    left join exchanges a on a.response_message_id = m.message_id and a.request_message_id is not null
        -- Of the two that a CONNACK may answer, CONNECT and AUTH (MQTT 5.0, 4.12), CONNECT counts.
        and not (m.operation = 'CONNACK' and coalesce(a.operation = 'AUTH', false))
    left join messages q on q.message_id = a.request_message_id
    {joins}
    where {condition}
    order by m.packet_last, m.stream_offset"""


def files(tables: Tables) -> list[str]:
    """The files in which messages end."""
    condition = _selected(tables.options)
    query = f"select distinct m.file from messages m where {condition} order by 1"
    return [str(row[0]) for row in tables.connection.execute(query).fetchall()]


class Ports(NamedTuple):
    """Server port -> protocol, for tshark; ports on which several protocols are spoken, which it cannot be told; and
    those on which they are spoken inside TLS."""

    protocol_of: dict[int, str]
    shared: frozenset[int]
    encrypted: frozenset[int]


def server_ports(tables: Tables, file: str) -> Ports:
    """The ports of flows with messages in a file; of a shared one the protocol of most messages."""
    names = ", ".join(map(literal, COMPARED))
    query = f"""
        select f.server_port, f.protocol, bool_or(f.encrypted), count(*) as n
        from flows f join messages m using (flow_id)
        where m.file = {literal(file)} and f.protocol in ({names}) and f.server_port is not null
              and (f.carrier is null or f.encrypted)
        group by f.server_port, f.protocol order by n, f.protocol"""
    rows = tables.connection.execute(query).fetchall()
    counts = Counter(int(port) for port, *_ in rows)
    shared = frozenset(port for port, protocols in counts.items() if protocols > 1)
    encrypted = frozenset(int(port) for port, _, is_encrypted, _ in rows if is_encrypted)
    return Ports({int(port): str(protocol) for port, protocol, *_ in rows}, shared, encrypted)


def odd_flows(tables: Tables) -> dict[frozenset[Endpoint], FlowState]:
    """Flows that have gaps, began before the capture or are encrypted, by their endpoints."""
    query = """
        select client_address, client_port, server_address, server_port, max(gap_bytes) > 0,
               not bool_and(handshake_seen), bool_or(encrypted)
        from flows where gap_bytes > 0 or not handshake_seen or encrypted group by 1, 2, 3, 4"""
    return {
        frozenset(((row[0], row[1]), (row[2], row[3]))): FlowState(*row[4:])
        for row in tables.connection.execute(query).fetchall()
    }


def messages(tables: Tables, file: str) -> Iterator[Ours]:
    """The messages that end in a file, by packet and place in the stream; memory stays within DuckDB's limit."""
    condition = f"m.file = {literal(file)} and {_selected(tables.options)}"
    compared = COMPARED.values()
    columns = ", ".join(column for one in compared for column in one.columns)
    joins = "\n    ".join(one.joins.strip() for one in compared)
    subqueries = ",".join(subquery for one in compared for subquery in one.subqueries)
    query = f"with {subqueries} {_MESSAGES.format(columns=columns, joins=joins, condition=condition)}"
    reader = tables.connection.sql(query).to_arrow_reader(BATCH_ROWS)
    for batch in reader:
        for row in batch.to_pylist():
            yield _made(row)


def _selected(options: ReadOptions) -> str:
    wanted = [name for name in COMPARED if not options.protocols or name in options.protocols]
    conditions = [f"m.protocol in ({', '.join(map(literal, wanted)) or 'null'})"]
    if options.from_ns is not None:
        conditions.append(f"epoch_ns(m.ts) >= {options.from_ns}")
    if options.to_ns is not None:
        conditions.append(f"epoch_ns(m.ts) < {options.to_ns}")
    return " and ".join(conditions)


def _made(row: dict[str, Any]) -> Ours:
    protocol, number = row["protocol"], row["correlation_id"]
    operation = row["operation"]
    known = (operation, number) if COMPARED[protocol].by_operation else number
    key = Key(
        protocol,
        (row["src_address"], row["src_port"]),
        (row["dst_address"], row["dst_port"]),
        row["length_bytes"],
        known,
    )
    values = {"length_bytes": row["length_bytes"], "number": number, **COMPARED[protocol].values(row)}
    flow = Flow(bool(row["disorder"]), row["carrier"])
    return Ours(
        row["packet_last"],
        key,
        operation,
        row["role"],
        row["version"],
        {name: value for name, value in values.items() if value is not None or name in _MAY_BE_NULL},
        row["message_id"],
        row["flow_id"],
        flow,
        not row["complete"],
        row["error"],
    )


_MAY_BE_NULL = frozenset({"client_id"})


# tshark names the packet that closes a gap before a message, we the one with its last bytes: so far apart at most.
WINDOW = 4096
HELD = 1 << 16


class Pair(NamedTuple):
    """A message on both sides, or None on the side that has none."""

    ours: Ours | None
    theirs: Theirs | None


class _Waiting:
    """Messages of one side that wait for the other's: by their place in the order of coming, and by key."""

    def __init__(self) -> None:
        self._by_place: OrderedDict[int, Any] = OrderedDict()
        self._by_key: dict[Key, deque[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._by_place)

    def add(self, message: Any) -> None:
        self._by_place[self._count] = message
        self._by_key.setdefault(message.key, deque()).append(self._count)
        self._count += 1

    def take(self, key: Key, packet: int) -> Any:
        """The message of that key that ends in this packet, else the first one that can have come late, or None."""
        places = self._by_key.get(key, ())
        found = next((place for place in places if self._by_place[place].packet == packet), None)
        if found is None:
            found = next((place for place in places if _can_be_late(self._by_place[place])), None)
        return None if found is None else self._remove(found)

    def before(self, packet: int, most: int) -> Iterator[Any]:
        """Takes out the messages of earlier packets, and the first ones as long as more than `most` are held."""
        while self._by_place:
            place, message = next(iter(self._by_place.items()))
            if message.packet >= packet and len(self._by_place) <= most:
                return
            yield self._remove(place)

    def _remove(self, place: int) -> Any:
        message = self._by_place.pop(place)
        places = self._by_key[message.key]
        places.remove(place)
        if not places:
            del self._by_key[message.key]
        return message


def matched(ours: Iterable[Ours], theirs: Iterable[Theirs]) -> Iterator[Pair]:
    """Pairs in about the order of packets; every message of both sides is in exactly one."""
    waiting, waiting_there = _Waiting(), _Waiting()
    for packet, one, other in _merged(iter(ours), iter(theirs)):
        if one is not None:
            found = waiting_there.take(one.key, packet)
            if found is not None:
                yield Pair(one, found)
            else:
                waiting.add(one)
        if other is not None:
            found = waiting.take(other.key, packet)
            if found is not None:
                yield Pair(found, other)
            else:
                waiting_there.add(other)
        yield from _left(waiting, waiting_there, packet - WINDOW, HELD)
    yield from _left(waiting, waiting_there, 1 << 62, 0)


def _merged(ours: Iterator[Ours], theirs: Iterator[Theirs]) -> Iterator[tuple[int, Ours | None, Theirs | None]]:
    """Messages of both sides in the order of packets."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.packet <= other.packet):
            assert one is not None
            yield one.packet, one, None
            one = next(ours, None)
        else:
            yield other.packet, None, other
            other = next(theirs, None)


def _left(waiting: _Waiting, waiting_there: _Waiting, packet: int, most: int) -> Iterator[Pair]:
    """What found no partner within the window: paired by packet and direction where that is possible."""
    mine, others = list(waiting.before(packet, most)), list(waiting_there.before(packet, most))
    places: dict[Any, deque[Theirs]] = {}
    for other in others:
        places.setdefault(_place(other), deque()).append(other)
    for one in mine:
        same = places.get(_place(one))
        yield Pair(one, same.popleft() if same and not one.cut else None)
    for rest in places.values():
        yield from (Pair(None, other) for other in rest)


def _can_be_late(message: Ours | Theirs) -> bool:
    """Whether tshark may show it with a later packet: one of ours, of a stream with disorder."""
    return isinstance(message, Ours) and message.flow.disorder


def _place(message: Ours | Theirs) -> tuple[Any, ...]:
    return message.packet, message.key.protocol, message.key.sender, message.key.receiver
