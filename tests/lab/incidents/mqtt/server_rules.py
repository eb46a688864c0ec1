"""Q4 to Q6, rules of a server that its clients do not know: quotas, tokens, names of users, shares, text, strangers."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.misfits import values
from tests.lab.incidents.mqtt.never_comes import NEVER
from tests.lab.incidents.mqtt.told_words import CUT_OFF, REFUSED
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mosquitto import User
from tests.lab.processes import Process

TAKEN_OVER = ["take.?over", "taken over", "throw", "thrown", "same (client|user|identity|name|login)", "0x8e",
              "each other", *CUT_OFF]  # fmt: skip
SERVICE, PLANT = User("svc-meters", "lab-svc-2Kd8"), User("plant", "lab-plant-6Hw1")


def program(it: Incident, host: str, work: str, client_id: str, topic: str, *words: str, version: int = 5) -> Process:
    """Start a program of a service."""
    it.clients.append(it.who(host, client_id))
    it.libraries.append("paho")
    place = it.broker.endpoint.split(":")
    return it.start(host, *python_command("paho_works", *place, str(version), work, client_id, topic, *words))


@fault(Wanted(kinds=MOSQUITTO, settings=("use_username_as_clientid true",), users=(PLANT, SERVICE), alone=True))
def user_is_the_identity(it: Incident) -> None:
    """A server takes the user's name for the client id: two services with one login throw each other out."""
    topic, names, good = it.names.topic(), [it.names.client() for _ in range(2)], it.names.client()
    version = it.version()
    states = [mqtt.publish(f"{topic}/belt", 1, payload=f"n{n}", pause_s=0.5) for n in range(75)]
    it.follow("three", good, mqtt.subscribe((f"{topic}/set", 1)), *states, mqtt.DISCONNECT, version=version)
    settings: dict[str, Any] = {"user": SERVICE.name, "password": SERVICE.password, "library": "paho", "reconnect_s": 2}
    running = []
    for host, name in zip(("one", "two"), names, strict=True):
        steps = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.KEEP_COMING)
        running.append(it.follow(host, name, *steps, version=version, **settings))
        it.seconds(4, 5)
    it.seconds(28, 32)
    for one in running:
        often(one.named_events("disconnected"), 4)
    it.ask("Q5", "two services with one login", {"any": [it.who(host, name) for host, name in zip(("one", "two"), names,
           strict=True)]}, [saying(called(*names, SERVICE.name), TAKEN_OVER)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, alone=True))
def anonymous_no_more(it: Incident) -> None:
    """A server's new release takes no clients without a login any more: after its start all of them are refused."""
    topic, names, job = it.names.topic(), [it.names.client() for _ in range(4)], it.names.client()
    version = it.version()
    for host, name in zip(("one", "two", "three", "four"), names, strict=True):
        steps = (mqtt.subscribe((f"{topic}/job/#", 1)), mqtt.KEEP_COMING)
        it.follow(host, name, *steps, version=version, library="paho", reconnect_s=2).wait_for_event("subscribed")
    for number in range(13):
        it.tool("pub", "five", job, "-t", f"{topic}/job/{number}", "-m", f"job {number}", "-q", "1")
        it.seconds(1.6, 2)
        if number == 5:
            it.broker.closed_to_strangers()
            it.broker.stop()
            it.broker.start()
    it.seconds(2, 3)
    address = it.hosts["broker"].address
    anyone = {"any": [it.who(host, name) for host, name in zip(("one", "two", "three", "four"), names, strict=True)]}
    it.ask("Q4", "a server that takes no strangers any more", {"server": it.broker.endpoint, **anyone},
           [saying(called(address, *names, job), REFUSED)], sides=("server", "client"))  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(Wanted(kinds=("aedes",), settings=('{"quota": 20}',), alone=True))
def over_the_quota(it: Incident) -> None:
    """A server ends the connection of who publishes too much in a second; a program comes back and sends it again."""
    topic, bad = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = [values(it, "three", f"{topic}/fan", 90, 0.4), values(it, "four", f"{topic}/pump", 70, 0.5)]
    process = program(it, "one", "quick", bad, f"{topic}/line", version=4)
    process.finish(90)
    often(process.named_events("closed"), 5)
    wordings = [*REFUSED, *CUT_OFF, "quota", "too (many|fast|quick)", "rate", "a second", "per second", "DUP", "burst",
                "unacknowledg", "never acknowledg"]  # fmt: skip
    it.ask("Q5", "more than the quota", it.who("one", bad), [saying(called(bad), wordings)],
           [accusing(*good)])  # fmt: skip


