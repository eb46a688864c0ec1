"""Members that are thrown out, die, freeze, and group ids that two applications use."""

from __future__ import annotations

import time
from typing import Any

from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.incident import Client, Incident

# What follows truly when a group loses a member or stands.
REBALANCED = ("KAF110", "KAF116", "KAF126")
BEHIND = ("KAF107", "KAF108", "KAF109", "KAF125")
READ_AGAIN = ("KAF101", "KAF103", "KAF114", "KAF121", "KAF127")
REFUSED = ("KAF105", "KAF118")
SESSION_S = 6.0
POLL_MS = 7000
FEW_RECORDS = {"java": ("max.poll.records=5",), "kafka_python": ("max_poll_records=5",)}


def group_of_two(it: Incident, *libraries: str, partitions: int = 3, rate: int = 60, **work: object):  # type: ignore[no-untyped-def]
    """Return group, topic, producer and two members of one library; the capture runs from a random point of it on."""
    (topic,) = it.topics(partitions)
    group, library = it.world.names.group(), it.library(*libraries)
    protocol = it.protocol(library)
    early = it.rng.random() < 0.5
    if early:
        it.begin()
    feed = it.sender(topic, f"rate={rate}")
    members = [it.member(group, [topic], library, protocol=protocol, **work) for _ in range(2)]
    it.seconds(1.5, 4)
    if not early:
        it.begin()
        it.seconds(2, 5)
    return group, topic, feed, members


@fault()
def crash_loop(it: Incident) -> None:
    """A member dies soon after each start and is started again."""
    group, topic, feed, members = group_of_two(it)
    library, work = members[0].library, {"protocol": "classic", "host": it.new_host()}
    it.from_now()
    bad: list[Client] = []
    for _ in range(5):
        again = {"client_id": bad[0].client_id} if bad else {}
        bad.append(it.member(group, [topic], library, wait=False, **work, **again))  # type: ignore[arg-type]
        it.seconds(4, 5.5)
        bad[-1].process.kill()
    it.seconds(3, 5)
    it.is_about("a member dies soon after each start", bad[0], ["KAF116", "KAF126"],
                (*REBALANCED, *BEHIND, *READ_AGAIN, "KAF111", "TCP103"), [*members, feed])  # fmt: skip


@fault(libraries=("java", "librdkafka", "kafka_python"))
def slow_to_rejoin(it: Incident) -> None:
    """A rebalance waits for a member that is busy with its records."""
    (topic,) = it.topics(4)
    group, library = it.world.names.group(), it.library("java", "librdkafka", "kafka_python")
    it.begin()
    feed = it.sender(topic, "rate=20")
    kind: dict[str, Any] = {"protocol": "classic", "assignor": "range"}
    settings = {"java": ("max.poll.records=50",), "kafka_python": ("max_poll_records=50",)}.get(library, ())
    slow = it.member(group, [topic], library, handle_ms=200, settings=settings, max_poll_ms=60_000, **kind)
    other = it.member(group, [topic], library, **kind)
    it.seconds(10, 14)
    it.from_now()
    other.process.terminate()
    late = it.member(group, [topic], library, host=other.host, client_id=other.client_id, wait=False, **kind)
    it.seconds(18, 22)
    it.is_about("a rebalance waits for a member that is busy with records", slow, ["KAF126", "KAF110"],
                (*REBALANCED, *BEHIND), [slow, other, late, feed])  # fmt: skip


@fault(libraries=("java", "librdkafka"))
def skewed_assignment(it: Incident) -> None:
    """The range assignor gives one member the only partition of every topic."""
    topics = it.topics(1, 1, 1, 1, 1)
    group, library = it.world.names.group(), it.library("java", "librdkafka")
    it.begin()
    feeds = [it.sender(topic, "rate=10", "rounds=2") for topic in topics[:2]]
    it.from_now()
    members = [it.member(group, topics, library, protocol="classic", assignor="range") for _ in range(2)]
    it.seconds(14, 18)
    it.is_about("one member has all partitions, the other none", {"group": group}, ["KAF115"], (), [*members, *feeds],
                group=group)  # fmt: skip


