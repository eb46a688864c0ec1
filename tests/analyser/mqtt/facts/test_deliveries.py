"""Deliveries: what a server got and sent, in order, and who must have got it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.mqtt.facts.deliveries import (
    ALLOWED_STEPS,
    STEPS_OF_A_MESSAGE,
    STEPS_OF_A_TARGET,
    WINDOW_NS,
    Server,
)
from wirewitness.analyser.mqtt.facts.memory import Memory
from wirewitness.analyser.mqtt.facts.messages import Counts, Message
from wirewitness.analyser.mqtt.facts.publishes_without_subscriber import MESSAGE_COLUMNS, Unheard
from wirewitness.analyser.mqtt.facts.sessions import NEVER, Connect

S = 1_000_000_000
PORT = 1883


class World:
    """Calls a server's methods with less ceremony; times are seconds."""

    def __init__(self, **options: int) -> None:
        self.server = Server(**options)
        self.sent = 0

    def connect(self, flow: str, at: float = 0, client: str | None = None, present: bool = False, port: int = PORT):
        self.server.connected(flow, port, client or flow, Connect(present, False, NEVER), int(at * S))

    def subscribe(self, flow: str, topic_filter: str, share: str | None = None, no_local=False, rap=False) -> None:
        self.server.subscribed(flow, topic_filter, share, no_local, rap)

    def _message(self, flow: str, at: float, topic: str, body: str, retain: bool, dup: bool, port: int) -> Message:
        self.sent += 1
        name = f"{flow}-{self.sent}"
        return Message(name, flow, port, int(at * S), topic, (topic, body), retain, dup)

    def publish(self, flow: str, at: float, topic: str, body: str = "x", port: int = PORT) -> str:
        message = self._message(flow, at, topic, body, False, False, port)
        self.server.published(message)
        return message.row

    def deliver(self, flow: str, at: float, topic: str, body="x", retain=False, dup=False, port: int = PORT) -> None:
        self.server.delivered(self._message(flow, at, topic, body, retain, dup, port))

    def result(self, at: float = 1000) -> list[tuple[str, str | None, str]]:
        """(publish, subscriber's flow or share name, status), in order."""
        self.server.finish(int(at * S))
        return [(row.message, row.subscriber or row.share_name, row.status) for row in self.server.told.rows]


@pytest.fixture
def world() -> World:
    made = World()
    for flow in ("pub", "sub", "other"):
        made.connect(flow)
    return made


