"""Share groups (KIP-932)."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import SHORT_TIMES


@fault(libraries=("java",))
def share_redelivery(it: Incident) -> None:
    """A member of a share group gives one record back again and again, until it is archived."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    server = f"bootstrap.servers={it.world.endpoint}"
    it.start(
        "share", "ops", clients.java_command("administer", server, "client.id=setup", "parts=share", f"group={group}")
    ).finish(60)
    it.begin()
    feed = it.sender(topic, "rate=20", f"poison_at={it.rng.randrange(30, 90)}")
    member = it.add(
        lambda name: clients.java_command(
            "shareWork", server, f"client.id={name}", f"group.id={group}", f"topic={topic}"
        ),
        "java",
        group=group,
        topics=(topic,),
    )
    it.from_now()
    member.process.wait_for_event("released", 3, timeout_s=45)
    it.seconds(8, 10)
    event = member.process.named_events("released")[0]
    it.is_about(
        "a record of a share group is released again and again",
        member,
        ["KAF318"],
        (),
        [feed, member],
        topic=topic,
        partition=event["partition"],
        offset=event["offset"],
    )


@fault(libraries=("java",))
def share_lock_too_short(it: Incident) -> None:
    """A member of a share group works for seven seconds on what is locked for three: all comes again, for nothing."""
    other, group = Other(it, "group.share.record.lock.duration.ms=3000", *SHORT_TIMES), it.world.names.group()
    server = f"bootstrap.servers={other.broker}"
    it.start(
        "share", "ops", clients.java_command("administer", server, "client.id=setup", "parts=share", f"group={group}")
    ).finish(60)
    other.begin()
    feed = it.sender(other.topic, "rate=15", broker=other.broker)
    it.from_now()
    bad = it.add(
        lambda name: clients.java_command("shareWork", server, f"client.id={name}", f"group.id={group}",
                                          f"topic={other.topic}", "hold_ms=7000"),
        "java", group=group, topics=(other.topic,),
    )  # fmt: skip
    bad.process.wait_for_event("working", 2, timeout_s=60)
    it.seconds(28, 32)
    it.is_told(
        "a share group's records are locked for a shorter time than its member works on them", bad,
        [told.any_of(told.client(bad), told.name(group), told.name(other.topic))],
        r"lock|acqui|again|redeliver|deliver|INVALID_RECORD_STATE|\b121\b|time-?out|expire|refus|slow",
        affected=[feed, bad],        topic=other.topic,
    )  # fmt: skip
