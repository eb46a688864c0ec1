"""What is repeated without effect: joins, questions for each record, new group ids, fetches thrown away."""

from __future__ import annotations

import uuid

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident

FOR_EACH = r"again|repeat|each record|per record|for (?:each|every)|times|a second|asks|requests|without"


@fault()
def joins_again(it: Incident) -> None:
    """A member asks to join again three times a second: each answer is the same generation."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30")
    good = it.member(group, [topic], "librdkafka", protocol="classic", assignor="range", session_ms=10_000)
    it.seconds(3, 4)
    it.from_now()
    bad = it.add(programs.raw(it, "rejoin", f"group={group}", f"topic={topic}", "assignor=range"), "our own",
                 group=group, topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("joined", timeout_s=30)
    it.seconds(24, 27)
    it.is_told(
        "a member joins again and again in one generation", bad, [told.client(bad), r"join"], FOR_EACH,
        affected=[feed, good, bad], never=[rf"{told.name(good.client_id)}[^.]*(?:joins|joined) (?:again|\d+ times)"],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def ends_asked_per_record(it: Incident) -> None:
    """A gauge of lag asks for the log end for each record that is read (ListOffsets)."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    it.from_now()
    bad = it.add(
        programs.kafka_python(it, "asks_ends", f"group={group}", f"topics={topic}", "heartbeat_interval_ms=1000"),
        "kafka_python", group=group, topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(20, 23)
    it.is_told("a member asks for the log end for each record", bad, [told.client(bad), r"ListOffsets|log end"],
               FOR_EACH, affected=[feed, bad])  # fmt: skip


@fault(libraries=("librdkafka",))
def committed_asked_per_record(it: Incident) -> None:
    """A member asks what is committed for each record that is read (OffsetFetch)."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    it.from_now()
    bad = it.add(programs.librdkafka(it, "asks", f"group.id={group}", f"topics={topic}", "ask=committed"),
                 "librdkafka", group=group, topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(20, 23)
    it.is_told("a member asks what is committed for each record", bad,
               [told.client(bad), r"OffsetFetch|committed offset|what is committed"], FOR_EACH,
               affected=[feed, bad])  # fmt: skip


@fault(libraries=("librdkafka",))
def metadata_asked_per_record(it: Incident) -> None:
    """A member asks for metadata for each record that is read."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    it.from_now()
    bad = it.add(programs.librdkafka(it, "asks", f"group.id={group}", f"topics={topic}", "ask=metadata"),
                 "librdkafka", group=group, topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(20, 23)
    it.is_told("a member asks for metadata for each record", bad, [told.client(bad), r"Metadata"], FOR_EACH,
               affected=[feed, bad])  # fmt: skip


@fault(libraries=("franz",))
def group_id_of_each_start(it: Incident) -> None:
    """A client makes up a new group id at each start: it reads all from the beginning each time."""
    (topic,) = it.topics(2)
    client_id, host, base = it.world.names.client(), it.new_host(), it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=60")
    it.seconds(3, 4)
    it.from_now()
    started = []
    for _ in range(7):
        group = f"{base}-{uuid.UUID(int=it.rng.getrandbits(128))}"
        one = it.member(group, [topic], "franz", client_id=client_id, host=host)
        started.append(one)
        it.seconds(2.5, 3.5)
        one.process.terminate()
    it.is_told(
        "a client makes up a new group id at each start", started[0].identity(),
        [told.any_of(told.client(started[0]), rf"(?<![\w.-]){base}")],
        r"new group|group ids?|groups|each start|of its own|another group|different group|every start",
        affected=[feed, *started],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def seeks_each_record(it: Incident) -> None:
    """A member seeks after each record: all that an answer holds behind the first record is thrown away."""
    (topic,) = it.topics(1)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30", "rounds=2", "size=200")
    it.seconds(8, 9)
    it.from_now()
    bad = it.add(programs.librdkafka(it, "seeks", f"group.id={group}", f"topics={topic}", "handle_ms=30"),
                 "librdkafka", group=group, topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(20, 22)
    it.is_told(
        "a member seeks after each record and fetches the same records many times", bad,
        [told.any_of(told.client(bad), told.partition(topic, 0), told.name(group))],
        r"fetch\w* [^.]*again|same (?:records|offsets|messages)|more than once|thrown away|overlap|twice|bytes per",
        affected=[feed, bad], topic=topic, never=["is the handler"],
    )  # fmt: skip


@fault()
def admin_client_per_look(it: Incident) -> None:
    """A health check makes a new admin client for each look, three times a second."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    member = it.member(it.world.names.group(), [topic], "franz")
    it.from_now()
    bad = it.add(programs.kafkajs(it, "looks", f"topic={topic}", "pause_ms=250"), "kafkajs", topics=(topic,))
    it.seconds(22, 25)
    it.is_told("a client makes a new connection for each look", bad,
               [told.client(bad), r"connections|connects|admin client"],
               r"each|every|new|per |short|again|connections", affected=[feed, member, bad],
               never=[told.client(feed)])  # fmt: skip


@fault()
def refused_without_pause(it: Incident) -> None:
    """A record that is too large for its topic is sent again at once after each refusal."""
    (topic,) = it.topics(1, settings="max.message.bytes:2000")
    it.begin()
    feed = it.sender(topic, "rate=10")
    bad = it.add(programs.aiokafka(it, "insists", f"topic={topic}", "size=5000"), "aiokafka", topics=(topic,))
    bad.process.wait_for_event("insists")
    it.from_now()
    it.seconds(18, 20)
    it.is_told("a record that is too large is sent again and again without a pause", bad, [told.client(bad)],
               r"too large|MESSAGE_TOO_LARGE|max\.message\.bytes|larger", affected=[feed, bad],
               never=[told.client(feed)], topic=topic)  # fmt: skip


@fault(libraries=("librdkafka",))
def transaction_per_record(it: Incident) -> None:
    """Each record is written in a transaction of its own: the log has as many markers as records."""
    (topic,) = it.topics(1)
    it.begin()
    name = f"{it.world.names.client()}-tx"
    member = it.member(it.world.names.group(), [topic], "librdkafka", read_committed=True)
    it.from_now()
    bad = it.add(programs.librdkafka(it, "transaction_each", f"transactional.id={name}", f"topic={topic}"),
                 "librdkafka", topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(20, 23)
    it.is_told("each record has a transaction of its own", bad, [told.any_of(told.client(bad), told.name(name))],
               r"transaction.*(?:each|per|one record|single|small)|(?:each|one|single) record.*transaction",
               affected=[member, bad], topic=topic, transactional_id=name)  # fmt: skip
