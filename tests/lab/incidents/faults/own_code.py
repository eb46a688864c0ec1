"""Mistakes in an application's own code: assignors, commits, times, handlers, ids of instances."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident

UNREAD = r"nobody|no (?:member|one|consumer|client)|assign|not read|never read|unread|never fetch|not fetch|behind|lag"


@fault(libraries=("kafka_python",), backdrop_restart=False)
def assignor_forgets_partition(it: Incident) -> None:
    """An assignor of the application's own leaves the last of six partitions to nobody: the group never reads it."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=50")
    good = it.member(it.world.names.group(), [topic], "franz")
    it.from_now()
    members = [
        it.add(programs.mistake(it, "work", f"group={group}", f"topics={topic}", "assignor=forgetting",
                                "session_timeout_ms=10000", "heartbeat_interval_ms=1000"),
               "kafka_python", group=group, topics=(topic,))
        for _ in range(2)
    ]  # fmt: skip
    it.seconds(34, 38)
    it.is_told(
        "an assignor leaves a partition to nobody: its group never reads it", {"group": group},
        [told.any_of(told.name(group), *(told.client(one) for one in members)), told.partition(topic, 5)], UNREAD,
        affected=[feed, *members], never=[told.accusing(good.client_id)], topic=topic, partition=5,
    )  # fmt: skip


