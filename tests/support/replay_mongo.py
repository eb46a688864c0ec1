"""MongoDB connections of any length from the bytes of lab captures, for `replay.py`.

In: lab captures. Out: connections that say what the lab's said, message for message, but for requestID and responseTo,
which rise by one. Left out: requests without reply, exhaust streams, large messages.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.support.lab_exchanges import Exchange, Frames, acked_ends, frames_of, initial_sequence, lab_streams
from tests.support.replay_wire import Client

SAMPLE_NAMES = {
    "mongo": ("mongo_healthy.pcapng", "mongo_shapes_and_errors.pcapng"),
    "mongo_compressed": ("mongo_compressed.pcapng",),
    "mongo_lossy": ("mongo_healthy.pcapng", "mongo_shapes_and_errors.pcapng"),
    "mongo_flows": ("mongo_healthy.pcapng", "mongo_shapes_and_errors.pcapng"),
}
PORTS = (27017, 27018)
LARGEST_BYTES = 4096
SCRIPT_EXCHANGES = 10
SHORT_COMMANDS = 3
REPLY_IDS_FROM = 1 << 30
OP_MSG, OP_COMPRESSED = 2013, 2012
_HEADER = struct.Struct("<iiii")

Script = list[Exchange]
ClientAt = Callable[[int, Iterable[Exchange]], Client]


def mongo_clients(samples: Iterable[Path], flows: int, client_at: ClientAt) -> list[Client]:
    """FLOWS connections, which take turns with the lab's connections."""
    return _clients(samples, flows, client_at, lambda _, script: itertools.cycle(script))


def steady_mongo_clients(samples: Iterable[Path], flows: int, client_at: ClientAt) -> list[Client]:
    """FLOWS connections that say hello once, as drivers do, and then commands without end."""
    return _clients(
        samples, flows, client_at, lambda _, script: itertools.chain(script[:1], itertools.cycle(script[1:]))
    )


def short_mongo_clients(samples: Iterable[Path], flows: int, client_at: ClientAt) -> list[Client]:
    """FLOWS connections of a hello and a few commands, from anywhere in the lab's connections."""
    return _clients(samples, flows, client_at, _some_commands)


def _some_commands(turn: int, script: Script) -> Script:
    hello, *commands = script
    start = turn * SHORT_COMMANDS % (len(commands) - SHORT_COMMANDS)
    return [hello, *commands[start : start + SHORT_COMMANDS]]


def _clients(
    samples: Iterable[Path], flows: int, client_at: ClientAt, said: Callable[[int, Script], Iterable[Exchange]]
) -> list[Client]:
    """said: what one of them says, by how often its script had its turn before."""
    scripts = [script for sample in samples for script in mongo_scripts(sample)]
    clients = []
    for index in range(flows):
        turn, number = divmod(index, len(scripts))
        made = client_at(index, said(turn, scripts[number]))
        clients.append(Client(made.address, made.port, made.exchanges, PORTS[0], numbered))
    return clients


def numbered(exchange: Exchange, number: int) -> tuple[bytes, bytes]:
    """Request and reply with a request id of their own."""
    return _with_ids(exchange.request, number, 0), _with_ids(exchange.response, REPLY_IDS_FROM + number, number)


def _with_ids(message: bytes, request_id: int, response_to: int) -> bytes:
    return message[:4] + struct.pack("<ii", request_id, response_to) + message[12:]


def mongo_scripts(sample: Path) -> Iterator[list[Exchange]]:
    """The usable exchanges of each connection that has enough of them."""
    for port in PORTS:
        for to_server, to_client in lab_streams(sample, port):
            client_isn, server_isn = initial_sequence(to_server), initial_sequence(to_client)
            requests, replies = frames_of(to_server, client_isn, _size), frames_of(to_client, server_isn, _size)
            acked = acked_ends(to_client, client_isn), acked_ends(to_server, server_isn)
            found = list(_exchanges(requests, replies, *acked))
            if len(found) >= SCRIPT_EXCHANGES:
                yield found


def _size(stream: bytes | bytearray, at: int) -> int:
    return int.from_bytes(stream[at : at + 4], "little")


def _exchanges(requests: Frames, replies: Frames, server_acked: set[int], client_acked: set[int]) -> Iterator[Exchange]:
    """Requests whose one reply is not the first of a stream of replies."""
    answers = {_HEADER.unpack_from(frame)[2]: place for place, frame in enumerate(replies.frames)}
    for end, asked_ns, request in zip(requests.ends, requests.times_ns, requests.frames, strict=True):
        _, request_id, _, opcode = _HEADER.unpack_from(request)
        place = answers.get(request_id)
        if place is None or opcode not in (OP_MSG, OP_COMPRESSED):
            continue
        reply = replies.frames[place]
        continued = _HEADER.unpack_from(reply)[1] in answers
        if not continued and max(len(request), len(reply)) <= LARGEST_BYTES:
            acks = end in server_acked, replies.ends[place] in client_acked
            yield Exchange(opcode, 0, request, reply, replies.times_ns[place] - asked_ns, *acks)
