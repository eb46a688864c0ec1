"""Shared subscriptions and doubled programs: one worker among several, one group too many."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.told_words import LOST, REPEATED, SILENT
from tests.lab.incidents.told import accusing, called, saying

HOSTS = ("one", "two", "three", "four")
DOUBLED = [*REPEATED, "group", "share", "each (message|job)", "all (messages|jobs)", "every (message|job)", "both"]


def workers(it: Incident, topic: str, shares: list[str], *mute: int) -> list[str]:
    """Start a worker for each of SHARES (the name of its group, "": a plain subscription); return their names.

    Each publishes a result for each job, but those whose number is in MUTE.
    """
    names = [it.names.client() for _ in shares]
    version = it.version()
    for number, (host, client_id, share) in enumerate(zip(HOSTS, names, shares, strict=False)):
        wanted = f"$share/{share}/{topic}/job/#" if share else f"{topic}/job/#"
        copies = {} if number in mute else {f"{topic}/job/": f"{topic}/done/"}
        steps = (mqtt.subscribe((wanted, 1)), mqtt.STAY, mqtt.DISCONNECT)
        settings = {"library": "paho", "copies": copies, "version": version, "work_s": 0.02}
        it.follow(host, client_id, *steps, **settings).wait_for_event("subscribed")
    it.subscriber("five", it.names.client(), (f"{topic}/done/#", 1))
    return names


def jobs(it: Incident, topic: str, number: int, pause_s: float) -> str:
    """Give jobs, and time for the last; return who gave them."""
    writer = it.names.client()
    values = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=pause_s) for n in range(number)]
    it.follow("five", writer, *values, mqtt.idle(3), mqtt.DISCONNECT).finish(100)
    return writer


@fault(Wanted(kinds=MOSQUITTO))
def group_misspelled(it: Incident) -> None:
    """Three workers share a subscription; a fourth has a group of its own by a slip, and does each job once more."""
    topic = it.names.topic()
    names = workers(it, topic, ["billing", "billing", "billing", "biling"])
    writer = jobs(it, topic, 90, 0.3)
    it.ask("Q5", "a group of one by mistake", it.who("four", names[3]), [saying(called(names[3], "biling"), DOUBLED)],
           [accusing(*names[:3], writer)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def share_forgotten(it: Incident) -> None:
    """Three workers share a subscription; the newest has the plain filter, and does each job once more."""
    topic = it.names.topic()
    names = workers(it, topic, ["billing", "billing", "billing", ""])
    writer = jobs(it, topic, 70, 0.4)
    wordings = [*DOUBLED, "plain", "without", "not a member"]
    it.ask("Q5", "a worker without a share", it.who("four", names[3]), [saying(called(names[3]), wordings)],
           [accusing(*names[:3], writer)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, in_flight=10))
def one_worker_slow(it: Incident) -> None:
    """One of three workers of a shared subscription takes a hundred times as long for each job: its share waits."""
    topic, done = it.names.topic(), it.names.client()
    names = [it.names.client() for _ in range(3)]
    version = it.version()
    for host, client_id, work_s in zip(HOSTS, names, (0.02, 0.02, 2.2), strict=False):
        steps = (mqtt.subscribe((f"$share/work/{topic}/job/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
        settings = {"library": "paho", "copies": {f"{topic}/job/": f"{topic}/done/"}, "version": version}
        it.follow(host, client_id, *steps, work_s=work_s, **settings).wait_for_event("subscribed")
    it.subscriber("four", done, (f"{topic}/done/#", 1))
    writer = jobs(it, topic, 100, 0.4)
    wordings = ["slow", "takes", "longer", "late", "behind", "waits?", "acknowledg", "in flight", "peers", "than"]
    it.ask("Q7", "one slow worker of three", it.who("three", names[2]), [saying(called(names[2]), wordings)],
           [accusing(*names[:2], writer, done)], sides=("client",))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def one_worker_mute(it: Incident) -> None:
    """One of three workers takes its jobs, acknowledges them and publishes no result: a third of the jobs is lost."""
    topic = it.names.topic()
    names = workers(it, topic, ["work"] * 3, 1)
    writer = jobs(it, topic, 90, 0.35)
    it.ask("Q9", "a worker without results", it.who("two", names[1]),
           [saying(called(names[1]), [*SILENT, *LOST, "peers"])], [accusing(names[0], names[2], writer)],
           sides=("client",))  # fmt: skip


@fault()
def both_colours_run(it: Incident) -> None:
    """After a deployment the old instance was not stopped: both publish the same readings on the same topic."""
    topic, base, good = it.names.topic(), it.names.client(), it.names.client()
    blue, green = f"{base}-blue", f"{base}-green"
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    values = [
        mqtt.publish(f"{topic}/rates", 1, payload=f'{{"seq": {n}, "rate": 1.{n * 37 % 1000}}}', pause_s=0.5)
        for n in range(60)
    ]
    it.follow("one", blue, *values, mqtt.DISCONNECT, library="paho")
    it.seconds(6, 6.3)
    it.follow("two", green, *values[12:], mqtt.DISCONNECT, library="paho", version=it.version())
    fine = [mqtt.publish(f"{topic}/fees", 1, payload=f"fee {n}", pause_s=0.5) for n in range(60)]
    it.follow("four", good, *fine, mqtt.DISCONNECT).finish(90)
    blamed = {"any": [it.who("one", blue), it.who("two", green)], **it.who("two", green)}
    wordings = [*DOUBLED, "two (clients|publishers|writers|instances|sources)", "in turn", "other"]
    it.ask("Q5", "two instances publish the same", blamed,
           [saying(called(blue, green, f"{topic}/rates"), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def all_workers_restart(it: Incident) -> None:
    """All workers of a shared subscription are restarted at once, with clean sessions: jobs meanwhile are lost."""
    topic, names, writer = it.names.topic(), [it.names.client() for _ in range(3)], it.names.client()
    wanted, version = (f"$share/nightly/{topic}/job/#", 1), it.version()
    values = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=0.25) for n in range(150)]
    it.follow("five", writer, *values, mqtt.DISCONNECT, version=version)
    for _ in range(3):
        running = [it.subscriber(host, name, wanted, version=version) for host, name in zip(HOSTS, names, strict=False)]
        it.seconds(6, 7)
        for one in running:
            one.ask_to_end()
        it.seconds(4, 5)
    blamed = {"any": [it.who(host, name) for host, name in zip(HOSTS, names, strict=False)], "topic": topic}
    it.ask("Q1", "jobs while no worker is there", blamed,
           [saying([*called(*names, "nightly"), rf"{topic}/job"], [*LOST, "no subscri", "no member"])],
           sides=("client",))  # fmt: skip
