"""Share groups (KIP-932)."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.incident import Incident


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
