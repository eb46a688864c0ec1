"""New ways of a service that others pay for: ids of transactions, keys in quotation marks, a flood of records."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.faults.nodes import CHECKED_EACH_SECOND, LOST
from tests.lab.incidents.incident import Incident


@fault()
def transactional_id_of_each_booking(it: Incident) -> None:
    """A service makes up a transactional id for each booking: the coordinator keeps each of them for a week."""
    (topic,) = it.topics(3)
    it.begin()
    good = it.sender(topic, "rate=10", "transactional.id=payments-0")
    member = it.member(it.world.names.group(), [topic], it.library("franz", "sarama"), protocol="classic")
    it.seconds(4, 5)
    it.from_now()
    bad = it.add(programs.aiokafka_habit(it, "books", f"topic={topic}", "every_s=0.6"), "aiokafka", topics=(topic,))
    it.seconds(40, 45)
    it.is_told(
        "a client has a new transactional id for each transaction", bad, [told.client(bad)],
        r"transactional|InitProducerId|producer ids?|new id|ids? of its|each transaction|\bids\b|connections?"
        r"|per (?:message|transaction|record)",
        affected=[bad], never=[told.accusing(good.client_id), told.accusing(member.client_id)],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def keys_in_quotation_marks(it: Incident) -> None:
    """One of two writers of the same keys is deployed with a JSON serialiser of keys: "customer-7" has quotes now."""
    (topic,) = it.topics(6, settings="cleanup.policy:compact")
    it.begin()
    member = it.member(it.world.names.group(), [topic], it.library("sarama", "franz"), protocol="classic")
    words = (f"topic={topic}", "rate=12")
    good = it.add(programs.deploy(it, "writes_keys", *words), "kafka_python", topics=(topic,))
    bad = it.add(programs.deploy(it, "writes_keys", *words), "kafka_python", topics=(topic,))
    bad.process.wait_for_event("session")
    it.seconds(16, 18)
    bad.process.terminate()
    it.seconds(1, 2)
    it.from_now()
    after = it.add(programs.deploy(it, "writes_keys", *words, "serialiser=json"), "kafka_python", topics=(topic,),
                   host=bad.host, client_id=bad.client_id)  # fmt: skip
    it.seconds(34, 38)
    it.is_told(
        "a client writes its keys in another form since its deployment: a key's records lie in two partitions", after,
        [told.any_of(told.client(bad), told.name(topic))],
        r"keys?\b.*(?:quot|form|partition|seriali|differ|two|JSON|chang|another|new|other|spread|mixed)"
        r"|(?:quot|form|partition|seriali|differ|two|JSON|chang|another|new|other|spread|mixed)\w*\b.*\bkeys?\b",
        # Whoever sees one key in two partitions may name both of its writers.
        affected=[bad, after, good, member], topic=topic,
    )  # fmt: skip


@fault(libraries=("franz", "sarama"))
def flood_pushes_out_unread(it: Incident) -> None:
    """retention.bytes of a topic is small; an export of one service fills it, and pushes out what others wrote."""
    other = Other(it, *CHECKED_EACH_SECOND, topic_settings="retention.bytes:1200000,segment.bytes:1048576")
    group, library = it.world.names.group(), it.library("franz", "sarama")
    other.begin()
    feed = it.sender(other.topic, "rate=30", "size=200", broker=other.broker)
    quick = it.member(it.world.names.group(), [other.topic], "librdkafka", broker=other.broker, protocol="classic")
    slow = it.member(group, [other.topic], library, broker=other.broker, protocol="classic", handle_ms=18,
                     fetch_bytes=100_000, session_ms=20_000)  # fmt: skip
    it.seconds(10, 12)
    it.from_now()
    bulk = it.sender(other.topic, "rate=170", "size=3000", broker=other.broker)
    it.seconds(20, 22)
    bulk.process.terminate()
    it.until_now()
    it.seconds(22, 25)
    it.is_told(
        "a flood of one client pushed records out of a topic before a reader came to them", bulk,
        [told.any_of(told.partition(other.topic, 0, 1), told.name(other.topic), told.name(group), told.client(slow),
                     told.client(bulk))],
        rf"{LOST}|push\w*|trimm|overtak|overr[au]n|too small", affected=[feed, slow, bulk],
        topic=other.topic, group=group, never=[told.accusing(quick.client_id), r"(?i)an operator"],
    )  # fmt: skip
