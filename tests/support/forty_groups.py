"""Forty Kafka groups over three days, of which four do something that is hard to draw right; made without the product.

    python -m tests.support.forty_groups OUT

Every group has a member, a topic of one partition, and a probe that reads what the end of its log is. Each hour the
log grows by ten, and the member commits its end. But:

- STOPPED does nothing from the hour STOPPED_AT on, while its log grows;
- TWO_WRITERS has for four seconds two writers who take turns every 50 ms: the end of the log, and 5;
- SAME_MS has two commits answered within one ms, on two connections: the one that was asked first is answered last;
- between the hours GAP nobody says anything.

In: nothing. Out: a pcap file with ns.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.support.lab_exchanges import Exchange
from tests.support.packets import Captured, pcap
from tests.support.replay_groups import GENERATION, Member, _exchange, _list, _text, requests_of
from tests.support.wire import Talk

START_NS = int(datetime(2026, 11, 18, 22, 30, tzinfo=UTC).timestamp()) * 1_000_000_000
SECOND_NS, MS_NS = 1_000_000_000, 1_000_000
HOUR_NS = 3_600 * SECOND_NS
HOURS, GAP = 72, range(40, 52)
GROUPS, GROWS_BY = 40, 10
STOPPED, STOPPED_AT = 13, 20
TWO_WRITERS, WRITTEN_AT, TURNS, TURN_NS, OLD = 7, 30, 80, 50 * MS_NS, 5
SAME_MS, ANSWERED_AT, LAST_OF_BROKER, FIRST_OF_BROKER = 21, 66, 111, 222


class Connection:
    """One TCP connection whose exchanges happen when told."""

    def __init__(self, number: int) -> None:
        address = f"10.77.{number // 200}.{11 + number % 200}"
        self.talk = Talk(client=(address, 40_000 + number), server=("10.77.9.2", 9092), ts_ns=START_NS)
        self.talk.handshake()
        self.sent = [0, 0]
        self.asked = 0

    def say(self, asked_ns: int, exchange: Exchange, answered_ns: int | None = None) -> None:
        """A request and its answer, 20 ms later if not told otherwise; in the order of the requests."""
        self.asked += 1
        number = struct.pack(">i", self.asked)
        request = exchange.request[:8] + number + exchange.request[12:]
        response = exchange.response[:4] + number + exchange.response[8:]
        for from_client, at_ns, data in (
            (True, asked_ns, request), (False, answered_ns or asked_ns + 20 * MS_NS, response)
        ):  # fmt: skip
            self.talk.ts_ns = at_ns
            self.talk.send(from_client, self.sent[from_client], data, ack=self.sent[not from_client])
            self.sent[from_client] += len(data)


def name_of(number: int) -> str:
    """Of a group."""
    return f"group-{number:02}"


def topic_of(number: int) -> str:
    """Of the group's topic."""
    return f"topic-{number:02}"


def log_end(hour: int) -> int:
    """Where every log ends then."""
    return GROWS_BY * (hour + 1)


def packets() -> list[Captured]:
    """In the order of time."""
    talks: list[Talk] = []
    for number in range(GROUPS):
        talks += [one.talk for one in _group(number)]
    return sorted((packet for talk in talks for packet in talk.packets), key=lambda packet: packet.ts_ns)


def write(path: Path) -> Path:
    """The file."""
    path.write_bytes(pcap(packets(), nanoseconds=True))
    return path


def _group(number: int) -> Iterable[Connection]:
    member = _Member(number)
    own, probe, other = (Connection(3 * number + place) for place in range(3))
    joining = requests_of(member, [member])
    begin = START_NS + number * SECOND_NS
    own.say(begin + SECOND_NS, next(joining))
    own.say(begin + 2 * SECOND_NS, next(joining))
    for hour in range(HOURS):
        if hour in GAP:
            continue
        at_ns = begin + hour * HOUR_NS + 60 * SECOND_NS
        probe.say(at_ns, _end_told(member, log_end(hour)))
        if number == STOPPED and hour >= STOPPED_AT:
            continue
        if number == TWO_WRITERS and hour == WRITTEN_AT:
            _take_turns(at_ns + SECOND_NS, (own, other), member, log_end(hour))
        if number == SAME_MS and hour == ANSWERED_AT:
            _answered_together(at_ns + SECOND_NS, (own, other), member)
        else:
            own.say(at_ns + 10 * SECOND_NS, _commit(member, log_end(hour)))
    return own, probe, other


def _take_turns(at_ns: int, writers: tuple[Connection, Connection], member: Member, end: int) -> None:
    for turn in range(TURNS):
        writers[turn % 2].say(at_ns + turn * TURN_NS, _commit(member, OLD if turn % 2 else end))


def _answered_together(at_ns: int, writers: tuple[Connection, Connection], member: Member) -> None:
    """Both are answered within 0.3 ms."""
    first, second = writers
    first.say(at_ns, _commit(member, LAST_OF_BROKER), at_ns + 5 * MS_NS + MS_NS * 3 // 10)
    second.say(at_ns + MS_NS, _commit(member, FIRST_OF_BROKER), at_ns + 5 * MS_NS)


class _Member(Member):
    """The one member of a group; it has partition 0."""

    def __init__(self, number: int) -> None:
        super().__init__(name_of(number), topic_of(number), 0)
        self.partitions = range(1)


def _commit(member: Member, offset: int) -> Exchange:
    """OffsetCommit 7."""
    asked = struct.pack(">iqi", 0, offset, -1) + _text("")
    who = _text(member.group) + struct.pack(">i", GENERATION) + _text(member.id) + _text(None)
    return _exchange(
        member, 8, 7, who + _list([_text(member.topic) + _list([asked])]),
        struct.pack(">i", 0) + _list([_text(member.topic) + _list([struct.pack(">ih", 0, 0)])]),
    )  # fmt: skip


def _end_told(member: Member, end: int) -> Exchange:
    """ListOffsets 2 for the end of the log."""
    asked = struct.pack(">iq", 0, -1)
    told = struct.pack(">ihqq", 0, 0, -1, end)
    return _exchange(
        member, 2, 2, struct.pack(">ib", -1, 0) + _list([_text(member.topic) + _list([asked])]),
        struct.pack(">i", 0) + _list([_text(member.topic) + _list([told])]),
    )  # fmt: skip


if __name__ == "__main__":
    write(Path(sys.argv[1]))
