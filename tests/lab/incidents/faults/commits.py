"""Members that commit wrongly, and groups that fall behind."""

from __future__ import annotations

import time

from tests.lab import clients
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults.members import BEHIND, READ_AGAIN, REBALANCED, REFUSED, SESSION_S
from tests.lab.incidents.incident import Incident

ALL = ("java", "librdkafka", "kafka_python", "franz")


def one_member(
    it: Incident, *libraries: str, rate: int, partitions: int = 2, feed_words: tuple[str, ...] = (), **work: object
):  # type: ignore[no-untyped-def]
    """Return the producer and the only member of a group; the capture may begin after them."""
    (topic,) = it.topics(partitions)
    group, library = it.world.names.group(), it.library(*libraries)
    early = it.rng.random() < 0.5
    if early:
        it.begin()
    feed = it.sender(topic, f"rate={rate}", *feed_words)
    member = it.member(group, [topic], library, **work)
    if not early:
        it.seconds(1, 3)
        it.begin()
    it.from_now()
    return feed, member


@fault(libraries=(*ALL, "sarama"))
def never_commits(it: Incident) -> None:
    """A member reads and never commits."""
    feed, member = one_member(it, rate=80, commit="never")
    it.seconds(28, 34)
    it.is_about("a member reads and never commits", member, ["KAF122", "KAF109"], BEHIND, [feed, member])


@fault(libraries=("java", "librdkafka", "kafka_python"))
def handler_stuck(it: Incident) -> None:
    """A handler never comes back from one record: its member says that it lives, reads no more, commits no more."""
    library = it.library("java", "librdkafka", "kafka_python")
    feed, member = one_member(
        it, library, rate=40, feed_words=(f"poison_at={it.rng.randrange(300, 500)}",), commit="sync", poison_ms=600_000
    )
    member.process.wait_for_event("poison", timeout_s=60)
    it.seconds(42, 48)
    it.is_about("a handler never comes back from one record", member, ["KAF107", "KAF108"], BEHIND, [feed, member])


@fault(libraries=("librdkafka",))
def commits_stop(it: Incident) -> None:
    """A member goes on to read, and from some record on it does not commit any more."""
    feed, member = one_member(it, "librdkafka", rate=60, commit="sync", settings=("commits_until=600",))
    member.process.wait_for_event("commits stopped", timeout_s=60)
    it.seconds(42, 48)
    expected = ["KAF107", "KAF109", "KAF122"]  # the last where the capture begins later: nobody commits in it
    it.is_about("a member reads on and does not commit any more", member, expected, BEHIND, [feed, member])


@fault(libraries=(*ALL, "sarama"))
def commit_per_record(it: Incident) -> None:
    """A commit for each record."""
    feed, member = one_member(it, rate=120, commit="record")
    it.seconds(18, 22)
    it.is_about("a member commits after each record", member, ["KAF123"], BEHIND, [feed, member])


@fault(libraries=(*ALL, "sarama"))
def commits_last(it: Incident) -> None:
    """The last handled offset is committed instead of the next one: each restart reads a record again."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library(*ALL, "sarama")
    it.begin()
    it.from_now()
    members = []
    for number in range(4):
        feed = it.sender(topic, "rate=30")
        again = {"host": members[0].host, "client_id": members[0].client_id} if members else {}
        members.append(it.member(group, [topic], library, protocol="classic", commit="last", **again))
        it.seconds(2, 3)
        feed.process.terminate()
        it.seconds(2, 3)
        if number < 3:
            members[-1].process.terminate()
    it.seconds(3, 4)
    it.is_about(
        "the last handled offset is committed instead of the next one",
        members[0],
        ["KAF124", "KAF114"],
        (*REBALANCED, *BEHIND, "KAF116"),
        [*members, *(one for one in it.clients if one.group is None)],
    )


@fault(libraries=("librdkafka",))
def refused_commit_again(it: Incident) -> None:
    """What a commit was refused for is committed again later, over newer offsets."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=60")
    member = it.member(group, [topic], "librdkafka", protocol="classic", commit="again", handle_ms=15)
    it.seconds(4, 6)
    member.process.freeze()
    time.sleep(SESSION_S + 4)
    it.from_now()
    member.process.thaw()
    member.process.wait_for_event("repeated", timeout_s=25)
    it.until_now()
    it.seconds(5, 7)
    it.is_about(
        "a refused commit is sent again later over a newer one",
        member,
        ["KAF129", "KAF103"],
        (*REBALANCED, *BEHIND, *READ_AGAIN, *REFUSED, "KAF102", "KAF111", "KAF303", "KAF306"),
        [feed, member],
    )