@fault(libraries=("java", "librdkafka", "kafka_python"))
def poison_loop(it: Incident) -> None:
    """A record takes longer than max.poll.interval.ms: its reader is thrown out, and the record comes again."""
    (topic,) = it.topics(3)
    group, library = it.world.names.group(), it.library("java", "librdkafka", "kafka_python")
    protocol = it.protocol(library)
    members = [
        it.member(
            group,
            [topic],
            library,
            protocol=protocol,
            max_poll_ms=POLL_MS,
            poison_ms=POLL_MS + 4000,
            commit=it.rng.choice(("auto", "sync")),
            settings=FEW_RECORDS.get(library, ()),
        )
        for _ in range(it.rng.choice((1, 2)))
    ]
    it.begin()
    feed = it.sender(topic, "rate=20", f"poison_at={it.rng.randrange(40, 120)}")
    it.seconds(46, 52)
    told = [(one, event) for one in members for event in one.process.named_events("poison")]
    if len(told) < 3:
        it.notes.append("few deliveries")
    first, event = told[0]
    place, _, number = event["partition"].rpartition("-")
    it.is_about(
        "poison loop: a record is handled longer than max.poll.interval.ms",
        first,
        ["KAF119"],
        (*REBALANCED, *BEHIND, *READ_AGAIN, *REFUSED),
        [*members, feed],
        topic=place,
        partition=int(number),
        offset=event["offset"],
        deliveries=len(told),
        any=[one.identity() for one in dict.fromkeys(one for one, _ in told)],
    )


@fault()
def member_killed(it: Incident) -> None:
    """kill -9 of a member: no LeaveGroup, its partitions wait for the session timeout."""
    _, _, feed, members = group_of_two(it)
    it.from_now()
    members[0].process.kill()
    it.seconds(SESSION_S + 6, SESSION_S + 12)
    it.is_about(
        "a member is killed (kill -9)",
        members[0],
        ["KAF126", "KAF111"],
        (*REBALANCED, *BEHIND, *READ_AGAIN, "TCP103"),
        [*members, feed],
    )


@fault()
def member_leaves(it: Incident) -> None:
    """A member ends in order: healthy."""
    _, _, _, members = group_of_two(it)
    members[0].process.terminate()
    it.seconds(8, 14)
    it.healthy("a member leaves in order")


@fault()
def member_frozen(it: Incident) -> None:
    """SIGSTOP for longer than the session timeout, then SIGCONT: what it held is read by another, and it comes back."""
    commit = it.rng.choice(("auto", "sync"))
    library = it.library()
    _, _, feed, members = group_of_two(
        it, library, commit="auto" if library in ("sarama", "franz") else commit, handle_ms=20
    )
    it.from_now()
    members[0].process.freeze()
    time.sleep(SESSION_S + 6 + it.rng.uniform(0, 3))
    members[0].process.thaw()
    it.until_now()
    it.seconds(6, 10)
    it.is_about(
        "a member is frozen for longer than its session timeout and comes back",
        members[0],
        ["KAF127", "KAF126", "KAF111", "KAF105"],
        (*REBALANCED, *BEHIND, *READ_AGAIN, *REFUSED, "KAF303", "KAF306"),
        [*members, feed],
    )


