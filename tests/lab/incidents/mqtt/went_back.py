"""Q2, what went back or stayed behind: a will that no birth replaces, a server with an old copy on its disk."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.sessions import KEPT
from tests.lab.incidents.told import accusing, called, saying

OLD = ["old", "stale", "outdated", "went back", "back to", "earlier", "previous", "before the restart", "revert",
       "not the last", "lost", "retained"]  # fmt: skip


@fault()
def no_birth_after_will(it: Incident) -> None:
    """A device is killed and comes back without its birth message: to each new screen it is offline, and it works."""
    topic, device, screen = it.names.topic(), it.names.client(), it.names.client()
    status = f"{topic}/status"
    will = {"topic": status, "payload": "offline", "qos": 1, "retain": True}
    settings = {"will": will, "keep_alive": 20, "version": it.version()}
    birth = mqtt.publish(status, 1, payload="online", retain=True)
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/flow", 1, payload=f"n{n}", pause_s=0.6) for n in range(80)]
    first = it.follow("one", device, birth, *values, mqtt.STAY, **settings)
    first.wait_for_event("published", 10)
    first.kill()
    it.seconds(2, 3)
    it.follow("one", device, *values, mqtt.DISCONNECT, **settings)
    for _ in range(4):
        it.seconds(5, 7)
        looks = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.idle(2), mqtt.DISCONNECT)
        it.follow("two", screen, *looks).finish()
    wordings = ["will", "offline", "birth", "status", *OLD]
    it.ask("Q2", "a will that no birth replaces", {"topic": status, **it.who("one", device)},
           [saying(called(device, status), wordings)], [accusing(screen)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, settings=(*KEPT, "autosave_interval 0")))
def old_copy_after_crash(it: Incident) -> None:
    """The server's power fails, and it starts with the copy on its disk: retained values are those of long ago."""
    topic, writer, screen = it.names.topic(), it.names.client(), it.names.client()
    own = f"{topic}/setpoint"
    early = [mqtt.publish(own, 1, payload=f"18.{n}", retain=True, pause_s=0.5) for n in range(4)]
    it.follow("one", writer, *early, mqtt.DISCONNECT).finish()
    it.broker.save()
    late = [mqtt.publish(own, 1, payload=f"23.{n}", retain=True, pause_s=0.7) for n in range(14)]
    it.follow("one", writer, *late, mqtt.DISCONNECT).finish()
    look = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.receive(1), mqtt.DISCONNECT)
    it.follow("two", screen, *look).finish()
    it.seconds(2, 3)
    it.broker.crash()
    it.seconds(3, 5)
    it.broker.start()
    for _ in range(3):
        it.seconds(2, 4)
        it.follow("two", screen, *look).finish()
    it.ask("Q2", "a server with an old copy of its retained values", {"topic": own, "server": it.broker.endpoint},
           [saying(called(own), OLD)], sides=("server",))  # fmt: skip
    it.truth["cluster_wide"] = True
