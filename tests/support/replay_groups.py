"""Consumer groups at work: what rules and their context cost beside decoding.

    python -m tests.support.replay --profile hot_group --packets 2000000 --out hot.pcap
    python -m tests.support.replay --profile groups --flows 20000 --packets 1 --out groups.pcap

In: a number of groups and of members. Out: for each connection its exchanges. A member has two connections, as the Java
client has: one joins, beats and commits, the other one fetches a few records from each of its partitions. What is
committed is what was fetched. Nothing is wrong in such a group: its rules have to look and to find nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count, cycle

from tests.support.lab_exchanges import Exchange
from tests.support.replay_bulk import make_batch
from tests.support.replay_wire import Client

CLIENT_PORTS = 25_000
LATENCY_NS = 20_000_000
PARTITIONS_OF_MEMBER = 4
# A heartbeat among so many commits: every three seconds where commits come every 20 ms would be fewer still.
COMMITS_FOR_A_BEAT = 20
GENERATION = 3


class Member:
    """One member: where it is in its partitions. number: its place in the group."""

    def __init__(self, group: str, topic: str, number: int) -> None:
        self.group, self.topic = group, topic
        self.client_id = f"{group}-{number}"
        self.id = f"{self.client_id}-4b7c1f0e-0000-4000-8000-{number:012}"
        self.partitions = range(number * PARTITIONS_OF_MEMBER, (number + 1) * PARTITIONS_OF_MEMBER)
        self.position = 0


def group_clients(groups: int, members: int) -> list[Client]:
    """The connections of all members, two for each, from eight hosts in each of several networks."""
    batch, records = make_batch(cycle([(b"key", b"value")]), batch_bytes=600, value_bytes=40)
    made: list[Client] = []
    for index in range(groups):
        everybody = [Member(f"group-{index}", f"topic-{index}", number) for number in range(members)]
        for member in everybody:
            network, place = divmod(len(made), CLIENT_PORTS)
            address = bytes((10, 77, network, 11 + place // 2 % 8))
            scripts = requests_of(member, everybody), fetches_of(member, batch, records)
            made += [Client(address, 40_000 + place + number, script) for number, script in enumerate(scripts)]
    return made


def requests_of(
    member: Member, everybody: list[Member], commits_for_a_beat: int = COMMITS_FOR_A_BEAT
) -> Iterator[Exchange]:
    """JoinGroup 4, SyncGroup 2, then OffsetCommit 7 and Heartbeat 3 without end."""
    joined = _text(member.group) + struct.pack(">i", GENERATION) + _text(member.id)
    who = joined + _text(None)
    is_leader = member is everybody[0]
    yield _join(member, everybody, is_leader)
    plan = [_text(one.id) + _bytes(_assignment(one)) for one in everybody] if is_leader else []
    yield _exchange(member, 14, 2, joined + _list(plan), struct.pack(">ih", 0, 0) + _bytes(_assignment(member)))
    for number in count(1):
        offsets = [struct.pack(">iqi", one, member.position, -1) + _text("") for one in member.partitions]
        taken = [struct.pack(">ih", one, 0) for one in member.partitions]
        yield _exchange(
            member, 8, 7, who + _list([_text(member.topic) + _list(offsets)]),
            struct.pack(">i", 0) + _list([_text(member.topic) + _list(taken)]),
        )  # fmt: skip
        if number % commits_for_a_beat == 0:
            yield _exchange(member, 12, 3, who, struct.pack(">ih", 0, 0))


def fetches_of(member: Member, batch: bytes, records: int) -> Iterator[Exchange]:
    """Fetch 11 without a session; each answer has one batch of each partition."""
    head = struct.pack(">iiiibii", -1, 500, 1, 50 << 20, 0, 0, -1)
    while True:
        offset = member.position
        asked = [struct.pack(">iiqqi", one, -1, offset, -1, 1 << 20) for one in member.partitions]
        end, data = offset + records, offset.to_bytes(8, "big") + batch[8:]
        got = [struct.pack(">ihqqqii", one, 0, end, end, 0, -1, -1) + _bytes(data) for one in member.partitions]
        yield _exchange(
            member, 1, 11, head + _list([_text(member.topic) + _list(asked)]) + _list([]) + _text(""),
            struct.pack(">ihi", 0, 0, 0) + _list([_text(member.topic) + _list(got)]),
        )  # fmt: skip
        member.position = end


def _join(member: Member, everybody: list[Member], is_leader: bool) -> Exchange:
    about = struct.pack(">h", 0) + _list([_text(member.topic)]) + _bytes(b"")
    asked = (
        _text(member.group) + struct.pack(">ii", 45_000, 300_000) + _text(member.id)
        + _text("consumer") + _list([_text("range") + _bytes(about)])
    )  # fmt: skip
    told = [_text(one.id) + _bytes(about) for one in everybody] if is_leader else []
    names = _text("range") + _text(everybody[0].id) + _text(member.id)
    return _exchange(member, 11, 4, asked, struct.pack(">ihi", 0, 0, GENERATION) + names + _list(told))


def _assignment(member: Member) -> bytes:
    partitions = _list([struct.pack(">i", one) for one in member.partitions])
    return struct.pack(">h", 0) + _list([_text(member.topic) + partitions]) + _bytes(b"")


def _text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def _bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _list(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def _exchange(member: Member, api_key: int, api_version: int, request: bytes, body: bytes) -> Exchange:
    asked = struct.pack(">hhi", api_key, api_version, 0) + _text(member.client_id) + request
    answered = struct.pack(">i", 0) + body
    return Exchange(api_key, api_version, _bytes(asked), _bytes(answered), LATENCY_NS, True, True)
