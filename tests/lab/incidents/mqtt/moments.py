"""Q7 and Q1, the wrong moment: a server that pauses again and again, ears that come too late."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.told_words import LOST, SILENT
from tests.lab.incidents.told import accusing, called, saying


@fault()
def pauses_again_and_again(it: Incident) -> None:
    """A server's process stands still for some two seconds every ten: all of its clients wait each time."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(4)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    for host, name in zip(("one", "two", "three", "four"), names, strict=True):
        values = [mqtt.publish(f"{topic}/{name}", 1, payload=f"n{n}", pause_s=0.25) for n in range(240)]
        it.follow(host, name, *values, mqtt.STAY)
    for _ in range(5):
        it.seconds(7, 8)
        it.broker.freeze()
        it.seconds(2, 2.5)
        it.broker.thaw()
    it.seconds(4, 5)
    address = it.hosts["broker"].address
    wordings = ["stood still", "stands still", "did not (answer|respond)", "answered nobody", "replied to nobody",
                "no (answer|response)", "stall", "paus", "unanswered", "silent", "all (of its )?clients", "slow",
                "late", "waited", "latency"]  # fmt: skip
    it.ask("Q7", "a server that pauses again and again", {"server": it.broker.endpoint},
           [saying(called(address), wordings)], sides=("server",))  # fmt: skip
    it.truth["cluster_wide"] = True


@fault()
def subscribes_too_late(it: Incident) -> None:
    """A device says hello and subscribes a second later; the answer to its hello came before, to nobody."""
    topic, servant, device, good = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    copies = {f"{topic}/hello/": f"{topic}/config/"}
    served = (mqtt.subscribe((f"{topic}/hello/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    it.follow("five", servant, *served, library="paho", copies=copies).wait_for_event("subscribed")
    for _ in range(7):
        for host, name in (("one", device), ("two", good)):
            hello = mqtt.publish(f"{topic}/hello/{name}", 1, payload="boot")
            ears = mqtt.subscribe((f"{topic}/config/{name}", 1))
            steps = (hello, mqtt.idle(1), ears) if name == device else (ears, hello)
            it.follow(host, name, *steps, mqtt.idle(2), mqtt.DISCONNECT).finish()
        it.seconds(0.5, 1)
    it.ask("Q1", "subscribed after the answer has come", {"topic": f"{topic}/config/{device}", **it.who("one", device)},
           [saying(called(device, f"{topic}/config/{device}"), [*LOST, *SILENT, "no subscri", "late", "before"])],
           [accusing(good)])  # fmt: skip
