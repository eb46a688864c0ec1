"""Paths and machines: a line that loses, swallows or is too slow, a site without power, sockets that are not closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab import firewall, net, slow_link
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.logins import habit
from tests.lab.incidents.mqtt.told_words import CUT_OFF, REFUSED, REPEATED
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.net import Host, in_namespace
from tests.lab.processes import LabError

LOAD_LENGTH, LARGE = 128, 900  # of classic BPF; bytes of a frame that a tunnel on the way swallows
LOSSY = ["retransmi", "loss", "lose", "lost", "missing", "sent again", "segments?", "packets?", "path", "network",
         "not (arrive|confirm|captured)", "never (arrive|confirm)", "hole", "unacknowledged"]  # fmt: skip


@contextmanager
def swallowing_large(host: Host) -> Iterator[None]:
    """Drop all large packets that a host sends during the block, and tell it nothing."""
    steps = [(LOAD_LENGTH, 0, None, None), (firewall.IF_AT_LEAST, LARGE, firewall.DROP, firewall.PASS)]
    in_namespace(host.namespace, "tc", "qdisc", "add", "dev", "eth0", "clsact")
    words = ("egress", "bpf", "da", "bytecode", firewall.bytecode(steps))
    in_namespace(host.namespace, "tc", "filter", "add", "dev", "eth0", *words)
    try:
        yield
    finally:
        in_namespace(host.namespace, "tc", "qdisc", "del", "dev", "eth0", "clsact")


@fault()
def large_packets_swallowed(it: Incident) -> None:
    """A tunnel swallows large packets of one site: small values arrive, its report never does."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    report = mqtt.publish(f"{topic}/report", 1, size=4000, wait=False)
    small = [mqtt.publish(f"{topic}/v", 1, payload=f"n{n}", pause_s=0.5) for n in range(16)]
    it.follow("three", good, *small, report | {"wait": True}, mqtt.STAY, library="paho")
    settings = {"library": "paho", "clean": False, "version": 4, "keep_alive": 5, "reconnect_s": 1}
    with swallowing_large(it.hosts["one"]):
        held = it.follow("one", device, *small, report, mqtt.KEEP_COMING, **settings)
        it.seconds(44, 48)
    if len(held.named_events("disconnected")) < 2:
        raise LabError("the report has not been stuck")
    it.ask("Q6", "large packets are swallowed", it.who("one", device),
           [saying(called(device, it.hosts["one"].address), ["MTU", "large", *LOSSY, *REPEATED])],
           [accusing(good)], sides=("network",))  # fmt: skip


@fault()
def line_that_loses(it: Incident) -> None:
    """The radio link of one device loses a sixth of its packets: its messages are late, those of its peer are not."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/pump", 1, size=300, pause_s=0.2) for _ in range(110)]
    fine = [mqtt.publish(f"{topic}/fan", 1, size=300, pause_s=0.2) for _ in range(130)]
    it.follow("three", good, *fine, mqtt.DISCONNECT)
    with firewall.dropping(it.hosts["one"], it.hosts["broker"].address, share=0.17):
        it.follow("one", device, *values, mqtt.DISCONNECT, keep_alive=60, library="paho")
        it.seconds(40, 44)
    it.ask("Q6", "a line that loses packets", it.who("one", device),
           [saying(called(device, it.hosts["one"].address), LOSSY)], [accusing(good)], sides=("network",))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def upload_never_done(it: Incident) -> None:
    """A camera's picture takes longer on its line than its client waits for PINGRESP: it begins again and again."""
    topic, camera, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    fine = [mqtt.publish(f"{topic}/motion", 1, payload=f"n{n}", pause_s=0.8) for n in range(70)]
    it.follow("three", good, *fine, mqtt.DISCONNECT)
    picture = mqtt.publish(f"{topic}/picture", 1, size=800_000, wait=False)
    settings = {"library": "paho", "clean": False, "version": 4, "keep_alive": 4, "reconnect_s": 1}
    with slow_link.sends_slowly(it.hosts, "one", 350):
        held = it.follow("one", camera, picture, mqtt.KEEP_COMING, **settings)
        it.seconds(56, 60)
    if len(held.named_events("disconnected")) < 3:
        raise LabError("the picture came through")
    wordings = [*CUT_OFF, *REPEATED, "slow", "gives? up", "gave up", "never", "takes", "unfinished", "unacknowledged"]
    it.ask("Q6", "an upload that never ends", it.who("one", camera), [saying(called(camera), wordings)],
           [accusing(good)], sides=("client", "network"))  # fmt: skip


