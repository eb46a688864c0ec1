"""Q4, Q5 and Q7, servers that let nobody in any more, workers that fall, handshakes that are half done."""

from __future__ import annotations

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.misfits import values
from tests.lab.incidents.mqtt.told_words import CUT_OFF, LOST, REFUSED, REPEATED, SILENT
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import LabError, Process

LOCAL_ONLY = "user root\nlistener 1883 127.0.0.1\nallow_anonymous true\n"  # what 2.0 does without a configuration
SITES = ("one", "two", "three", "four")
NOT_LET_IN = ["CONNACK", "no answer", "unanswered", "without (an )?answer", "not answer", "did not answer", "never",
              "silent", "RST", "reset", "listen", "no server", "down", "not (back|open)", "restart", "unreachable",
              "gone", "attempt", "SYN", "in vain", "try|tries|tried", *REFUSED, *CUT_OFF]  # fmt: skip


def trade(
    it: Incident, host: str, work: str, client_id: str, topic: str, *words: str, version: int | None = None
) -> Process:
    """Start a program with a mistake of its own, or its peer without."""
    it.clients.append(it.who(host, client_id))
    it.libraries.append("paho")
    place = it.broker.endpoint.split(":")
    level = str(version or it.version())
    return it.start(host, *python_command("paho_trades", *place, level, work, client_id, topic, *words))


def half(it: Incident, host: str, work: str, client_id: str, topic: str, seconds: float) -> Process:
    """Start the client that does half of what it should, or too much."""
    it.clients.append(it.who(host, client_id))
    words = (*it.broker.endpoint.split(":"), work, client_id, topic, str(seconds))
    return it.start(host, *python_command("mqtt_half_client", *words))


@fault(Wanted(kinds=("mochi",)))
def descriptors_used_up(it: Incident) -> None:
    """A server may open few files; when they are used up, it answers no new connection for good, and serves the old."""
    topic, version, late = it.names.topic(), it.version(), [it.names.client() for _ in range(8)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1), version=version)
    good = [values(it, host, f"{topic}/{host}", 80, 0.5) for host in ("one", "two")]
    it.seconds(4, 5)
    it.broker.limit_files(3)
    for number in range(30):
        host, name = SITES[number % 4], late[number % 8]
        words = ("-t", f"{topic}/{name}", "-m", f"n{number}", "-q", "1", "-k", "10")
        if it.who(host, name) not in it.clients:
            it.clients.append(it.who(host, name))
        it.start(host, "timeout", "4", *mqtt.mosquitto_command("pub", it.broker.endpoint, name, "mqttv311", *words))
        if number in (2, 5, 8):  # screens that stay, which take what is left
            screen = it.names.client()
            command = mqtt.mosquitto_command("sub", it.broker.endpoint, screen, "mqttv311", "-t", f"{topic}/#")
            it.clients.append(it.who("five", screen))
            it.start("five", *command)
        it.seconds(0.9, 1.4)
    address = it.hosts["broker"].address
    anyone = [it.who(SITES[number % 4], late[number % 8]) for number in range(8)]
    addresses = [it.hosts[host].address for host in SITES]
    it.ask("Q4", "a server that answers no new connection", {"server": it.broker.endpoint, "any": anyone},
           [saying(called(address, *late, *addresses), NOT_LET_IN)], [accusing(*good)],
           sides=("server", "client"))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, alone=True))
