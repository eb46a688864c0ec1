"""What does not move although it should: partitions, offsets, handlers, transactions."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident

NOT_READ = (
    r"not read|never|nobody|no member|no one|reads? none|unread|without a reader|not (?:been )?(?:fetched|consumed"
    r"|assigned|owned)|never (?:fetched|consumed|assigned)|does not fetch|not covered|left out|in no assignment"
)
STANDS = r"stuck|stand|stood|not mov|no progress|not advanc|stopped|stall|behind|lag|no longer|paused|does not fetch"


@fault(libraries=("librdkafka",))
def subset_assigned(it: Incident) -> None:
    """An application assigns itself five of six partitions: the sixth is written, and nobody of its group reads it."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    both = [
        it.add(programs.librdkafka(it, "assign", f"group.id={group}", f"topic={topic}", f"partitions={numbers}"),
               "librdkafka", group=group, topics=(topic,))
        for numbers in ("0,1,2", "3,4")
    ]  # fmt: skip
    it.from_now()
    it.seconds(26, 30)
    it.is_told(
        "a partition is written and read by nobody of the group that assigns itself its siblings", {"group": group},
        [told.partition(topic, 5)], NOT_READ, affected=[feed, *both],
        never=[f"never [^.]*{told.partition(topic, 0, 1, 2, 3, 4)}"],
        group=group, topic=topic, partition=5,
    )  # fmt: skip


@fault(libraries=("java",))
def partitions_added_unseen(it: Incident) -> None:
    """Partitions are added; the producer uses them at once, the group's old metadata does not know them."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    feed = it.sender(topic, "rate=50", "topic.metadata.refresh.interval.ms=1500")
    member = it.member(group, [topic], "java", protocol="classic", settings=("metadata.max.age.ms=600000",))
    it.seconds(6, 8)
    it.from_now()
    it.operate("partitions", f"topic={topic}", "partitions=5", **operator)
    it.seconds(28, 32)
    it.is_told(
        "partitions were added, are written, and the group does not read them: its metadata is old", member,
        [told.partition(topic, 3, 4)], NOT_READ, affected=[feed, member],
        never=[f"never [^.]*{told.partition(topic, 0, 1, 2)}"],
        topic=topic, partitions=[f"{topic}-3", f"{topic}-4"],
    )  # fmt: skip


@fault(world="cluster", libraries=("franz",), backdrop_restart=False)
def no_leader(it: Incident) -> None:
    """The only replica of some partitions is on a broker that is gone: they have no leader."""
    (topic,) = it.topics(6, copies=1)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30", "message.timeout.ms=300000")
    member = it.member(group, [topic], "franz", session_ms=20_000)
    it.seconds(5, 7)
    it.from_now()
    gone = it.world.server.nodes[2]
    gone.stop()
    it.seconds(24, 28)
    gone.start()
    it.until_now()
    it.seconds(3, 4)
    it.is_told(
        "partitions have no leader while the broker of their only replica is gone",
        {"server": gone.endpoint, "node": gone.number},
        [told.any_of(told.name(topic), told.name(gone.host.address), f"(?:broker|node) {gone.number}")],
        r"no leader|leaderless|without a leader|leader (?:is )?-1|LEADER_NOT_AVAILABLE|leader not available|offline",
        affected=[feed, member], topic=topic,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("kafka_python",))
def record_fails_again(it: Incident) -> None:
    """The handler of one record fails: its offset is sought and fetched again, for ever; other partitions go on."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30", f"poison_at={it.rng.randrange(150, 260)}")
    member = it.add(
        programs.kafka_python(it, "tries_again", f"group={group}", f"topics={topic}", "heartbeat_interval_ms=1000"),
        "kafka_python", group=group, topics=(topic,),
    )  # fmt: skip
    event = member.process.wait_for_event("poison", timeout_s=60)
    it.from_now()
    it.seconds(22, 26)
    it.is_told(
        "one offset is fetched again and again, nothing past it is committed", member,
        [told.partition(topic, event["partition"])],
        r"again|repeat|retr|stuck|same offset|cannot get past|not (?:commit|mov|advanc)|committed nothing|no progress",
        affected=[feed, member], topic=topic, partition=event["partition"], offset=event["offset"],
        never=[told.partition(topic, *({0, 1, 2, 3} - {event["partition"]}))],
    )  # fmt: skip