@fault()
def site_without_power(it: Incident) -> None:
    """A site of eight devices loses its power: one after the other is given up by the server, and their wills come."""
    topic, good = it.names.topic(), it.names.client()
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    names, version, running = [it.names.client() for _ in range(8)], it.version(), []
    for number, name in enumerate([*names, good]):
        will = {"topic": f"{topic}/{name}/state", "payload": "offline", "qos": 1, "retain": True}
        values = [mqtt.publish(f"{topic}/{name}/v", 1, payload=f"n{n}", pause_s=1.1) for n in range(40)]
        steps = (mqtt.publish(will["topic"], 1, payload="online", retain=True), *values, mqtt.STAY, mqtt.DISCONNECT)
        settings = {"will": will, "keep_alive": 6 + number % 3, "version": version, "library": ("paho", "go")}
        running.append(it.follow("two" if name == good else "one", name, *steps, **settings))
    for one in running:
        one.wait_for_event("published", 2)
    it.seconds(9, 11)
    net.unplug(it.hosts["one"])
    for one in running[:-1]:
        one.kill()
    it.seconds(20, 22)
    address = it.hosts["one"].address
    wordings = ["gone", "power", "silent", "at once", "same time", "together", "all", "unreachable", "will",
                "devices", "\\d clients", *CUT_OFF, *LOSSY]  # fmt: skip
    it.ask("Q6", "a site is gone", {"address": address, "any": [it.who("one", name) for name in names]},
           [saying(called(address), wordings)], [accusing(good)], sides=("client", "network"))  # fmt: skip


@fault()
def resends_too_soon(it: Incident) -> None:
    """Firmware on a satellite line sends a message again after 1 s, where the way there and back takes 1.7 s."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    it.far("one", 850)
    fine = [mqtt.publish(f"{topic}/b", 1, size=80, pause_s=1) for _ in range(30)]
    it.follow("three", good, *fine, mqtt.DISCONNECT)
    habit(it, "one", "resends", device, f"{topic}/a").finish(120)
    it.ask("Q5", "sent again before the answer can be there", it.who("one", device),
           [saying(called(device), [*REPEATED, "early", "too soon", "before", "round trip", "times"])],
           [accusing(good)])  # fmt: skip


@fault()
def ends_before_it_sends(it: Incident) -> None:
    """A script connects and ends before its message is sent: each run is a connection on which nothing is said."""
    topic, script, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    for _ in range(3):
        it.tool("pub", "three", good, "-t", f"{topic}/b", "-m", "done", "-q", "1").finish()
    habit(it, "one", "exits", script, f"{topic}/a").finish(120)
    wordings = ["nothing", "no (message|publish|packet)", "without", "closes", "closed", "ends", "before", "connect",
                "DISCONNECT", "never publish", "abort"]  # fmt: skip
    it.ask("Q6", "a script that ends too early", it.who("one", script), [saying(called(script), wordings)],
           [accusing(good)], sides=("client",))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, settings=("max_connections 18",)))
def connections_leak(it: Incident) -> None:
    """A program opens a connection for each job and closes none, until the server lets nobody in any more."""
    topic, base, late = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1), keep_alive=20)
    process = habit(it, "one", "leaks", base, topic)
    it.clients += [it.who("one", f"{base}-{n}") for n in range(26)]
    it.seconds(18, 19)
    for number in range(8):
        it.tool("pub", "three", late, "-t", f"{topic}/late", "-m", f"v{number}", "-q", "1")
        it.seconds(1, 1.5)
    process.finish(60)
    address = it.hosts["one"].address
    wordings = ["connections", "open", "leak", "never clos", "client ids", "names", *REFUSED]
    it.ask("Q8", "connections are never closed", {"address": address},
           [saying([*called(address), rf"{base}-\d"], wordings)])  # fmt: skip