def local_only_after_upgrade(it: Incident) -> None:
    """After its upgrade a server without a configuration listens on its own machine alone: all are refused for good."""
    topic, names, version = it.names.topic(), [it.names.client() for _ in range(6)], it.version()
    running = []
    for number, name in enumerate(names):
        steps = (mqtt.subscribe((f"{topic}/set/{number}", 1)), mqtt.KEEP_COMING)
        settings = {"library": "paho", "reconnect_s": 2 + number % 3, "clean": False, "version": version}
        running.append(it.follow(SITES[number % 4], name, *steps, **settings))
        running[-1].wait_for_event("subscribed")
    orders = [mqtt.publish(f"{topic}/set/{n % 6}", 1, payload=f"set {n}", pause_s=0.4) for n in range(38)]
    it.follow("five", it.names.client(), *orders, mqtt.DISCONNECT, version=version, library=("go", "node")).finish(60)
    it.broker.stop()
    it.seconds(3, 4)
    path = it.directory / "local.conf"
    path.write_text(LOCAL_ONLY)
    it.start("broker", "mosquitto", "-c", str(path))
    job = it.names.client()
    it.clients.append(it.who("five", job))
    for number in range(8):
        words = ("-t", f"{topic}/set/{number % 6}", "-m", f"late {number}", "-q", "1")
        it.start("five", *mqtt.mosquitto_command("pub", it.broker.endpoint, job, "mqttv311", *words))
        it.seconds(3, 4)
    for one in running:
        if len(one.named_events("connected")) > 1:
            raise LabError("somebody was let in")
    address = it.hosts["broker"].address
    addresses = [it.hosts[host].address for host in (*SITES, "five")]
    anyone = [it.who(SITES[number % 4], name) for number, name in enumerate(names)]
    it.ask("Q4", "a server that listens on its own machine alone", {"server": it.broker.endpoint, "any": anyone},
           [saying(called(address, *names, *addresses), NOT_LET_IN)], sides=("server", "client"))  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(Wanted(kinds=("hivemq",), alone=True))
def workers_fall_one_by_one(it: Incident) -> None:
    """A broken job ends the worker that takes it; the server hands it to the next of the group, which falls as well."""
    topic, names, version = it.names.topic(), [it.names.client() for _ in range(4)], it.version()
    it.subscriber("five", it.names.client(), (f"{topic}/done/#", 1), version=version)
    crew = [trade(it, host, "worker", name, topic, "press", version=version)
            for host, name in zip(SITES, names, strict=True)]  # fmt: skip
    for one in crew:
        one.wait_for_event("subscribed")
    writer = it.names.client()
    jobs = [
        mqtt.publish(f"{topic}/job/{n}", 1, payload=f"{'broken' if n == 24 else 'sheet'} {n}", pause_s=0.35)
        for n in range(130)
    ]
    it.follow("five", writer, *jobs, mqtt.DISCONNECT, version=version, library=("go", "node")).finish(90)
    often([event for one in crew for event in one.named_events("fallen")], 8)
    blamed = {"any": [it.who(host, name) for host, name in zip(SITES, names, strict=True)], "topic": f"{topic}/job/24"}
    wordings = [*CUT_OFF, *REPEATED, *LOST, "ends?", "ended", "crash", "fall", "restart", "abort", "RST", "FIN",
                "without DISCONNECT", "poison", "never acknowledg", "unacknowledg"]  # fmt: skip
    it.ask("Q5", "a job that ends each worker", blamed,
           [saying(called(*names, f"{topic}/job/24", "press"), wordings)], [accusing(writer)],
           sides=("client",))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def never_completes(it: Incident) -> None:
    """A subscriber answers with PUBREC and never with PUBCOMP: its window is full after some messages, and it waits."""
    topic, bad, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    it.subscriber("two", good, (f"{topic}/pay", 2), library=("paho", "go"))
    process = half(it, "one", "never_completes", bad, f"{topic}/pay", 44)
    process.wait_for_event("connected")
    payments = [mqtt.publish(f"{topic}/pay", 2, payload=f"payment {n}", pause_s=0.7) for n in range(50)]
    it.follow("three", writer, *payments, mqtt.DISCONNECT, library=("node", "go"))
    process.finish(90)
    if len(process.named_events("got")) > 12:
        raise LabError("the window was not full")
    wordings = ["PUBCOMP", "PUBREL", "QoS 2", "handshake", "in flight", "window", "acknowledg", "complet", "unfinished",
                "stands? still", "stuck", *LOST, *SILENT]  # fmt: skip
    it.ask("Q7", "handshakes that are never completed", it.who("one", bad), [saying(called(bad), wordings)],
           [accusing(good), accusing(writer)])  # fmt: skip