@fault(libraries=("librdkafka", "java"))
def one_of_sixteen(it: Incident) -> None:
    """One of sixteen partitions is paused by its member and forgotten, for some twenty seconds."""
    (topic,) = it.topics(16)
    group, library = it.world.names.group(), it.library("java", "librdkafka")
    it.begin()
    feed = it.sender(topic, "rate=160")
    number = 5
    good = it.member(it.world.names.group(), [topic], "franz", protocol="classic")
    owner = it.member(group, [topic], library, pause=(number, 500), protocol="classic")
    owner.process.wait_for_event("paused", timeout_s=40)
    it.from_now()
    it.seconds(20, 23)
    it.is_told(
        "one partition of sixteen stands still while its siblings are read", owner,
        [told.partition(topic, number)], rf"{STANDS}|{NOT_READ}", affected=[feed, owner],
        never=[told.client(good), told.partition(topic, *({*range(16)} - {number}))], topic=topic, partition=number,
    )  # fmt: skip


@fault(libraries=("franz", "sarama"))
def commits_slower_than_log(it: Incident) -> None:
    """A handler takes longer for a record than records take to come; what it fetches runs ahead of what it commits."""
    (topic,) = it.topics(1)
    group, library = it.world.names.group(), it.library("franz", "sarama")
    it.begin()
    feed = it.sender(topic, "rate=15")
    member = it.member(group, [topic], library, handle_ms=180, protocol="classic", commit="record")
    it.from_now()
    it.seconds(32, 36)
    it.is_told(
        "a handler is slower than the records come, though its fetches run ahead", member,
        [told.any_of(told.client(member), told.name(group))],
        r"slow|behind|lag|grow|less than|keeps? up|cannot keep",
        affected=[feed, member], topic=topic,
    )  # fmt: skip


@fault(libraries=("kafka_python", "java"))
def heavy_record(it: Incident) -> None:
    """One heavy record keeps a member busy for 18 s: no fetch, no commit, while heartbeats go on."""
    (topic,) = it.topics(3)
    group, library = it.world.names.group(), it.library("kafka_python", "java")
    it.begin()
    feed = it.sender(topic, "rate=40", f"poison_at={it.rng.randrange(300, 400)}")
    member = it.member(group, [topic], library, poison_ms=18_000, commit="sync", protocol="classic")
    member.process.wait_for_event("poison", timeout_s=60)
    it.from_now()
    it.seconds(18, 18)
    it.until_now()
    it.seconds(5, 7)
    it.is_told(
        "one record stops all fetches of a member while its heartbeats go on", member,
        [told.any_of(told.client(member), told.name(group))],
        r"no fetch|not fetch|stopped|stood|stand|handler|processing|busy|heartbeat|poll",
        affected=[feed, member], topic=topic,
    )  # fmt: skip


@fault(libraries=("java",))
def one_never_commits(it: Incident) -> None:
    """Of two members one has enable.auto.commit=false and no commit in its code."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=12")
    good = it.member(group, [topic], "java", protocol="classic")
    bad = it.member(group, [topic], "java", protocol="classic", commit="never")
    it.from_now()
    it.seconds(28, 32)
    it.is_told(
        "one of two members reads and never commits", bad,
        [told.any_of(told.client(bad), told.partition(topic, 0, 1, 2, 3))],
        r"never commit|not commit|no commit|commit(?:s|ted)? nothing|without (?:a )?commit", affected=[feed, good, bad],
        never=[rf"{told.name(good.client_id)}[^.]*never commit"],
    )  # fmt: skip


@fault(libraries=("java",))
def transaction_past_timeout(it: Incident) -> None:
    """A transaction is open for much longer than its own timeout, since the broker looks for such ones too seldom."""
    host, node = it.other_broker("transaction.abort.timed.out.transaction.cleanup.interval.ms=3600000")
    topic, group = it.world.names.topic(), it.world.names.group()
    it.operate("create", f"topics={topic}:1", "copies=1", broker=node.endpoint)
    it.begin(at=host)
    name = f"{it.world.names.client()}-tx"
    feed = it.sender(topic, "rate=10", broker=node.endpoint)
    member = it.member(group, [topic], "java", broker=node.endpoint, read_committed=True, protocol="classic")
    hangs = it.sender(
        topic, f"transactional.id={name}", "rate=10", "hang_after=20", "transaction.timeout.ms=5000", library="java",
        broker=node.endpoint,
    )  # fmt: skip
    hangs.process.wait_for_event("hanging")
    it.from_now()
    it.seconds(30, 33)
    it.is_told(
        "a transaction is open for longer than its own timeout: readers of committed records stand", hangs,
        [told.name(name)], r"open|hang|never end|not end|older|timeout|last stable", affected=[feed, member, hangs],
        topic=topic, transactional_id=name,
    )  # fmt: skip


@fault(libraries=("librdkafka", "kafka_python"))
def lag_stays_one(it: Incident) -> None:
    """The offset of the last record is committed instead of the next: a quiet topic's lag stays one."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library("librdkafka", "kafka_python")
    it.begin()
    feed = it.sender(topic, "rate=2", "rounds=1")
    member = it.member(group, [topic], library, commit="last", protocol="classic")
    it.from_now()
    it.seconds(26, 30)
    it.is_told(
        "each commit is the last record's offset, not the next", member,
        [told.any_of(told.client(member), told.name(group))],
        r"last (?:record|offset|message|handled|read)|one (?:record )?(?:less|short|below|behind|too)|instead of the"
        r"|off by one|\+ ?1|lag (?:stays|of|is) (?:at )?(?:1|one)|read a record again",
        affected=[feed, member], topic=topic,
    )  # fmt: skip