@fault(Wanted(kinds=("aedes",), settings=('{"tokens": true}',), alone=True))
def token_used_again(it: Incident) -> None:
    """A server ends connections whose token has expired; one program keeps its old token, its peer takes new ones."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    long = base64.b64encode(json.dumps({"sub": "archive", "exp": int(time.time()) + 900}).encode()).decode()
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1), user="archive", password=long)
    process = program(it, "one", "token", bad, f"{topic}/a", "14", "old", version=4)
    program(it, "two", "token", good, f"{topic}/b", "17", "new", version=4)
    it.seconds(46, 50)
    often([one for one in process.named_events("connected") if one["code"]], 8)
    wordings = [*REFUSED, *CUT_OFF, "token", "expired"]
    it.ask("Q4", "a token that has expired", it.who("one", bad), [saying(called(bad), wordings)],
           [saying(called(good), ["refus", "not auth", "denied"])])  # fmt: skip


@fault(Wanted(kinds=("aedes",), alone=True))
def share_unknown_to_server(it: Incident) -> None:
    """Workers subscribe to a shared subscription at a server that knows none: granted, and no job ever comes."""
    topic, archive, writer = it.names.topic(), it.names.client(), it.names.client()
    names = [it.names.client() for _ in range(3)]
    wanted = f"$share/billing/{topic}/job/#"
    it.subscriber("four", archive, (f"{topic}/#", 1))
    for host, name in zip(("one", "two", "three"), names, strict=True):
        it.subscriber(host, name, (wanted, 1), keep_alive=12)
    jobs = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=0.4) for n in range(80)]
    it.follow("five", writer, *jobs, mqtt.DISCONNECT).finish(90)
    anyone = [it.who(host, name) for host, name in zip(("one", "two", "three"), names, strict=True)]
    it.ask("Q1", "a shared subscription that the server does not know", {"any": anyone},
           [saying([*called(*names), r"\$share/billing"], NEVER)], [accusing(archive, writer)],
           sides=("client", "server"))  # fmt: skip


@fault(Wanted(kinds=("hivemq",), alone=True, settings=(
    "<security><payload-format-validation><enabled>true</enabled></payload-format-validation></security>",
)))  # fmt: skip
def says_utf8_sends_latin1(it: Incident) -> None:
    """A program of 5.0 says that its payload is UTF-8, which it is not: the server looks, and ends its connection."""
    topic, bad = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/fan", 80, 0.4)
    process = program(it, "one", "latin", bad, f"{topic}/room")
    process.finish(90)
    often(process.named_events("closed"), 5)
    wordings = [*REFUSED, *CUT_OFF, "UTF", "payload format", "encod", "invalid", "malformed", "not acknowledg"]
    it.ask("Q4", "a payload that is not what it says", it.who("one", bad), [saying(called(bad), wordings)],
           [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=("hivemq",), alone=True, settings=(
    "<mqtt><session-expiry><max-interval>6</max-interval></session-expiry></mqtt>",
)))  # fmt: skip
def session_cut_short(it: Incident) -> None:
    """A server keeps sessions for 6 s at most and says so; a reader that asks for an hour is away for longer."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    orders = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.4) for n in range(125)]
    it.follow("three", it.names.client(), *orders, mqtt.DISCONNECT, version=5)
    settings: dict[str, Any] = {"clean": False, "version": 5, "properties": {"SessionExpiryInterval": 3600}}
    steps = (mqtt.subscribe((f"{topic}/order", 1)), mqtt.STAY, mqtt.DISCONNECT)
    for _ in range(3):
        running = {name: it.follow(host, name, *steps, **settings) for host, name in (("one", bad), ("two", good))}
        it.seconds(4, 5)
        running[bad].kill()
        it.seconds(7, 8)
        running[good].kill()
        it.seconds(2, 3)
    wordings = [*NEVER, "session", "expir"]
    blamed = {**it.who("one", bad), "server": it.broker.endpoint}
    it.ask("Q1", "a session that is kept for less than was asked for", blamed,
           [saying(called(bad), wordings)], [saying(called(good), ["lost", "miss"])],
           sides=("client", "server"))  # fmt: skip


@fault(Wanted(kinds=("hivemq",), alone=True, settings=(
    "<restrictions><incoming-bandwidth-throttling>30000</incoming-bandwidth-throttling></restrictions>",
)))  # fmt: skip
def server_reads_slowly(it: Incident) -> None:
    """A server takes 30 kB in a second from all together; a camera's pictures use it up, and all wait for PUBACK."""
    topic, camera = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    values(it, "three", f"{topic}/gate", 90, 0.4)
    values(it, "four", f"{topic}/belt", 60, 0.6)
    it.seconds(6, 7)
    pictures = [mqtt.publish(f"{topic}/picture", 1, size=120_000 + n, pause_s=1) for n in range(6)]
    it.follow("one", camera, *pictures, mqtt.STAY)
    it.seconds(30, 34)
    address = it.hosts["broker"].address
    wordings = ["slow", "window", "waits?", "waited", "late", "delay", "behind", "throttl", "takes", "took",
                "acknowledg", "PUBACK", "stall", "unanswered", "latency", "no answer", "large", "bytes"]  # fmt: skip
    it.ask("Q7", "a server that reads slowly", {"server": it.broker.endpoint, "any": [it.who("one", camera)]},
           [saying(called(address, camera, f"{topic}/picture"), wordings)],
           sides=("server", "client", "network"))  # fmt: skip
    it.truth["cluster_wide"] = True
