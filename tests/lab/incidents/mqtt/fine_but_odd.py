"""More work at which nothing is wrong, and which a hasty reader would accuse."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.misfits import odd


@fault()
def all_on_the_dot(it: Incident) -> None:
    """Eighteen devices whose clocks agree send at the same moment, every seven seconds; nothing is wrong."""
    topic, base = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    it.subscriber("three", it.names.client(), (f"{topic}/+", 0))
    process = odd(it, "one", "dot", base, topic)
    it.clients += [it.who("one", f"{base}-{n}") for n in range(18)]
    process.finish(90)
    it.healthy("devices whose clocks agree")


@fault()
def stand_by_takes_over(it: Incident) -> None:
    """Of two controllers one leads and the other is silent; the leader stops in order and the other goes on."""
    topic, names, version = it.names.topic(), [it.names.client() for _ in range(2)], it.version()
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    role, wanted = f"{topic}/leader", mqtt.subscribe((f"{topic}/leader", 1), (f"{topic}/measured", 1))
    measured = [mqtt.publish(f"{topic}/measured", 1, payload=f"{20 + n % 5}.{n % 10}", pause_s=0.5) for n in range(86)]
    it.follow("four", it.names.client(), *measured, mqtt.DISCONNECT)

    def leads(name: str, number: int) -> list[mqtt.Step]:
        orders = [mqtt.publish(f"{topic}/valve", 1, payload=f"{n * 13 % 100}", pause_s=1.0) for n in range(number)]
        return [mqtt.publish(role, 1, payload=name, retain=True), *orders]

    settings = {"version": version, "keep_alive": 10, "library": ("paho", "go")}
    first = (wanted, *leads(names[0], 20), mqtt.publish(role, 1, payload="free", retain=True), mqtt.DISCONNECT)
    it.follow("one", names[0], *first, **settings)
    second = (wanted, mqtt.idle(21.5), *leads(names[1], 18), mqtt.DISCONNECT)
    it.follow("two", names[1], *second, **settings).finish(90)
    it.healthy("a controller that stood by takes over")


@fault()
def settings_loaded_once(it: Incident) -> None:
    """An operator's script retains a hundred settings at once, each under its own topic, and ends; nothing is wrong."""
    topic = it.names.topic()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/level", 1, payload=f"{n % 7}.{n}", pause_s=0.5) for n in range(60)]
    it.follow("three", it.names.client(), *values, mqtt.DISCONNECT)
    it.seconds(8, 10)
    script = [mqtt.publish(f"{topic}/settings/{n}", 1, payload=f'{{"low": {n}, "high": {n + 9}}}', retain=True)
              for n in range(100)]  # fmt: skip
    it.follow("one", it.names.client(), *script, mqtt.DISCONNECT).finish(60)
    it.seconds(6, 8)
    look = (mqtt.subscribe((f"{topic}/settings/#", 1)), mqtt.receive(100), mqtt.idle(6), mqtt.DISCONNECT)
    it.follow("four", it.names.client(), *look).finish(60)
    it.seconds(4, 5)
    it.healthy("settings that are loaded once")


@fault()
def looks_at_all(it: Incident) -> None:
    """Somebody looks for a fault with mosquitto_sub and #, for half a minute, and stops it; nothing is wrong."""
    topic = it.names.topic()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    for host in ("three", "four"):
        values = [mqtt.publish(f"{topic}/{host}/value", 1, payload=f"{n % 8}.{n}", pause_s=0.5) for n in range(110)]
        state = mqtt.publish(f"{topic}/{host}/state", 1, payload="on", retain=True)
        it.follow(host, it.names.client(), state, *values, mqtt.DISCONNECT)
    it.seconds(10, 12)
    looks = it.tool("sub", "one", it.names.client(), "-t", "#", "-q", "0")
    it.seconds(26, 30)
    looks.interrupt()
    it.seconds(8, 10)
    it.healthy("somebody looks at all messages")
