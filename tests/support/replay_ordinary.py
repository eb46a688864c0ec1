"""Traffic as people have it, with one incident in it, for `replay.py`.

In: lab captures. Out: connections. Groups at work that fetch far more than they commit, and beat; producers; a few
clients of MQTT and applications of MongoDB. All of them do well. Beside them the lab's clients of the stale commit say
once what they said: a member whose generation is over writes its old offsets over those of others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import count, cycle
from pathlib import Path

from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.mqtt_encode import PUBACK, ack, connack, connect, publish
from tests.support.replay_bulk import make_batch
from tests.support.replay_groups import Member, fetches_of, requests_of
from tests.support.replay_mongo import mongo_clients
from tests.support.replay_wire import Client

INCIDENT, MONGO = "kafka_stale_commit.pcapng", "mongo_healthy.pcapng"
GROUPS, MEMBERS, PRODUCERS, SENSORS, APPLICATIONS = 4, 4, 6, 4, 4
COMMITS_FOR_A_BEAT = 1
# Most fetches wait for records; a group commits and beats every few seconds, which here are some tens of milliseconds.
FETCH_NS, PRODUCE_NS, MQTT_NS = 2_000_000, 4_000_000, 10_000_000
PARTITIONS = 4
MQTT_PORT = 1883
At = Callable[[int, Iterable[Exchange]], Client]


def ordinary_clients(samples: Path, client_at: At) -> list[Client]:
    """All connections; those of the incident end when all is said. samples: the folder of lab captures."""
    batch, records = make_batch(cycle([(b"key", b"value")]), batch_bytes=600, value_bytes=40)
    scripts: list[Iterator[Exchange]] = []
    for group in range(GROUPS):
        members = [Member(f"orders-{group}", f"orders-{group}", number) for number in range(MEMBERS)]
        for member in members:
            fetches = fetches_of(member, batch, records)
            scripts += [requests_of(member, members, COMMITS_FOR_A_BEAT), _lasting(fetches, FETCH_NS)]
    scripts += [_produces(number, batch, records) for number in range(PRODUCERS)]
    scripts += [iter(connection) for connection in lab_connections(samples / INCIDENT)]
    clients = [client_at(index, script) for index, script in enumerate(scripts)]
    for number in range(SENSORS):
        made = client_at(len(clients), _readings(number))
        clients.append(Client(made.address, made.port, made.exchanges, MQTT_PORT, _as_it_is))
    first = len(clients)
    clients += mongo_clients([samples / MONGO], APPLICATIONS, lambda index, script: client_at(first + index, script))
    return clients


def _lasting(exchanges: Iterator[Exchange], latency_ns: int) -> Iterator[Exchange]:
    return (exchange._replace(latency_ns=latency_ns) for exchange in exchanges)


def _as_it_is(exchange: Exchange, _: int) -> tuple[bytes, bytes]:
    return exchange.request, exchange.response


def _produces(number: int, batch: bytes, records: int) -> Iterator[Exchange]:
    """Produce 8 with acks -1: a small batch for each partition."""
    name, topic = f"shop-{number}".encode(), f"clicks-{number}".encode()
    of_topic = struct.pack(">ih", 1, len(topic)) + topic + struct.pack(">i", PARTITIONS)
    head = struct.pack(">hhih", 0, 8, 0, len(name)) + name + struct.pack(">hhi", -1, -1, 30_000) + of_topic
    body = b"".join(struct.pack(">ii", partition, len(batch)) + batch for partition in range(PARTITIONS))
    request = struct.pack(">i", len(head) + len(body)) + head + body
    for offset in count(0, records):
        taken = (struct.pack(">ihqqqih", one, 0, offset, -1, 0, 0, -1) for one in range(PARTITIONS))
        answer = struct.pack(">i", 0) + of_topic + b"".join(taken) + struct.pack(">i", 0)
        yield Exchange(0, 8, request, struct.pack(">i", len(answer)) + answer, PRODUCE_NS, True, True)


def _readings(number: int) -> Iterator[Exchange]:
    """A client of MQTT 3.1.1 connects and publishes with QoS 1."""
    yield _mqtt(connect(4, f"sensor-{number}"), connack())
    for reading in count():
        identifier = reading % 65_535 + 1
        sent = publish(f"plant/{number}/temperature", b'{"value":%d}' % (reading % 90), 1, identifier)
        yield _mqtt(sent, ack(PUBACK, identifier))


def _mqtt(request: bytes, response: bytes) -> Exchange:
    return Exchange(0, 0, request, response, MQTT_NS, True, True)