@fault()
def one_slow_member(it: Incident) -> None:
    """One of three members takes ten times as long for a record as the others: only its partitions fall behind."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    library = it.library("franz", "librdkafka")
    it.begin()
    feed = it.sender(topic, "rate=90")
    good = [it.member(group, [topic], library, protocol="classic", handle_ms=5) for _ in range(2)]
    slow = it.member(group, [topic], library, protocol="classic", handle_ms=70)
    it.from_now()
    it.seconds(28, 32)
    it.is_told(
        "one member of three is slow: only its partitions fall behind", slow, [told.client(slow)],
        r"slow|behind|lag|grow|keeps? up|less than", affected=[feed, slow],
        never=[told.client(one) for one in good],
    )  # fmt: skip


@fault(libraries=("franz", "java", "librdkafka"))
def topic_misspelt(it: Incident) -> None:
    """A member subscribes to a topic that does not exist: it asks for it again and again and reads nothing."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library("franz", "java", "librdkafka")
    wrong = f"{topic}s"
    it.begin()
    feed = it.sender(topic, "rate=20")
    it.from_now()
    member = it.member(group, [wrong], library, protocol="classic", wait=False)
    it.seconds(28, 32)
    it.is_told(
        "a member subscribes to a topic that does not exist", member, [told.name(wrong)],
        r"not exist|unknown|UNKNOWN_TOPIC|no such|does not know|not there|missing", affected=[member], topic=wrong,
        never=[told.client(feed)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def records_wait_in_client(it: Incident) -> None:
    """linger.ms=12000: records wait in the producer for twelve seconds before they are sent."""
    (topic,) = it.topics(1)
    it.begin()
    it.from_now()
    slow = it.add(
        programs.librdkafka(it, "stamp", f"topic={topic}", "rate=10", "linger.ms=12000", "message.timeout.ms=60000"),
        "librdkafka", topics=(topic,),
    )  # fmt: skip
    quick = it.sender(topic, "rate=10")
    member = it.member(it.world.names.group(), [topic])
    it.seconds(40, 44)
    it.is_told(
        "a producer sends its records some twelve seconds after their time", slow, [told.client(slow)],
        r"linger|old|older|before (?:it was|they were) sent|behind packet time|late|delay|wait|after their time",
        affected=[slow, member], never=[told.client(quick)], least="info", topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def crash_at_record(it: Incident) -> None:
    """A member dies at one record, is started again, and dies at it again."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=20", "poison_at=110")
    client_id, host = it.world.names.client(), it.new_host()
    it.from_now()
    started = []
    for _ in range(6):
        one = it.add(
            programs.librdkafka(it, "crash", f"group.id={group}", f"topics={topic}", "session.timeout.ms=6000",
                                "heartbeat.interval.ms=1000"),
            "librdkafka", client_id=client_id, host=host, group=group, topics=(topic,),
        )  # fmt: skip
        started.append(one)
        one.process.wait_for_event("poison", timeout_s=40)
        it.seconds(0.8, 1.5)
    event = started[-1].process.named_events("poison")[0]
    it.is_told(
        "a member dies at one record each time it is started", started[0],
        [told.any_of(told.client(started[0]), told.name(group), told.partition(topic, event["partition"]))],
        r"die|dies|crash|restart|again|ended|closed|came back|re-?join|thrown out|session|evict|expired",
        affected=[feed, *started], topic=topic, partition=event["partition"], offset=event["offset"],
    )  # fmt: skip