def test_a_matching_publish_is_delivered_with_its_latency(world: World) -> None:
    world.subscribe("sub", "room/+/heat")
    sent = world.publish("pub", 1, "room/7/heat")
    world.deliver("sub", 1.25, "room/7/heat")
    assert world.result() == [(sent, "sub", "delivered")]
    (row,) = world.server.told.rows
    assert (row.waited_ns, row.topic_filter, row.near_port) == (S // 4, "room/+/heat", None)
    assert world.server.told.counts == [(sent, 1, 1)]


def test_nobody_is_waited_for_without_a_subscription(world: World) -> None:
    world.subscribe("sub", "other/topic")
    sent = world.publish("pub", 1, "room/7/heat")
    assert world.result() == []
    assert world.server.told.counts == [(sent, 0, 0)]


def test_what_the_server_keeps_to_itself_is_missing(world: World) -> None:
    world.subscribe("sub", "#")
    first, second = world.publish("pub", 1, "a", "one"), world.publish("pub", 2, "a", "two")
    world.deliver("sub", 2.1, "a", "two")
    assert world.result(50) == [(second, "sub", "delivered"), (first, "sub", "missing")]
    assert world.server.told.rows[1].waited_ns == 49 * S


def test_equal_messages_are_delivered_in_their_order(world: World) -> None:
    world.subscribe("sub", "a")
    sent = [world.publish("pub", at, "a") for at in (1, 2, 3)]
    for at in (1.5, 2.5):
        world.deliver("sub", at, "a")
    assert world.result() == [
        (sent[0], "sub", "delivered"),
        (sent[1], "sub", "delivered"),
        (sent[2], "sub", "missing"),
    ]


def test_equal_messages_before_the_subscription_are_not_its(world: World) -> None:
    world.publish("pub", 1, "a")
    world.subscribe("sub", "a")
    sent = world.publish("pub", 2, "a")
    world.deliver("sub", 2.5, "a")
    assert world.result() == [(sent, "sub", "delivered")]


def test_one_member_of_a_shared_subscription_is_enough(world: World) -> None:
    world.subscribe("sub", "jobs", share="workers")
    world.subscribe("other", "jobs", share="workers")
    first, second = world.publish("pub", 1, "jobs", "1"), world.publish("pub", 2, "jobs", "2")
    world.deliver("other", 1.1, "jobs", "1")
    assert world.result() == [(first, "other", "delivered"), (second, "workers", "missing")]
    assert world.server.told.counts == [(first, 1, 1), (second, 1, 0)]


def test_a_shared_subscription_whose_members_left_is_not_missing(world: World) -> None:
    world.subscribe("sub", "jobs", share="workers")
    world.subscribe("other", "jobs", share="workers")
    sent = world.publish("pub", 1, "jobs")
    world.server.ended("sub", 2 * S)
    world.server.unsubscribed("other", "jobs", "workers", 3 * S)
    assert world.result() == [(sent, "workers", "left")]


def test_a_subscriber_that_left_is_not_missing(world: World) -> None:
    world.subscribe("sub", "a")
    sent = world.publish("pub", 1, "a")
    world.server.ended("sub", int(1.2 * S))
    assert world.result() == [(sent, "sub", "left")]
    assert world.server.told.rows[0].waited_ns == S // 5


def test_after_unsubscribe_nothing_is_expected(world: World) -> None:
    world.subscribe("sub", "a")
    world.server.unsubscribed("sub", "a", None, S)
    world.publish("pub", 2, "a")
    assert world.result() == []


def test_no_local_is_not_sent_back(world: World) -> None:
    world.subscribe("pub", "a", no_local=True)
    world.subscribe("sub", "a")
    sent = world.publish("pub", 1, "a")
    world.deliver("sub", 1.1, "a")
    assert world.result() == [(sent, "sub", "delivered")]


def test_a_client_gets_its_own_messages_without_no_local(world: World) -> None:
    world.subscribe("pub", "a")
    sent = world.publish("pub", 1, "a")
    assert world.result() == [(sent, "pub", "missing")]


def test_a_session_that_goes_on_keeps_its_subscriptions(world: World) -> None:
    world.connect("first", client="device")
    world.subscribe("first", "a")
    world.server.ended("first", S)
    world.connect("second", 2, "device", present=True)
    sent = world.publish("pub", 3, "a")
    world.deliver("second", 3.1, "a")
    assert world.result() == [(sent, "second", "delivered")]


def test_a_take_over_ends_the_earlier_connection(world: World) -> None:
    world.connect("first", client="device")
    world.subscribe("first", "a")
    world.connect("second", 2, "device", present=False)
    world.publish("pub", 3, "a")
    assert world.result() == []


def test_a_retained_message_answers_a_subscription_not_a_publish(world: World) -> None:
    world.subscribe("sub", "a")
    sent = world.publish("pub", 1, "a")
    world.deliver("sub", 1.1, "a", retain=True)
    assert world.result() == [(sent, "sub", "missing")]


def test_retain_as_published_keeps_the_flag(world: World) -> None:
    world.subscribe("sub", "a", rap=True)
    sent = world.publish("pub", 1, "a")
    world.deliver("sub", 1.1, "a", retain=True)
    assert world.result() == [(sent, "sub", "delivered")]


def test_a_delivery_with_dup_counts_as_one_where_somebody_waits_for_it(world: World) -> None:
    world.subscribe("sub", "a")
    sent = world.publish("pub", 1, "a")
    world.deliver("sub", 2.1, "a", dup=True)
    world.deliver("unknown", 2.2, "a", dup=True)
    assert world.result() == [(sent, "sub", "delivered")]


def test_overlapping_subscriptions_of_one_client_wait_once(world: World) -> None:
    world.subscribe("sub", "a/+")
    world.subscribe("sub", "a/#")
    sent = world.publish("pub", 1, "a/b")
    world.deliver("sub", 1.1, "a/b")
    assert world.result() == [(sent, "sub", "delivered")]


def test_a_subscriber_from_before_the_capture_is_seen_by_what_it_gets(world: World) -> None:
    world.publish("pub", 1, "a")
    second = world.publish("pub", 2, "a")
    world.deliver("unknown", 2.1, "a")
    world.deliver("unknown", 2.2, "a")
    assert world.result() == [(second, "unknown", "delivered")]
    assert world.server.told.rows[0].topic_filter is None


def test_another_port_of_the_server_is_named_and_joined(world: World) -> None:
    world.connect("web", port=8083)
    world.subscribe("web", "a")
    first, second = world.publish("pub", 1, "a", "1"), world.publish("pub", 2, "a", "2")
    world.deliver("web", 1.1, "a", "1", port=8083)
    assert world.result() == [(first, "web", "delivered"), (second, "web", "missing")]
    assert [(row.near_port, row.far_port) for row in world.server.told.rows] == [(PORT, 8083), (PORT, 8083)]
    assert world.server.joined_ports == {(PORT, 8083)}


def test_waiting_ends_with_the_window() -> None:
    world = World()
    world.connect("pub")
    world.connect("sub")
    world.subscribe("sub", "a")
    first = world.publish("pub", 1, "a")
    world.publish("pub", 1 + WINDOW_NS / S + 1, "b")
    assert [(row.message, row.status) for row in world.server.told.rows] == [(first, "missing")]


def test_too_many_waiting_messages_are_unknown_not_missing() -> None:
    world = World(max_waiting=3)
    world.connect("pub")
    world.connect("sub")
    world.subscribe("sub", "a")
    sent = [world.publish("pub", 1, "a", str(number)) for number in range(5)]
    statuses = {message: status for message, _, status in world.result(2)}
    assert [statuses[message] for message in sent] == ["unknown", "unknown", "missing", "missing", "missing"]


def test_memory_is_let_go() -> None:
    world = World()
    world.connect("pub")
    for number in range(50):
        flow = f"sub{number}"
        world.connect(flow, at=number)
        world.subscribe(flow, "a/#")
        world.subscribe(flow, "a/b", share="s")
        world.publish("pub", number, "a/b", str(number))
        world.deliver(flow, number + 0.1, "a/b", str(number))
        world.server.ended(flow, int((number + 0.5) * S))
    world.server.finish(1000 * S)
    server = world.server
    assert server._waits.is_empty
    assert not server._filters.members
    assert server._filters.count == 0


def test_subscriptions_that_change_between_two_messages_of_a_topic_count(world: World) -> None:
    first = world.publish("pub", 1, "room/7/heat")
    world.subscribe("sub", "room/#")
    second = world.publish("pub", 2, "room/7/heat", "y")
    world.server.unsubscribed("sub", "room/#", None, 3 * S)
    third = world.publish("pub", 4, "room/7/heat", "z")
    assert world.result() == [(second, "sub", "left")]
    assert [(name, expected) for name, expected, _ in world.server.told.counts] == [(first, 0), (second, 1), (third, 0)]


def test_copies_by_overlapping_filters_are_counted_and_are_no_other_publish(world: World) -> None:
    world.subscribe("sub", "room/#")
    world.subscribe("sub", "room/+/heat")
    world.subscribe("other", "room/#")
    sent = world.publish("pub", 1, "room/7/heat")
    for flow, at in (("sub", 1.1), ("other", 1.1), ("sub", 1.2), ("other", 1.2), ("sub", 1.3)):
        world.deliver(flow, at, "room/7/heat")
    assert world.result() == [(sent, "sub", "delivered"), (sent, "other", "delivered")]
    # A subscriber with one filter got an equal message of somebody whom the capture does not hold.
    assert [(copy.message, copy.subscriber) for copy in world.server.told.copies] == [(sent, "sub")] * 2


def test_a_copy_counts_for_the_last_publish_that_its_subscriber_got(world: World) -> None:
    world.subscribe("sub", "room/#")
    world.subscribe("sub", "room/+/heat")
    sent = []
    for at in (1, 2):
        sent.append(world.publish("pub", at, "room/7/heat"))
        world.deliver("sub", at + 0.1, "room/7/heat")
        world.deliver("sub", at + 0.2, "room/7/heat")
    assert [copy.message for copy in world.server.told.copies] == sent


def test_work_on_who_should_get_what_is_bounded() -> None:
    server = Server()
    for number in range(300):
        server.connected(f"s{number}", 1883, f"c{number}", Connect(), 0)
        server.subscribed(f"s{number}", "#", None, False, False)
    server.connected("p", 1883, "p", Connect(), 0)
    for number in range(2000):
        server.published(Message(f"m{number}", "p", 1883, number, "a/b", ("a/b", 1, number), False, False, 0, None))
    server.finish(5000)
    missing = [row for row in server.told.rows if row.status == "missing"]
    assert len(missing) <= (ALLOWED_STEPS + 2000 * STEPS_OF_A_MESSAGE) // STEPS_OF_A_TARGET
    # Of those beyond nothing is known, which is no accusation.
    assert server.limited > 1000
    assert {counts.message for counts in server.told.counts}.isdisjoint({"m1990", "m1999"})
    assert len({row.message for row in missing}) == len(server.told.counts)


def test_one_delivered_message_per_subscriber_never_reaches_the_limit() -> None:
    server = Server()
    for number in range(200):
        server.connected(f"s{number}", 1883, f"c{number}", Connect(), 0)
        server.subscribed(f"s{number}", "#", None, False, False)
    for number in range(2000):
        content = ("a/b", 1, number)
        server.published(Message(f"m{number}", "p", 1883, number, "a/b", content, False, False, 0, None))
        for subscriber in range(200):
            name, flow = f"d{number}-{subscriber}", f"s{subscriber}"
            server.delivered(Message(name, flow, 1883, number, "a/b", content, False, False, 0, None))
    server.finish(5000)
    assert server.limited == 0
    assert {row.status for row in server.told.rows} == {"delivered"}


def many_servers(count: int, memory: Memory) -> list[Server]:
    """Each with 100 subscribers to everything and 200 publishes that reach nobody."""
    servers = []
    for number in range(count):
        server = Server(memory=memory)
        for one in range(100):
            server.connected(f"{number}s{one}", PORT, f"c{one}", Connect(), 0)
            server.subscribed(f"{number}s{one}", f"a/+/{one % 7}", None, False, False)
            server.subscribed(f"{number}s{one}", "#", None, False, False)
        server.connected(f"{number}p", PORT, "p", Connect(), 0)
        for one in range(200):
            name, topic = f"{number}m{one}", f"a/b/{'long' * 50}"
            server.published(Message(name, f"{number}p", PORT, one, topic, (topic, 1, one), False, False, 1, None))
        servers.append(server)
    return servers


def deep_filters(count: int, memory: Memory) -> list[Server]:
    """One client and filters of many levels that have nothing in common."""
    server = Server(memory=memory)
    server.connected("s", PORT, "s", Connect(), 0)
    for number in range(count * 20):
        server.subscribed("s", f"{number}" + "/+" * 100, None, False, False)
    return [server]


@pytest.mark.parametrize("made", [many_servers, deep_filters])
def test_what_waits_is_counted_as_what_its_objects_take(made: Callable[[int, Memory], list[Server]]) -> None:
    made(1, Memory())
    gc.collect()
    tracemalloc.start()
    memory = Memory()
    servers = made(8, memory)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.7 <= memory.held_bytes / taken <= 2.5
    for server in servers:
        server.finish(S)
        for flow in [*server._flows]:
            server.ended(flow, S)
        server.let_go()
    assert memory.held_bytes == 0


def test_all_servers_together_keep_to_one_budget_and_nobody_is_accused() -> None:
    memory = Memory(8 << 20)
    servers = many_servers(8, memory)
    assert memory.held_bytes <= 8 << 20
    assert memory.has_let_go
    for server in servers:
        server.finish(2 * S)
    let_go = [server for server in servers if any(row.status == "unknown" for row in server.told.rows)]
    assert let_go
    assert {row.status for server in servers for row in server.told.rows} == {"unknown", "missing"}
    assert all(len(server.told.counts) == 200 for server in servers)


def test_filters_without_room_leave_the_number_of_those_who_should_get_it_unknown() -> None:
    """Nobody is said to publish what nobody subscribed to."""
    server = Server(memory=Memory(400_000))
    server.connected("p", PORT, "p", Connect(), 0)
    for number in range(1000):
        server.connected(f"s{number}", PORT, f"c{number}", Connect(), 0)
        server.subscribed(f"s{number}", f"devices/{number}/state", None, False, False)
    for number in (0, 999):
        topic = f"devices/{number}/state"
        server.published(Message(f"m{number}", "p", PORT, number, topic, (topic, 1, 1), False, False, 0, None))
    server.finish(5000)
    assert [(row.message, row.status) for row in server.told.rows] == [("m0", "missing")]
    assert server.told.counts == []


def test_a_filter_of_which_not_all_is_known_leaves_it_unknown_too(world: World) -> None:
    world.server.subscribed_unknown()
    world.publish("pub", 1, "a")
    assert world.result() == []
    assert world.server.told.counts == []


def test_a_group_whose_members_are_not_all_known_is_not_waited_for() -> None:
    """The server may send it to one that found no room."""
    server = Server(memory=Memory(30_000))
    server.connected("p", PORT, "p", Connect(), 0)
    for number in range(100):
        server.connected(f"s{number}", PORT, f"c{number}", Connect(), 0)
        server.subscribed(f"s{number}", "a", "group", False, False)
    server.published(Message("m", "p", PORT, 1, "a", ("a", 1, 1), False, False, 0, None))
    server.delivered(Message("d", "s99", PORT, 2, "a", ("a", 1, 1), False, False, 0, None))
    server.finish(5000)
    assert "missing" not in {row.status for row in server.told.rows}
    assert server.told.counts == []


_EVENTS = st.tuples(
    st.sampled_from(["connect", "end", "subscribe", "share", "unsubscribe", "publish", "publish", "deliver"]),
    st.sampled_from("pqr"),
    st.sampled_from(["a", "b"]),
    st.sampled_from("xyz"),
    st.sampled_from([0, 1]),
)
_Event = tuple[str, str, str, str, int]


@given(st.lists(_EVENTS, max_size=30))
def test_what_the_server_sent_to_nobody_need_not_wait(events: list[_Event]) -> None:
    """What is told does not depend on what is known beforehand of what comes later."""
    sent = {(topic, body) for kind, _, topic, body, _ in events if kind == "deliver"}
    assert _told(events, {(topic, body) for _, _, topic, body, _ in events}) == _told(events, sent)


def test_a_message_that_is_sent_on_to_nobody_is_counted_at_once() -> None:
    events: list[_Event] = [("connect", "p", "", "", 0), ("publish", "p", "a", "x", 0)]
    world = World()
    _happen(world, events, set())
    assert world.server.told.counts == [Counts("p-1", 0, 0)]
    world.server.subscribed_unknown()
    _happen(world, events, set())
    assert world.server.told.counts == [Counts("p-1", 0, 0)]
    assert _told(events, {("a", "x")}) == ([], [Counts("p-1", 0, 0)], [])


def _told(events: list[_Event], sent: set[tuple[str, str]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Deliveries, counts and absences; sent: topics and bodies of messages that the server may have sent."""
    world = World()
    _happen(world, events, sent)
    world.server.finish(10_000 * S)
    told = world.server.told
    return sorted(told.rows, key=repr), sorted(told.counts), told.absences


def _happen(world: World, events: list[_Event], sent: set[tuple[str, str]]) -> None:
    for at, (kind, flow, topic, body, qos) in enumerate(events):
        server, share = world.server, "g" if kind == "share" else None
        if kind == "connect":
            world.connect(flow, at, present=bool(qos))
        elif kind == "end":
            server.ended(flow, at * S)
        elif kind in ("subscribe", "share"):
            server.subscribed(flow, topic, share, False, False, qos)
        elif kind == "unsubscribe":
            server.unsubscribed(flow, topic, None, at * S)
        elif kind == "publish":
            message = world._message(flow, at, topic, body, False, False, PORT)
            content = message.content if (topic, body) in sent else None
            server.published(message._replace(qos=qos, content=content))
        else:
            server.delivered(world._message(flow, at, topic, body, False, False, PORT)._replace(qos=qos))


@pytest.mark.parametrize("max_waiting", [2, 1000])
@given(st.lists(st.tuples(_EVENTS, st.integers(0, 40)), max_size=40))
def test_messages_that_are_sent_on_to_nobody_may_come_as_columns(
    max_waiting: int, events: list[tuple[_Event, int]]
) -> None:
    """They are taken between others at their times: what waits is given up by the clock of all messages."""
    assert _told_of(events, max_waiting, at_once=True) == _told_of(events, max_waiting, at_once=False)


def test_nobody_asks_later_for_messages_of_a_time_without_subscriptions() -> None:
    world = World()
    world.connect("p")
    message = Message(1, "p", PORT, S, "a", None, False, False, 1)
    world.server.published(message)
    assert world.server.waiting_bytes == 0
    world.subscribe("p", "b")
    world.server.published(message._replace(row=2))
    assert world.server.waiting_bytes > 0


@pytest.mark.parametrize("asked_for", [range(50, 200), range(0, 200, 2)], ids=["behind the others", "in turns"])
def test_what_is_known_until_memory_lets_go_is_the_same_where_messages_come_as_columns(asked_for: range) -> None:
    """A client is away: from the message on at which memory lets go of it nobody knows who should get them.

    asked_for: those of QoS 1, which take memory, since somebody may come back and ask for them.
    """
    messages = [Message(row, 2, PORT, 1000 + row, "x", None, False, False, int(row in asked_for)) for row in range(200)]
    counted = {}
    for at_once in (False, True):
        server = Server(memory=Memory(40_000))
        server.connected(1, PORT, "c", Connect(False, False, NEVER), 0)
        server.subscribed(1, "a/#", None, False, False, 1)
        server.ended(1, 10)
        _hand_in(server, [*messages], at_once)
        counted[at_once] = sorted(count.message for count in _counts(server))
    assert counted[True] == counted[False] == [*range(len(counted[False]))]
    assert 50 < len(counted[False]) < 200


def _told_of(events: list[tuple[_Event, int]], max_waiting: int, *, at_once: bool) -> tuple[list[Any], ...]:
    """Deliveries, counts and absences. Messages of body x the server sends on to nobody; seconds between events."""
    world, waiting, now = World(max_waiting=max_waiting), list[Message](), 0
    for row, ((kind, flow, topic, body, qos), pause) in enumerate(events):
        now += pause
        message = Message(row, flow, PORT, now * S, topic, body, False, False, qos)
        if kind == "publish" and body == "x":
            waiting.append(message._replace(content=None))
            if at_once:
                continue
        _hand_in(world.server, waiting, at_once)
        if kind in ("publish", "deliver") and body != "x":
            (world.server.published if kind == "publish" else world.server.delivered)(message)
        elif kind == "connect":
            world.connect(flow, now, present=bool(qos))
        elif kind == "end":
            world.server.ended(flow, now * S)
        elif kind in ("subscribe", "share"):
            world.server.subscribed(flow, topic, "g" if kind == "share" else None, False, False, qos)
        elif kind == "unsubscribe":
            world.server.unsubscribed(flow, topic, None, now * S)
    _hand_in(world.server, waiting, at_once)
    world.server.finish((now + 1) * S)
    told = world.server.told
    return told.rows, sorted(_counts(world.server)), told.absences, told.copies


def _counts(server: Server) -> list[Counts]:
    """Of all publishes, also of those that nobody had to get."""
    return [*server.told.counts, *(Counts(row, 0, 0) for rows in server.told.unheard for row in rows.tolist())]


def _hand_in(server: Server, waiting: list[Message], at_once: bool) -> None:
    if at_once and waiting:
        columns = zip(MESSAGE_COLUMNS, zip(*waiting, strict=True), strict=True)
        server.published_unheard(Unheard({name: pa.array(values) for name, values in columns}))
    else:
        for message in waiting:
            server.published(message)
    waiting.clear()