@fault(libraries=("java", "librdkafka", "kafka_python", "franz"))
def group_other_topics(it: Incident) -> None:
    """Two applications use one group id with other topics: each change of one stops the other."""
    topics = it.topics(3, 3)
    group = it.world.names.group()
    libraries = [it.library("java", "librdkafka", "kafka_python"), it.library("java", "librdkafka", "kafka_python")]
    it.begin()
    feeds = [it.sender(topic, "rate=30") for topic in topics]
    first = it.member(
        group,
        [topics[0]],
        libraries[0],
        protocol="classic",
        assignor="range" if libraries[0] != "kafka_python" else None,
    )
    it.seconds(4, 6)
    it.from_now()
    second = it.member(
        group,
        [topics[1]],
        libraries[1],
        protocol="classic",
        assignor="range" if libraries[1] != "kafka_python" else None,
    )
    it.seconds(6, 9)
    second.process.terminate()
    it.seconds(3, 5)
    third = it.member(
        group,
        [topics[1]],
        libraries[1],
        protocol="classic",
        host=second.host,
        client_id=second.client_id,
        assignor="range" if libraries[1] != "kafka_python" else None,
    )
    it.seconds(8, 10)
    it.is_about(
        "one group id is used by two applications with other topics",
        {"group": group},
        ["KAF112"],
        (*REBALANCED, "KAF111"),
        [first, second, third, *feeds],
        group=group,
        topics=topics,
        clients=[first.identity(), second.identity()],
    )


@fault()
def group_same_topic_twice(it: Incident) -> None:
    """A second application takes the group id of another for the same topic: on the wire a group that grew."""
    (topic,) = it.topics(4)
    group, library = it.world.names.group(), it.library()
    it.begin()
    feed = it.sender(topic, "rate=40")
    first = it.member(group, [topic], library, protocol="classic")
    it.seconds(5, 8)
    it.from_now()
    second = it.member(group, [topic], library, protocol="classic")
    it.seconds(14, 18)
    it.healthy("one group id is used twice for the same topic: nothing on the wire tells it from a group that grew")
    it.notes.append(f"{first.client_id} and {second.client_id} would be two applications; feed {feed.client_id}")


@fault(libraries=("java", "librdkafka", "sarama", "franz"))
def other_assignor(it: Incident) -> None:
    """A client with another assignor wants to join: INCONSISTENT_GROUP_PROTOCOL (23), again and again."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30")
    members = [
        it.member(
            group, [topic], it.library("java", "librdkafka", "franz", "sarama"), protocol="classic", assignor="range"
        )
    ]
    it.seconds(4, 6)
    it.from_now()
    library = it.library("java", "librdkafka", "sarama", "franz")
    late = it.member(group, [topic], library, protocol="classic", assignor="roundrobin", wait=False)
    it.seconds(15, 20)
    it.is_about(
        "a client whose assignor no member of the group knows is refused (23)",
        late,
        ["KAF112", "KAF117", "KAF315", "NET103"],
        (*REBALANCED, "KAF306", "KAF314"),
        [late, *members, feed],
    )


@fault(libraries=("java", "librdkafka", "franz", "sarama"), backdrop_restart=False)
def static_id_twice(it: Incident) -> None:
    """Two hosts use one group.instance.id: each fences the other."""
    (topic,) = it.topics(3)
    group, library = it.world.names.group(), it.library("java", "librdkafka", "franz", "sarama")
    protocol = it.protocol(library)
    instance = f"{group}-0"
    it.begin()
    feed = it.sender(topic, "rate=30")
    first = it.member(group, [topic], library, protocol=protocol, instance=instance)
    it.seconds(4, 6)
    it.from_now()
    members = [first]
    for _ in range(5):
        host = members[-2].host if len(members) > 1 else None
        client_id = members[-2].client_id if len(members) > 1 else None
        members.append(
            it.member(
                group,
                [topic],
                library,
                protocol=protocol,
                instance=instance,
                wait=protocol == "classic",  # it takes the name; a KIP-848 group refuses it instead (111)
                host=host,
                client_id=client_id,
            )
        )
        it.seconds(4, 5)
        members[-2].process.stop(2)  # a supervisor starts the fenced one again
    it.is_about(
        "one group.instance.id is used by two hosts",
        members[1],
        ["KAF128"],
        (*REBALANCED, *REFUSED, *READ_AGAIN, "KAF117"),
        [*members, feed],
        instance_id=instance,
        clients=[first.identity(), members[1].identity()],
    )