@fault(libraries=("librdkafka",))
def commits_ahead(it: Incident) -> None:
    """Offsets far above what was read, and above the log end, are committed."""
    feed, member = one_member(it, "librdkafka", rate=40, commit="ahead")
    it.seconds(14, 18)
    it.is_about("offsets above the log end are committed", member, ["KAF113"], (*BEHIND, "KAF121"), [feed, member])


@fault(libraries=("librdkafka",))
def reads_further_on(it: Incident) -> None:
    """A member jumps over records that it never reads."""
    feed, member = one_member(it, "librdkafka", rate=120, handle_ms=25, settings=("jump=60", "jump_after=300"))
    member.process.wait_for_event("jumped", timeout_s=40)
    it.seconds(5, 8)
    it.is_about(
        "a member goes on to read far behind its position", member, ["KAF120", "KAF121"], BEHIND, [feed, member]
    )


@fault(libraries=("sarama",), backdrop_restart=False)
def other_members_partition(it: Incident) -> None:
    """A member goes on to commit an old offset of a partition that another member owns now."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    program = clients.go_program("go_sarama")

    def produce(name: str, partitions: str, pause: str, value: str, rounds: int) -> list[str]:
        return [program, "produce", "-broker", it.world.endpoint, "-client-id", name, "-topic", topic, "-partitions",
                partitions, "-pause", pause, "-value", value, "-rounds", str(rounds)]  # fmt: skip

    def ledger(name: str) -> list[str]:
        return [program, "ledger", "-broker", it.world.endpoint, "-client-id", name, "-group", group, "-topic", topic]

    it.add(lambda name: produce(name, "0-5", "250ms", "booked", 0), "sarama", topics=[topic])
    first = it.add(ledger, "sarama", group=group, topics=[topic])
    first.process.wait_for_event("session")
    it.seconds(2, 3)
    # Member ids begin with client ids, and the range assignor gives the higher one the higher partitions.
    second_id = it.world.names.client()
    lost = 4 if second_id > first.client_id else 1
    it.add(lambda name: produce(name, str(lost), "1ms", "review", 1), "sarama", topics=[topic]).process.finish()
    second = it.add(ledger, "sarama", client_id=second_id, group=group, topics=[topic])
    second.process.wait_for_event("session")
    first.process.wait_for_event("late")
    it.from_now()
    it.seconds(10, 13)
    owns = [event["claims"][topic] for event in second.process.named_events("session")]
    it.notes.append(f"the second member owns {owns}")
    it.is_about("a member commits an old offset of a partition that another member owns", first,
                ["KAF103", "KAF101", "KAF102", "KAF104", "KAF127"], (*BEHIND, *REBALANCED), it.clients,
                topic=topic, partition=lost)  # fmt: skip


@fault(libraries=("kafka_python",))
def commits_without_membership(it: Incident) -> None:
    """A consumer that assigns itself partitions commits for a group that has members: refused (25)."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    member = it.member(group, [topic])
    it.seconds(3, 5)
    it.from_now()
    lone = it.add(lambda name: clients.python_command(
        "kafka_python_client", "consume", f"broker={it.world.endpoint}", f"client_id={name}", f"group={group}",
        f"topic={topic}", "partitions=0,1"), "kafka_python", group=group, topics=[topic])  # fmt: skip
    it.seconds(10, 14)
    it.is_about("a consumer that is no member commits for a group that has members", lone, ["KAF106"], REFUSED,
                [feed, member, lone])  # fmt: skip


@fault(libraries=("java", "librdkafka", "kafka_python"))
def paused_partition(it: Incident) -> None:
    """A member pauses a partition and forgets it."""
    feed, member = one_member(it, "java", "librdkafka", "kafka_python", rate=50, pause=(0, 150))
    it.seconds(42, 48)
    it.is_about(
        "a partition is paused and never resumed",
        member,
        ["KAF125"],
        BEHIND,
        [feed, member],
        topic=member.topics[0],
        partition=0,
    )


@fault(libraries=(*ALL, "sarama"))
def slow_handler(it: Incident) -> None:
    """Records are handled more slowly than they come."""
    feed, member = one_member(it, rate=120, partitions=1, handle_ms=40)
    it.seconds(38, 44)
    it.is_about("the handler is slower than the records come", member, ["KAF108"], (*BEHIND, "TCP102"), [feed, member])


@fault(libraries=(*ALL, "sarama"))
def fetch_too_small(it: Incident) -> None:
    """max.partition.fetch.bytes is so small that each answer holds one small batch: its reader falls behind."""
    small = ("rounds=20", "size=100", "linger.ms=0", "batch.num.messages=1")
    feed, member = one_member(it, rate=1000, partitions=1, feed_words=small, fetch_bytes=200)
    it.seconds(16, 20)
    it.is_about("max.partition.fetch.bytes is 200", member, ["KAF317"], (*BEHIND, "KAF202"), [feed, member])
