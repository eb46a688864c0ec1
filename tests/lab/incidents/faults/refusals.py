"""What is refused for good: rights, settings that the broker does not take, records that the topic does not take."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import WITH_SASL, Other
from tests.lab.incidents.incident import Client, Incident
from tests.lab.incidents.world import PASSWORD, SASL_PORT, USER

WITH_RIGHTS = (
    *WITH_SASL,
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
    "allow.everyone.if.no.acl.found=true",
)
RIGHTS = r"authori[sz]|ACL|not allowed|denied|permission|right"
AS_USER = (f"user={USER}", f"password={PASSWORD}")


def denied(it: Incident, resource: str, name: str = "") -> tuple[Other, str]:
    """Return a broker that denies the user all on a group, topic or transactional id, and its name."""
    other = Other(it, *WITH_RIGHTS)
    name = name or (other.topic if resource == "topic" else it.world.names.group())
    it.start(
        "deny", "ops",
        clients.python_command("librdkafka_admin", "deny", f"bootstrap.servers={other.broker}", "client.id=setup",
                               f"resource={resource}", f"name={name}", f"user={USER}"),
    ).finish(60)  # fmt: skip
    other.begin()
    return other, name


def about_rights(it: Incident, what: str, bad: Client, name: str, good: list[Client], **more: object) -> None:
    """Say who has no right to what."""
    it.is_told(f"{what}: refused once", bad, [told.any_of(told.name(name), told.client(bad))], RIGHTS, affected=[bad],
               never=[told.client(one) for one in good], **more)  # fmt: skip


@fault()
def no_right_to_group(it: Incident) -> None:
    """A member may not read its group: GROUP_AUTHORIZATION_FAILED (30), once; the application ends its work."""
    other, group = denied(it, "group")
    good = other.around()
    it.seconds(3, 5)
    it.from_now()
    bad = it.add(
        programs.aiokafka(it, "work", f"topics={other.topic}", f"group={group}", *AS_USER, broker=other.sasl),
        "aiokafka", group=group, topics=(other.topic,),
    )  # fmt: skip
    it.seconds(14, 16)
    about_rights(it, "a client has no right to its group", bad, group, good)


@fault()
def no_right_to_topic(it: Incident) -> None:
    """A producer may not write to its topic: TOPIC_AUTHORIZATION_FAILED (29), once."""
    other, topic = denied(it, "topic")
    good = other.around()
    it.seconds(3, 5)
    it.from_now()
    bad = it.add(
        programs.aiokafka(it, "send", f"topic={topic}", "gives=up", *AS_USER, broker=other.sasl), "aiokafka",
        topics=(topic,),
    )  # fmt: skip
    it.seconds(14, 16)
    about_rights(it, "a client has no right to its topic", bad, topic, good)


@fault(libraries=("librdkafka",))
def no_right_to_transactional_id(it: Incident) -> None:
    """A producer may not use its transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), once."""
    other, name = denied(it, "transactional_id")
    good = other.around()
    it.seconds(3, 5)
    it.from_now()
    bad = it.add(
        programs.librdkafka(it, "begin_transactions", f"transactional.id={name}", f"topic={other.topic}",
                            "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.username={USER}",
                            f"sasl.password={PASSWORD}", broker=other.sasl),
        "librdkafka", topics=(other.topic,),
    )  # fmt: skip
    it.seconds(16, 18)
    about_rights(it, "a client has no right to its transactional id", bad, name, good, transactional_id=name)


@fault(libraries=("librdkafka",))
def transaction_timeout_too_long(it: Incident) -> None:
    """transaction.timeout.ms is above what the broker takes: INVALID_TRANSACTION_TIMEOUT (50), once."""
    (topic,) = it.topics(1)
    it.begin()
    feed = it.sender(topic, "rate=10")
    name = f"{it.world.names.client()}-tx"
    it.from_now()
    bad = it.add(
        programs.librdkafka(it, "begin_transactions", f"transactional.id={name}", f"topic={topic}",
                            "transaction.timeout.ms=3600000"),
        "librdkafka", topics=(topic,),
    )  # fmt: skip
    it.seconds(15, 17)
    it.is_told("transaction.timeout.ms is longer than the broker takes", bad,
               [told.any_of(told.client(bad), told.name(name))],
               r"transaction\.(?:max\.)?timeout|INVALID_TRANSACTION_TIMEOUT",
               affected=[bad], never=[told.client(feed)], transactional_id=name)  # fmt: skip


@fault()
def mechanism_not_offered(it: Incident) -> None:
    """A client wants SCRAM-SHA-512, the broker offers PLAIN alone: UNSUPPORTED_SASL_MECHANISM (33)."""
    (topic,) = it.topics(1)
    it.begin()
    feed = it.sender(topic, "rate=10")
    it.from_now()
    bad = it.add(
        programs.kafkajs(it, "knocks", "mechanism=scram-sha-512", *AS_USER,
                         broker=f"{it.world.hosts['broker'].address}:{SASL_PORT}"),
        "kafkajs", topics=(topic,),
    )  # fmt: skip
    it.seconds(14, 17)
    it.is_told("a client wants a SASL mechanism that the broker does not offer", bad,
               [told.any_of(told.client(bad))], r"SCRAM-SHA-512|mechanism", affected=[bad],
               never=[told.client(feed), r"(?i)wrong password"])  # fmt: skip


@fault()
def group_is_full(it: Incident) -> None:
    """group.max.size=2, and a third member: GROUP_MAX_SIZE_REACHED (81)."""
    other = Other(it, "group.max.size=2", partitions=4)
    other.begin()
    group = it.world.names.group()
    feed = it.sender(other.topic, "rate=20", broker=other.broker)
    how = {"broker": other.broker, "protocol": "classic", "session_ms": 10_000}
    good = [it.member(group, [other.topic], "franz", **how) for _ in range(2)]  # type: ignore[arg-type]
    it.seconds(2, 3)
    it.from_now()
    bad = it.member(group, [other.topic], "franz", wait=False, **how)  # type: ignore[arg-type]
    it.seconds(20, 23)
    it.is_told("a group is full: a third member is refused", bad, [told.any_of(told.client(bad), told.name(group))],
               r"full|GROUP_MAX_SIZE|group\.max\.size|too many members|\b81\b", affected=[bad, *good],
               never=[told.client(feed)])  # fmt: skip


@fault(libraries=("librdkafka",))
def deleted_topic_written(it: Incident) -> None:
    """A topic is deleted, and its producer goes on to write to it."""
    topic, other = it.topics(2, 2)
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    bad = it.sender(topic, "rate=20", "topic.metadata.propagation.max.ms=2000")
    feed = it.sender(other, "rate=20")
    it.seconds(6, 8)
    it.from_now()
    it.operate("delete", f"topic={topic}", **operator)
    it.seconds(20, 23)
    it.is_told("a topic was deleted, and its producer goes on", bad, [told.name(topic)],
               r"delet|UNKNOWN_TOPIC|not exist|does not know|gone|no longer", affected=[bad],
               never=[told.client(feed)], topic=topic)  # fmt: skip
    it.truth["affected"]["clients"].append(
        {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    )


@fault(libraries=("librdkafka",))
def clock_ahead_refused(it: Incident) -> None:
    """A writer's clock is three hours ahead: its records are refused (INVALID_TIMESTAMP, 32)."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    it.from_now()
    bad = it.add(programs.librdkafka(it, "stamp", f"topic={topic}", "rate=10", "shift_s=10800"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    it.seconds(18, 21)
    it.is_told("records are refused since their time is three hours ahead", bad, [told.client(bad)],
               r"INVALID_TIMESTAMP|timestamp|clock|record times?|ahead", affected=[bad], never=[told.client(feed)],
               topic=topic)  # fmt: skip


@fault(libraries=("librdkafka",))
def no_key_to_compacted(it: Incident) -> None:
    """Records without a key go to a compacted topic: refused (INVALID_RECORD, 87)."""
    (topic,) = it.topics(2, settings="cleanup.policy:compact")
    it.begin()
    feed = it.sender(topic, "rate=20")
    it.from_now()
    bad = it.add(programs.librdkafka(it, "stamp", f"topic={topic}", "rate=10", "key=no"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    it.seconds(18, 21)
    it.is_told("records without a key are written to a compacted topic", bad, [told.client(bad)],
               r"INVALID_RECORD|\bkey\b|compact|validation", affected=[bad], never=[told.client(feed)],
               topic=topic)  # fmt: skip
