"""Q5, Q8 and Q9, programs of a service and of a plant: properties that gather, births and updates without an end."""

from __future__ import annotations

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.server_rules import program
from tests.lab.incidents.mqtt.told_words import LOST, REPEATED, SILENT
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import Process

MUCH = ["much", "many", "more", "most", "large", "share of", "bytes", "traffic", "grow", "times", "a second", "rate",
        "often", "again and again"]  # fmt: skip


def plant(it: Incident, host: str, work: str, client_id: str, topic: str, *words: str, version: int = 4) -> Process:
    """Start a program of a plant."""
    it.clients.append(it.who(host, client_id))
    it.libraries.append("paho")
    place = it.broker.endpoint.split(":")
    return it.start(host, *python_command("paho_plant", *place, str(version), work, client_id, topic, *words))


@fault()
def baggage_grows(it: Incident) -> None:
    """A program of 5.0 uses its properties again and adds to them: each message carries all trace numbers before it."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1), version=5)
    program(it, "two", "baggage", good, f"{topic}/b", "new")
    program(it, "one", "baggage", bad, f"{topic}/a", "reused").finish(90)
    wordings = [*MUCH, "propert", "longer", "larger", "size", "header"]
    it.ask("Q8", "user properties that gather", it.who("one", bad), [saying(called(bad, f"{topic}/a"), wordings)],
           [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=("mosquitto", "hivemq")))
def answers_without_correlation(it: Incident) -> None:
    """One of two servants of 5.0 leaves the question's correlation data away: who asked waits, and asks again."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    running = {name: program(it, host, "answers", name, topic, kind)
               for host, name, kind in (("one", bad, "leaves"), ("two", good, "keeps"))}  # fmt: skip
    for one in running.values():
        one.wait_for_event("ready")
    asking = program(it, "three", "asks", it.names.client(), topic)
    asking.finish(120)
    often([one for one in asking.named_events("asked") if one["again"]], 5)
    wordings = [*REPEATED, *SILENT, *LOST, "correlat", "other", "match", "belong"]
    it.ask("Q9", "answers that belong to no question", it.who("one", bad), [saying(called(bad), wordings)],
           [accusing(good)])  # fmt: skip


@fault()
def rebirth_without_end(it: Incident) -> None:
    """A node of Sparkplug does not begin its numbers anew at its birth: its host wants its birth after each value."""
    topic, host, bad = it.names.topic(), it.names.client(), it.names.client()
    good = [it.names.client() for _ in range(3)]
    head = plant(it, "five", "host", host, topic)
    head.wait_for_event("connected")
    running = [plant(it, one, "node", name, topic, kind) for one, name, kind in
               (("one", bad, "bad"), *((place, name, "good") for place, name in zip(("two", "three", "four"), good,
                                                                                 strict=True)))]  # fmt: skip
    running[0].finish(90)
    often([one for one in head.named_events("rebirth") if one["node"] == bad], 20)
    topics = (f"spBv1.0/{topic}/NBIRTH/{bad}", f"spBv1.0/{topic}/NCMD/{bad}", f"spBv1.0/{topic}/NDATA/{bad}")
    wordings = [*MUCH, *REPEATED, "birth", "unlike", "differ", "seq"]
    it.ask("Q5", "births without an end", {"any": [it.who("one", bad), it.who("five", host)]},
           [saying(called(bad, host, *topics), wordings)], [accusing(*good)])  # fmt: skip


@fault()
def update_starts_over(it: Incident) -> None:
    """A device finds its update wrong and asks for it again, without an end; its peers ask for it once."""
    topic, bad, good = it.names.topic(), it.names.client(), [it.names.client() for _ in range(2)]
    version = it.version()
    plant(it, "five", "source", it.names.client(), topic, version=version).wait_for_event("connected")
    it.subscriber("four", it.names.client(), (f"{topic}/state/#", 1), (f"{topic}/alive/#", 1))
    it.seconds(0.5, 1)
    first = plant(it, "one", "device", bad, topic, "bad", version=version)
    for host, name in zip(("two", "three"), good, strict=True):
        it.seconds(2, 3)
        plant(it, host, "device", name, topic, "good", version=version)
    first.finish(90)
    wordings = [*MUCH, *REPEATED, "unlike", "update", "asks", "piece", "ends? never", "without end"]
    it.ask("Q5", "an update without an end", it.who("one", bad),
           [saying(called(bad, f"{topic}/piece/{bad}", f"{topic}/want/{bad}"), wordings)],
           [accusing(*good)])  # fmt: skip


