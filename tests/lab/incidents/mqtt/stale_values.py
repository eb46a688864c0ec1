"""Q2, what went back: retained values that are older than what their writer has said since."""

from __future__ import annotations

from tests.lab import firewall
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mosquitto import PORT


@fault()
def old_will(it: Incident) -> None:
    """A device without network is back under a new client id, and then the will of the old one replaces its birth."""
    topic = f"{it.names.topic()}/status"
    base, screen = it.names.client(), it.names.client()
    old, new = f"{base}-1", f"{base}-2"
    keep_alive = it.rng.randrange(6, 9)
    it.subscriber("three", it.names.client(), (topic, 1))
    settings = {"will": {"topic": topic, "payload": "offline", "qos": 1, "retain": True}, "keep_alive": keep_alive}
    birth = mqtt.publish(topic, 1, payload="online", retain=True)
    it.follow("one", old, birth, mqtt.STAY, **settings).wait_for_event("published")
    it.seconds(1, 2)
    ports = firewall.local_ports(it.hosts["one"], PORT)
    with firewall.dropping(it.hosts["broker"], it.hosts["one"].address, ports=ports):
        it.seconds(1, 2)
        it.follow("one", new, birth, mqtt.STAY, mqtt.DISCONNECT, **settings).wait_for_event("published")
        it.seconds(keep_alive * 1.5 + 2, keep_alive * 1.5 + 4)
    it.follow("two", screen, mqtt.subscribe((topic, 1)), mqtt.receive(1), mqtt.DISCONNECT).finish()
    it.seconds(1, 2)
    wordings = [
        "will.*(birth|newer|replac|overw|over |online|after|still)",
        "(stale|old|outdated).*(will|retained|offline)",
    ]
    it.ask(
        "Q2",
        "an old will replaces a newer birth",
        {"client_id": old, "topic": topic, "any": [it.who("one", old)]},
        [saying(called(topic, old), wordings)],
        [accusing(screen)],
    )


@fault()
def clear_forgotten(it: Incident) -> None:
    """A device gets a new name; what it retained under the old one is served to every screen as if it were there."""
    site, device, cleaner = it.names.topic(), it.names.client(), it.names.client()
    before, after = f"{site}/{device}-a", f"{site}/{device}-b"
    first = [mqtt.publish(f"{before}/state", 1, payload=f"on {n}", retain=True, pause_s=0.5) for n in range(5)]
    it.follow("one", f"{device}-a", *first, mqtt.DISCONNECT).finish()
    values = [mqtt.publish(f"{after}/state", 1, payload=f"on {n}", retain=True, pause_s=0.5) for n in range(40)]
    it.follow("one", f"{device}-b", *values, mqtt.DISCONNECT)
    for _ in range(5):
        it.seconds(2, 4)
        it.follow(
            "two", cleaner, mqtt.subscribe((f"{site}/+/state", 1)), mqtt.receive(2), mqtt.idle(0.5), mqtt.DISCONNECT
        ).finish()
    wordings = [
        "(stale|old|outdated|never cleared|not cleared|clear|no longer|nobody writes|unchanged).*retain",
        "retain.*(stale|old|outdated|clear|no longer|again|unchanged)",
    ]
    it.ask(
        "Q2",
        "a retained value that was not cleared",
        {"topic": f"{before}/state"},
        [saying(called(f"{before}/state"), wordings)],
        [saying(called(f"{after}/state"), ["stale", "outdated", "never cleared"])],
    )
