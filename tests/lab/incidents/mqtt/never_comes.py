"""Q1 and Q2, what does not come, comes unasked or stays as it was: rules of topics and of retained messages."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.told_words import LOST, SILENT
from tests.lab.incidents.told import accusing, called, saying

NEVER = [*LOST, *SILENT, "no subscri", "without (a )?subscri", "not match", "no retained", "retain"]


@fault(Wanted(kinds=MOSQUITTO))
def dollar_topic(it: Incident) -> None:
    """New devices publish to topics that begin with $; the archive's filter # does not fit them and it gets none."""
    topic, archive, bad, good = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    own = f"${topic}/weight"
    it.subscriber("two", archive, ("#", 1))
    plain = [mqtt.publish(f"{topic}/speed", 1, payload=f"n{n}", pause_s=0.4) for n in range(80)]
    it.follow("three", good, *plain, mqtt.DISCONNECT)
    odd = [mqtt.publish(own, 1, payload=f"n{n}", pause_s=0.4) for n in range(75)]
    it.follow("one", bad, *odd, mqtt.DISCONNECT).finish(90)
    it.ask("Q1", "topics with a $ that the filter # does not fit", {"topic": own, **it.who("one", bad)},
           [saying([*called(bad), r"\$" + topic.replace(".", r"\.")], NEVER)], [accusing(good)])  # fmt: skip


@fault()
def retain_handling_never(it: Incident) -> None:
    """A screen of 5.0 asks for no retained messages when it subscribes: after each start it is empty for long."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    for number, host in enumerate(("three", "four")):
        states = [
            mqtt.publish(f"{topic}/{number}/state", 1, payload=f"s{n}", retain=True, pause_s=26) for n in range(3)
        ]
        it.follow(host, it.names.client(), *states, mqtt.STAY)
    it.seconds(2, 3)
    for _ in range(5):
        for host, client_id, handling in (("one", bad, 2), ("two", good, 0)):
            wanted = mqtt.subscribe({"name": f"{topic}/+/state", "qos": 1, "retainHandling": handling})
            steps = (wanted, mqtt.idle(it.rng.uniform(3, 4)), mqtt.DISCONNECT)
            it.follow(host, client_id, *steps, library="paho", version=5).finish()
        it.seconds(0.5, 1)
    it.ask("Q1", "retained messages that are not asked for", it.who("one", bad),
           [saying(called(bad), [*NEVER, "Retain Handling", "state"])], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=("mochi",)))  # Mosquitto 2.0 sends retained messages to shared subscriptions, too
def share_gets_no_retained(it: Incident) -> None:
    """Workers read their settings by a shared subscription, which gives no retained messages: they begin without."""
    topic, writer, good = it.names.topic(), it.names.client(), it.names.client()
    settings, names = f"{topic}/settings", [it.names.client() for _ in range(2)]
    version = it.version()
    it.follow("four", writer, mqtt.publish(settings, 1, payload='{"limit": 7}', retain=True), mqtt.DISCONNECT).finish()
    jobs = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=0.5) for n in range(84)]
    it.follow("five", it.names.client(), *jobs, mqtt.DISCONNECT)
    for _ in range(3):
        running = []
        for host, client_id, share in (("one", names[0], 1), ("two", names[1], 1), ("three", good, 0)):
            prefix = "$share/crew/" if share else ""
            steps = (mqtt.subscribe((f"{prefix}{settings}", 1)), mqtt.subscribe((f"$share/crew/{topic}/job/#", 1)))
            stays = (mqtt.idle(it.rng.uniform(9, 10)), mqtt.DISCONNECT)
            running.append(it.follow(host, client_id, *steps, *stays, version=version))
        for one in running:
            one.finish()
        it.seconds(0.5, 1)
    blamed = {"any": [it.who("one", names[0]), it.who("two", names[1])], "topic": settings}
    it.ask("Q1", "a shared subscription gets no retained message", blamed,
           [saying(called(*names, settings), NEVER)], [accusing(good)])  # fmt: skip


@fault()
def leaves_without_will(it: Incident) -> None:
    """A device leaves in order as it is switched off, so that its will is not sent: to all screens it is online."""
    topic, screen, device, good = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    version = it.version()
    for host, client_id in (("one", device), ("two", good)):
        status = f"{topic}/{client_id}/status"
        will = {"topic": status, "payload": "offline", "qos": 1, "retain": True}
        readings = [mqtt.publish(f"{topic}/{client_id}/flow", 1, payload=f"n{n}", pause_s=0.5) for n in range(22)]
        end = [mqtt.publish(status, 1, payload="offline", retain=True)] * (client_id == good)
        birth = mqtt.publish(status, 1, payload="online", retain=True)
        it.follow(host, client_id, birth, *readings, *end, mqtt.DISCONNECT, will=will, version=version)
    it.seconds(13, 14)
    for _ in range(5):
        it.seconds(3, 5)
        looks = (mqtt.subscribe((f"{topic}/+/status", 1)), mqtt.idle(1.5), mqtt.DISCONNECT)
        it.follow("four", screen, *looks).finish()
    wordings = ["stale", "old", "outdated", "offline", "online", "will", "retain", "left", "gone", "away",
                "DISCONNECT", "no longer", *SILENT]  # fmt: skip
    it.ask("Q2", "a device that is gone and online", {"topic": f"{topic}/{device}/status", **it.who("one", device)},
           [saying(called(device, f"{topic}/{device}/status"), wordings)], [accusing(screen)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def unsubscribes_in_vain(it: Incident) -> None:
    """A program of 5.0 unsubscribes from a filter that it does not have, by a slip: what it wants no more goes on."""
    topic, reader, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    for host, client_id, wrong in (("one", reader, "/"), ("three", good, "")):
        filters = mqtt.subscribe((f"{topic}/+/trace", 1), (f"{topic}/+/alarm", 1))
        off = (mqtt.unsubscribe(f"{topic}/+/trace{wrong}"), mqtt.idle(4))
        steps = (filters, mqtt.idle(7), *off, *(off if wrong else ()), *(off if wrong else ()))
        it.follow(host, client_id, *steps, mqtt.STAY, mqtt.DISCONNECT, version=5, library="paho")
    it.seconds(1, 2)
    lines = [
        mqtt.publish(f"{topic}/{n % 3}/{'alarm' if n % 40 == 9 else 'trace'}", 1, payload=f"line {n}", pause_s=0.1)
        for n in range(240)
    ]
    it.follow("two", writer, *lines, mqtt.DISCONNECT).finish(90)
    wordings = ["unsubscri", "no subscription", "0x11", "\\b17\\b", "not subscribed", "filter"]
    it.ask("Q5", "an UNSUBSCRIBE of what is not there", it.who("one", reader),
           [saying(called(reader), wordings)], [accusing(good), accusing(writer)])  # fmt: skip