@fault(libraries=("kafka_python",), backdrop_restart=False)
def assignor_gives_twice(it: Incident) -> None:
    """An assignor of the application's own gives partition 3 to two of its members: both read and commit it."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    good = it.member(it.world.names.group(), [topic], "sarama")
    members = [
        it.add(programs.mistake(it, "work", f"group={group}", f"topics={topic}", "assignor=overlapping",
                                "session_timeout_ms=10000", "heartbeat_interval_ms=1000"),
               "kafka_python", group=group, topics=(topic,))
        for _ in range(2)
    ]  # fmt: skip
    it.from_now()
    it.seconds(32, 36)
    it.is_told(
        "an assignor gives a partition to two members: both read and commit it", {"group": group},
        [told.any_of(told.name(group), *(told.client(one) for one in members)),
         told.any_of(told.partition(topic, 3), told.name(topic))],
        r"two|both|twice|same|double|in turn|each other|more than one|overlap|duplicat|another member|again",
        affected=[feed, *members], never=[told.accusing(good.client_id)], topic=topic, partition=3,
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def commits_nothing_new(it: Incident) -> None:
    """A member commits after every poll, also when there was nothing: sixty commits a second of the same offsets."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=1", "rounds=1")
    good = it.member(it.world.names.group(), [topic], "franz")
    it.from_now()
    bad = it.add(programs.mistake(it, "commits_always", f"group={group}", f"topics={topic}",
                                  "session_timeout_ms=10000", "heartbeat_interval_ms=1000"),
                 "kafka_python", group=group, topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(18, 22)
    it.is_told(
        "a member commits the same offsets dozens of times a second", bad,
        [told.any_of(told.client(bad), told.name(group))], r"commit", affected=[feed, bad],
        never=[told.accusing(good.client_id), r"(?i)never commits"],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def start_time_in_seconds(it: Incident) -> None:
    """A report of the last minute asks for the offset of a time in seconds, not ms: it reads all from 1970 on."""
    (topic,) = it.topics(3)
    fill = it.sender(topic, "rate=600", "size=200")
    it.seconds(16, 18)
    fill.process.terminate()
    it.begin()
    feed = it.sender(topic, "rate=20", "size=200")
    good = it.member(it.world.names.group(), [topic], "franz", reset="latest")
    it.seconds(2, 3)
    it.from_now()
    bad = it.add(programs.mistake(it, "looks_back", f"topic={topic}", "partitions=3", "every_s=7"), "kafka_python",
                 topics=(topic,))  # fmt: skip
    it.seconds(40, 44)
    it.is_told(
        "a report asks for the offsets of a time in seconds and reads the whole topic each time", bad,
        [told.client(bad)],
        r"from the (?:beginning|start)|again|whole|all of|seconds|1970|timestamp|same records|re-?read|repeat"
        r"|each time|oldest|earliest|log start|ListOffsets",
        affected=[bad], never=[told.accusing(good.client_id), told.accusing(feed.client_id)],
    )  # fmt: skip


@fault(libraries=("sarama",), backdrop_restart=False)
def handler_error_ends_session(it: Incident) -> None:
    """A sarama handler returns an error at one record: its session ends, it joins again, and meets the record again."""
    (topic,) = it.topics(4)
    group, program = it.world.names.group(), clients.go_program("go_sarama")
    it.begin()
    feed = it.sender(topic, "rate=40", "poison_at=500")
    command = [program, "work", "-broker", it.world.endpoint, "-group", group, "-topics", topic, "-fails", "poison"]
    members = [
        it.add(lambda name: [*command, "-client-id", name], "sarama", group=group, topics=(topic,)) for _ in range(2)
    ]
    members[0].process.wait_for_event("session", timeout_s=40)
    it.seconds(12, 13)
    it.from_now()
    it.seconds(24, 27)
    bad = next((one for one in members if any(e["event"] == "fails" for e in one.process.events())), members[0])
    it.is_told(
        "a handler's error at one record ends the member's session again and again", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"rebalanc|join|generation|session|again|record|stuck|stands",
        affected=[feed, *members], never=[told.accusing(feed.client_id)], topic=topic,
    )  # fmt: skip


@fault(libraries=("franz", "java"), backdrop_restart=False)
def new_instance_id_each_start(it: Incident) -> None:
    """group.instance.id is made up at each start: what the instance before held is read by nobody until it expires."""
    (topic,) = it.topics(4)
    group, library = it.world.names.group(), it.library("franz", "java")
    it.begin()
    feed = it.sender(topic, "rate=40")
    how = {"protocol": "classic", "session_ms": 16_000}
    stays = it.member(group, [topic], library, instance="worker-0", **how)  # type: ignore[arg-type]
    client_id, host = it.world.names.client(), it.new_host()
    started = []
    for number in range(3):
        if number == 1:
            it.from_now()
        instance = f"worker-{it.rng.randrange(16**6):06x}"
        started.append(it.member(group, [topic], library, instance=instance, client_id=client_id, host=host, wait=False,
                                 **how))  # type: ignore[arg-type]  # fmt: skip
        it.seconds(11, 13)
        started[-1].process.terminate()
        it.seconds(1, 2)
    it.seconds(10, 12)
    bad = started[0]
    it.is_told(
        "a static member has a new instance id at each start: its former selves keep partitions", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"instance|static|session time-?out|expire|did not leave|without (?:a )?leav|new member|restart|nobody|not read"
        r"|stands|held|rebalanc",
        affected=[feed, stays, *started], never=[told.accusing(stays.client_id)],
    )  # fmt: skip


@fault()
def one_record_goes_round(it: Incident) -> None:
    """A record that always fails goes to the retry topic and from there back, with no count of its tries: for ever."""
    topic, retry = it.topics(3, 1)
    groups = it.world.names.group(), it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=25", "poison_at=250")
    words = (f"topics={topic}", f"target={retry}", f"group={groups[0]}")
    fails = it.add(programs.aiokafka_habit(it, "puts_aside", *words), "aiokafka", group=groups[0], topics=(topic,))
    back = it.add(programs.aiokafka(it, "work", f"topics={retry}", f"target={topic}", f"group={groups[1]}",
                                    "handle_ms=150"), "aiokafka", group=groups[1], topics=(retry,))  # fmt: skip
    for one in (fails, back):
        one.process.wait_for_event("session", timeout_s=40)
    it.seconds(4, 5)
    it.from_now()
    it.seconds(30, 34)
    who = {"topic": retry, "topics": [topic, retry]}
    it.is_told(
        "a record that always fails goes round between a topic and its retry topic", who,
        [told.any_of(told.name(retry), told.name(topic), told.client(fails), told.client(back))],
        r"again|loop|circle|round|same record|same value|retr|repeat|back|copie|comes? back|to and fro|duplicat|twice",
        affected=[feed, fails, back], never=[told.accusing(feed.client_id)],
        any=[fails.identity(), back.identity()],
    )  # fmt: skip
