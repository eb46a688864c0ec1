"""Q1 and Q4, who is not there: absent members of a share, a session that a tool wipes out, a site not let through."""

from __future__ import annotations

from typing import Any

from tests.lab import net
from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.front_doors import TLS, TLS_PORT, secured
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.misfits import values
from tests.lab.incidents.mqtt.told_words import CUT_OFF, LOST, SILENT
from tests.lab.incidents.mqtt.unreached import OTHER_PORT, OTHER_SERVER
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import Process
from tests.support.tls_certificates import Authority


@fault(Wanted(kinds=MOSQUITTO))
def share_of_the_absent(it: Incident) -> None:
    """A worker of a shared subscription with a session ends for good: a third of the jobs waits in its session."""
    topic, writer, names = it.names.topic(), it.names.client(), [it.names.client() for _ in range(3)]
    steps = (mqtt.subscribe((f"$share/packing/{topic}/job/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    running = []
    for host, name in zip(("one", "two", "three"), names, strict=True):
        running.append(it.follow(host, name, *steps, clean=False, version=4, library=("paho", "go")))
        running[-1].wait_for_event("subscribed")
    jobs = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=0.4) for n in range(110)]
    sends = it.follow("four", writer, *jobs, mqtt.DISCONNECT)
    it.seconds(8, 10)
    running[0].kill()
    sends.finish(90)
    it.ask("Q1", "the share of a worker that is gone", it.who("one", names[0]),
           [saying([*called(names[0]), r"\$share/packing"], [*LOST, *SILENT, "session", "gone", "share", "absent",
           "offline", "wait"])], [accusing(*names[1:], writer)])  # fmt: skip


@fault()
def tool_wipes_session(it: Incident) -> None:
    """An engineer looks with a consumer's client id while that is away: its session and what waits there are gone."""
    topic, consumer, good = it.names.topic(), it.names.client(), it.names.client()
    orders = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.4) for n in range(100)]
    it.follow("three", it.names.client(), *orders, mqtt.DISCONNECT, version=4)
    steps = (mqtt.subscribe((f"{topic}/order", 1)), mqtt.STAY, mqtt.DISCONNECT)
    settings: dict[str, Any] = {"clean": False, "version": 4, "library": ("paho", "go")}

    def come() -> list[Process]:
        return [it.follow(host, name, *steps, **settings) for host, name in (("one", consumer), ("two", good))]

    first = come()
    it.seconds(7, 8)
    for one in first:
        one.ask_to_end()
    it.seconds(6, 7)
    it.tool("sub", "five", consumer, "-t", f"{topic}/test", "-q", "1", "-W", "4")
    it.seconds(8, 9)
    second = come()
    it.seconds(12, 13)
    for one in second:
        one.ask_to_end()
    it.seconds(1, 2)
    address = it.hosts["five"].address
    wordings = [*LOST, "session", "clean", "two (addresses|hosts|machines)", "another (address|host|machine)"]
    it.ask("Q1", "a session that a tool wipes out", {"any": [it.who("five", consumer), it.who("one", consumer)]},
           [saying(called(consumer, address), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def device_certificate_expired(it: Incident) -> None:
    """A server asks its devices for certificates; that of one has expired, and it is sent away at each handshake."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    issuer = Authority("Plant CA", it.directory / "keys")
    old, new = issuer.issue("pump-7", expires_days=-1.5), issuer.issue("fan-2", expires_days=90)
    authority = secured(it, 200, "require_certificate true\ntls_version tlsv1.2", issuer)
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    plain = values(it, "four", f"{topic}/old", 80, 0.4)
    for number in range(14):
        for host, name, paths in (("one", device, old), ("two", good, new)):
            words = ("-t", f"{topic}/{name}", "-m", f"n{number}", "-q", "1", "--cafile", authority, "-p", str(TLS_PORT),
                     "--cert", paths.certificate, "--key", paths.key, "--tls-version", "tlsv1.2")  # fmt: skip
            it.tool("pub", host, name, *words)
        it.seconds(2, 2.5)
    address = it.hosts["one"].address
    it.ask("Q4", "a device's certificate that has expired", {"address": address, "client_id": device},
           [saying(called(address), [*TLS, "reset", "RST", "abort", "broke"])],
           [accusing(plain, good, it.hosts["two"].address)])  # fmt: skip


@fault()
def site_not_let_through(it: Incident) -> None:
    """A new site is not in the firewall's list: nothing answers its attempts to connect, others are served."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(3)]
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/old", 90, 0.4)
    # What comes is seen here, and nothing goes back: as with a firewall behind the place of the capture.
    net.in_namespace(it.hosts["broker"].namespace, "ip", "route", "add", "blackhole", it.hosts["one"].address)
    for number in range(5):
        for name in names:
            words = ("-t", f"{topic}/{name}", "-m", f"n{number}", "-q", "1")
            command = mqtt.mosquitto_command("pub", it.broker.endpoint, name, "mqttv311", *words)
            it.start("one", "timeout", "5", *command)
            it.seconds(0.3, 0.6)
        it.seconds(6, 7)
    address = it.hosts["one"].address
    wordings = ["SYN", "unanswered", "no answer", "without (an )?answer", "never (open|connect|establish|answered)",
                "refus", "not (open|connect|answer|establish)", "attempt", "in vain", "retransmi", "unreachable",
                "firewall", "again", "handshake", "fail"]  # fmt: skip
    it.ask("Q4", "a site that the firewall does not let through", {"address": address},
           [saying(called(address), wordings)], [accusing(good)], sides=("client", "network", "server"))  # fmt: skip


@fault(Wanted(kinds=("mosquitto", "hivemq")))
def will_in_eight_hours(it: Incident) -> None:
    """A device of 5.0 delays its will by 30000 s, as it takes them for ms: it dies, and to all screens it is online."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(2)]
    running = []
    for host, name, delay_s in (("one", names[0], 30_000), ("two", names[1], 4)):
        status = f"{topic}/{name}/status"
        will = {"topic": status, "payload": "offline", "qos": 1, "retain": True,
                "properties": {"WillDelayInterval": delay_s}}  # fmt: skip
        birth = mqtt.publish(status, 1, payload="online", retain=True)
        values = [mqtt.publish(f"{topic}/{name}/bar", 1, payload=f"{n % 6}.{n}", pause_s=0.5) for n in range(80)]
        settings: dict[str, Any] = {"version": 5, "keep_alive": 5, "library": "paho", "clean": False,
                                    "properties": {"SessionExpiryInterval": 40_000}}  # fmt: skip
        running.append(it.follow(host, name, birth, *values, will=will, **settings))
    reader = it.names.client()
    it.subscriber("three", reader, (f"{topic}/#", 1))
    it.seconds(9, 10)
    net.unplug(it.hosts["one"])
    running[0].kill()
    it.seconds(2, 3)
    net.unplug(it.hosts["two"])
    running[1].kill()
    for _ in range(4):
        look = (mqtt.subscribe((f"{topic}/+/status", 1)), mqtt.idle(2), mqtt.DISCONNECT)
        it.follow("four", it.names.client(), *look, version=5).finish(30)
        it.seconds(6, 7)
    wordings = ["will", "offline", "online", "stale", "stat(e|us)", "gone", "never", "delay", *LOST, *SILENT]
    it.ask("Q2", "a will that is delayed by hours", {**it.who("one", names[0]), "topic": f"{topic}/{names[0]}/status"},
           [saying(called(names[0], f"{topic}/{names[0]}/status"), wordings)], [accusing(reader)],
           sides=("client", "network"))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, alone=True))
def balanced_to_two_servers(it: Incident) -> None:
    """A balancer hands connections to two servers that know nothing of each other: half of the values reach nobody."""
    topic, reader = it.names.topic(), it.names.client()
    path, here = it.directory / "second.conf", it.hosts["broker"].address
    path.write_text(OTHER_SERVER.format(port=OTHER_PORT))
    it.start("broker", "mosquitto", "-c", str(path))
    hub = it.hosts["hub"].address
    through = f"{hub}:1884"
    it.start("hub", *python_command("balancer", "turns", through, it.broker.endpoint, f"{here}:{OTHER_PORT}"))
    it.seconds(1.5, 2)
    it.subscriber("five", reader, (f"{topic}/#", 1), endpoint=through)
    it.clients.append(it.who("hub", reader))
    running, names, version = [], [it.names.client() for _ in range(7)], it.version()
    for number, name in enumerate(names):
        values = [mqtt.publish(f"{topic}/{name}", 1, payload=f"n{n % 9}.{n}", pause_s=0.6) for n in range(60)]
        host = ("one", "two", "three", "four")[number % 4]
        running.append(it.follow(host, name, *values, mqtt.DISCONNECT, endpoint=through, version=version))
        running[-1].wait_for_event("connected")
        it.clients.append(it.who("hub", name))
    running[-1].finish(90)
    lost = names[0::2]
    wordings = [*LOST, *SILENT, "no subscri", "without (a )?subscri", str(OTHER_PORT), "other (server|broker)",
                "two (servers|brokers)", "differ"]  # fmt: skip
    blamed = {"server": f"{here}:{OTHER_PORT}", "any": [it.who("hub", name) for name in lost]}
    it.ask("Q1", "two servers that know nothing of each other", blamed,
           [saying([*called(*lost), str(OTHER_PORT)], wordings)],
           [accusing(*names[1::2])], sides=("network", "server", "client"))  # fmt: skip


@fault(Wanted(alone=True))
def balancer_limits_age(it: Incident) -> None:
    """A balancer ends each connection when it is 9 s old, whatever passes on it: its clients come back each time."""
    topic, names, good = it.names.topic(), [it.names.client() for _ in range(4)], it.names.client()
    hub = it.hosts["hub"].address
    through = f"{hub}:1884"
    it.start("hub", *python_command("balancer", "age=9", through, it.broker.endpoint)).wait_for_event("listening")
    steps = (mqtt.subscribe((f"{topic}/order", 1)), mqtt.KEEP_COMING)
    settings: dict[str, Any] = {"clean": False, "version": 4, "library": "paho", "reconnect_s": 1}
    running = []
    for host, name in zip(("one", "two", "three", "three"), names, strict=True):
        running.append(it.follow(host, name, *steps, endpoint=through, **settings))
        it.clients.append(it.who("hub", name))
        it.seconds(0.5, 1.5)
    it.follow("four", good, *steps, **settings).wait_for_event("subscribed")
    orders = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.6) for n in range(80)]
    it.follow("five", it.names.client(), *orders, mqtt.DISCONNECT).finish(90)
    for one in running:
        often(one.named_events("disconnected"), 3)
    wordings = [*CUT_OFF, "ended", "\\bends?\\b", "FIN", "9(\\.\\d+)? s", "lifetime", "\\bage\\b", "short"]
    it.ask("Q6", "a balancer that limits the age of connections", {"address": hub},
           [saying(called(hub), wordings)], [accusing(good)], sides=("client", "network"))  # fmt: skip


@fault(Wanted(kinds=("mosquitto", "mochi")))
def upgraded_without_expiry(it: Incident) -> None:
    """A consumer goes from 3.1.1 to 5.0 and forgets the session's expiry: what comes while it restarts is lost now."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    orders = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.35) for n in range(145)]
    it.follow("three", it.names.client(), *orders, mqtt.DISCONNECT, version=4)
    steps = (mqtt.subscribe((f"{topic}/order", 1)), mqtt.STAY, mqtt.DISCONNECT)
    for number in range(5):
        running = []
        for host, name in (("one", bad), ("two", good)):
            version = 5 if name == bad and number > 1 else 4
            running.append(it.follow(host, name, *steps, clean=False, version=version, library="go"))
            running[-1].wait_for_event("subscribed")
        it.seconds(5, 6)
        for one in running:
            one.ask_to_end()
        it.seconds(4, 5)
    wordings = [*LOST, *SILENT, "session", "expir"]
    it.ask("Q1", "a session without an expiry of 5.0", it.who("one", bad), [saying(called(bad), wordings)],
           [saying(called(good), ["lost", "miss"])])  # fmt: skip