@fault(Wanted(kinds=("moquette",), alone=True))
def night_mode(it: Incident) -> None:
    """At a command all machines of a plant measure sixteen times less often, and more again; nothing is wrong."""
    topic, control = it.names.topic(), it.names.client()
    it.subscriber("five", it.names.client(), (f"{topic}/value/#", 1))
    for host in ("one", "one", "two", "two", "three", "three"):
        plant(it, host, "machine", it.names.client(), topic)
    modes = [mqtt.publish(f"{topic}/mode", 1, payload=mode) for mode in ("night", "day")]
    steps = (mqtt.idle(16), modes[0], mqtt.idle(22), modes[1], mqtt.idle(14), mqtt.DISCONNECT)
    it.follow("four", control, *steps).finish(90)
    it.healthy("machines that measure less by night")


@fault(Wanted(kinds=("hivemq",)))
def heartbeats(it: Incident) -> None:
    """Twelve door locks say every three seconds that they are well, always with the same word; nothing is wrong."""
    topic, version = it.names.topic(), it.version()
    it.subscriber("five", it.names.client(), (f"{topic}/+/alive", 0), (f"{topic}/+/opened", 1))
    running = []
    for number in range(12):
        name = it.names.client()
        beats = [mqtt.publish(f"{topic}/{name}/alive", 0, payload="OK", pause_s=3) for _ in range(13)]
        if number % 4 == 1:
            beats.insert(number, mqtt.publish(f"{topic}/{name}/opened", 1, payload=f"card {7000 + number * 91}"))
        host = ("one", "two", "three", "four")[number % 4]
        running.append(it.follow(host, name, *beats, mqtt.DISCONNECT, version=version, library=("paho", "go")))
        it.seconds(0.1, 0.3)
    for one in running:
        one.finish(90)
    it.healthy("locks that say that they are well")


@fault(Wanted(kinds=("mosquitto",), settings=("sys_interval 1",)))
def watches_the_server(it: Incident) -> None:
    """A monitor gets the server's own figures, some twenty each second and more than all else; nothing is wrong."""
    topic = it.names.topic()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/tank", 1, payload=f'{{"level": {n % 8}.{n}}}', pause_s=1) for n in range(40)]
    it.follow("three", it.names.client(), *values, mqtt.DISCONNECT)
    it.tool("sub", "one", it.names.client(), "-t", "$SYS/#", "-q", "0")
    it.seconds(36, 38)
    it.healthy("the server's own figures")


@fault()
def meter_exchanged(it: Incident) -> None:
    """A meter is exchanged: the old one leaves in order, the new one begins at 0 on its topic; nothing is wrong."""
    topic, version = it.names.topic(), it.version()
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))

    def readings(place: str, begins: int, number: int) -> list[mqtt.Step]:
        payloads = [f'{{"seq": {n}, "kWh": {begins + n * 3 // 2}}}' for n in range(number)]
        return [mqtt.publish(f"{topic}/{place}/reading", 1, payload=one, pause_s=0.7) for one in payloads]

    for host, place, begins in (("two", "flat2", 9120), ("three", "flat3", 733)):
        it.follow(host, it.names.client(), *readings(place, begins, 70), mqtt.DISCONNECT, version=version)
    last = [mqtt.publish(f"{topic}/flat1/event", 1, payload="taken out at 48240 kWh"), mqtt.DISCONNECT]
    it.follow("one", it.names.client(), *readings("flat1", 48_210, 20), *last, version=version).finish(60)
    it.seconds(6, 8)
    first = mqtt.publish(f"{topic}/flat1/event", 1, payload="put in at 0 kWh")
    it.follow("one", it.names.client(), first, *readings("flat1", 0, 32), mqtt.DISCONNECT, version=version).finish(60)
    it.healthy("a meter that is exchanged")
