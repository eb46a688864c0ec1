"""Q1, messages that were taken and do not reach whom they are for: queues, QoS, rights, another server."""

from __future__ import annotations

import time

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.logins import OPERATOR, operator
from tests.lab.incidents.mqtt.sessions import EXPIRY
from tests.lab.incidents.mqtt.told_words import LOST, REFUSED, SILENT
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mosquitto import User

BOARD = "board"  # the user that may not read
ORDERS = "plant/orders"
RULES = f"topic readwrite #\n\nuser {BOARD}\ntopic deny {ORDERS}/#\ntopic readwrite #\n"
GATE = User("gate", "right")
OTHER_PORT = 1885
OTHER_SERVER = "user root\nlistener {port}\nsocket_domain ipv4\nallow_anonymous true\n"


def lasting(it: Incident) -> dict[str, object]:
    """Return the settings of a client whose session lasts."""
    version = it.version()
    return {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}


@fault(Wanted(kinds=MOSQUITTO, settings=("max_queued_messages 15",)))
def queue_of_session_full(it: Incident) -> None:
    """A consumer is away for its update; more comes than the server queues for a session, and the rest is lost."""
    topic, reader, writer, settings = it.names.topic(), it.names.client(), it.names.client(), lasting(it)
    wanted = mqtt.subscribe((f"{topic}/#", 1))
    it.follow("one", reader, wanted, mqtt.idle(3), mqtt.DISCONNECT, **settings).finish()
    values = [mqtt.publish(f"{topic}/bill", 1, payload=f"bill {n}", pause_s=0.15) for n in range(90)]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    it.seconds(14, 15)
    it.follow("one", reader, wanted, mqtt.idle(12), mqtt.DISCONNECT, **settings).finish()
    it.ask(
        "Q1",
        "more than the server queues for a session",
        it.who("one", reader),
        [saying(called(reader), LOST)],
        [accusing(writer)],
        sides=("client", "server"),
    )


@fault(Wanted(kinds=MOSQUITTO))
def sent_with_qos0(it: Incident) -> None:
    """One of two publishers sends with QoS 0: what it sends while the consumer is away is lost, the other's is kept."""
    topic, reader, bad, good = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    settings = lasting(it)
    wanted = mqtt.subscribe((f"{topic}/#", 1))
    it.follow("one", reader, wanted, mqtt.DISCONNECT, **settings).finish()
    for host, client_id, qos in (("two", bad, 0), ("three", good, 1)):
        values = [mqtt.publish(f"{topic}/{client_id}", qos, payload=f"n{n}", pause_s=0.3) for n in range(110)]
        it.follow(host, client_id, *values, mqtt.DISCONNECT)
    for _ in range(4):
        it.follow("one", reader, wanted, mqtt.idle(3), mqtt.DISCONNECT, **settings).finish()
        it.seconds(4, 5)
    it.ask(
        "Q1",
        "a publisher of QoS 0 for a session that lasts",
        it.who("two", bad),
        [saying(called(bad, f"{topic}/{bad}"), ["QoS 0", *LOST])],
        [accusing(good)],
    )


@fault()
def unsubscribed_while_needed(it: Incident) -> None:
    """A screen closes one of its panels, and with it the filter that another panel needs: it gets nothing more."""
    topic, screen, writer = it.names.topic(), it.names.client(), it.names.client()
    both = mqtt.subscribe((f"{topic}/power/#", 1), (f"{topic}/alarm/#", 1))
    steps = (both, mqtt.idle(it.rng.uniform(9, 11)), mqtt.unsubscribe(f"{topic}/alarm/#"), mqtt.STAY, mqtt.DISCONNECT)
    it.follow("one", screen, *steps).wait_for_event("subscribed")
    kinds = ("power", "alarm")
    values = [mqtt.publish(f"{topic}/{kinds[n % 2]}/7", 1, payload=f"n{n}", pause_s=0.25) for n in range(150)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish(90)
    it.ask(
        "Q1",
        "unsubscribed from what goes on to come",
        it.who("one", screen),
        [saying(called(screen), ["unsubscri", "subscri", "filter", *LOST])],
    )


@fault(Wanted(kinds=MOSQUITTO, settings=("acl_file {place}rules",), files=(("rules", RULES),)))
def may_not_read(it: Incident) -> None:
    """A server grants a subscription to a user whose rights do not let it read: it gets nothing, another gets all."""
    reader, good, writer = it.names.client(), it.names.client(), it.names.client()
    filters = ((f"{ORDERS}/#", 1), ("plant/news", 1))
    it.subscriber("one", reader, *filters, user=BOARD, password="any")
    it.subscriber("three", good, *filters)
    values = [mqtt.publish(f"{ORDERS}/7", 1, payload=f"order {n}", pause_s=0.5) for n in range(50)]
    news = [mqtt.publish("plant/news", 1, payload=f"news {n}", pause_s=5) for n in range(5)]
    it.follow("four", it.names.client(), *news, mqtt.DISCONNECT)
    it.follow("two", writer, *values, mqtt.idle(6), mqtt.DISCONNECT).finish(90)
    it.ask(
        "Q1",
        "granted, and not allowed to read",
        it.who("one", reader),
        [saying(called(reader), [*LOST, *REFUSED, "access", "right", "permi"])],
        [accusing(good)],
        sides=("server",),
    )


@fault(Wanted(kinds=MOSQUITTO, users=(GATE, OPERATOR, User("line", "left"))))
def rights_taken(it: Incident) -> None:
    """An operator takes a right from a user; the server goes on to acknowledge its messages and sends them nobody."""
    topic, reader, writer, good = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    own = f"{topic}/weight"
    it.subscriber("one", reader, (f"{topic}/#", 1))
    fine = [mqtt.publish(f"{topic}/speed", 1, payload=f"n{n}", pause_s=0.5) for n in range(84)]
    it.follow("three", good, *fine, mqtt.DISCONNECT)
    values = [mqtt.publish(own, 1, payload=f"n{n}", pause_s=0.5) for n in range(80)]
    settings = {"version": 4, "user": "line", "password": "left"}
    it.follow("two", writer, *values, mqtt.DISCONNECT, **settings)
    it.seconds(12, 14)
    rule = {"acltype": "publishClientSend", "topic": own, "priority": 9, "allow": False}
    operator(it, "four", it.names.client(), {"command": "addRoleACL", "rolename": "line", **rule})
    # The server throws out whom the change is for; its supervisor starts it again.
    it.seconds(1, 2)
    it.follow("two", writer, *values, mqtt.DISCONNECT, **settings)
    it.seconds(28, 30)
    it.ask(
        "Q1",
        "a right is taken, and messages are acknowledged",
        {"topic": own, **it.who("two", writer)},
        [saying(called(own, writer), [*LOST, *REFUSED, "access", "right", "permi", "no longer", "stopp"])],
        [accusing(good)],
        sides=("server",),
    )


@fault(Wanted(kinds=MOSQUITTO))
def other_server(it: Incident) -> None:
    """One subscriber was set to the test server on the next port; it waits for what passes the other server."""
    topic, lost, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    path = it.directory / "other.conf"
    path.write_text(OTHER_SERVER.format(port=OTHER_PORT))
    it.start("broker", "mosquitto", "-c", str(path))
    time.sleep(1.5)
    address = it.hosts["broker"].address
    it.subscriber("three", good, (f"{topic}/#", 1))
    it.subscriber("one", lost, (f"{topic}/#", 1), endpoint=f"{address}:{OTHER_PORT}", keep_alive=15)
    values = [mqtt.publish(f"{topic}/door", 1, payload=f"n{n}", pause_s=0.8) for n in range(50)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish(90)
    wordings = [*LOST, str(OTHER_PORT), "other (server|broker)", "two (servers|brokers)", "another", "no publisher",
                "nothing", "no message", "differ"]  # fmt: skip
    it.ask(
        "Q1",
        "a subscriber at another server",
        it.who("one", lost),
        [saying(called(lost, f"{topic}/#"), wordings)],
        [accusing(good)],
    )


@fault()
def answers_to_nobody(it: Incident) -> None:
    """A client of 5.0 asks for answers on one topic and subscribes to another: none of them reaches it."""
    topic, servant, bad, good = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    copies = {f"{topic}/ask/": f"{topic}/answer/"}
    served = (mqtt.subscribe((f"{topic}/ask/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    it.follow("five", servant, *served, library="paho", copies=copies, version=5).wait_for_event("subscribed")
    for host, client_id, heard in (("one", bad, f"{topic}/answers/{bad}"), ("two", good, f"{topic}/answer/{good}")):
        where = {"properties": {"ResponseTopic": f"{topic}/answer/{client_id}"}}
        asks = [mqtt.publish(f"{topic}/ask/{client_id}", 1, payload=f"ask {n}", pause_s=1, **where) for n in range(30)]
        steps = (mqtt.subscribe((heard, 1)), *asks, mqtt.DISCONNECT)
        it.follow(host, client_id, *steps, library="paho", version=5)
    it.seconds(32, 34)
    it.ask(
        "Q1",
        "answers to a topic that nobody has",
        {"topic": f"{topic}/answer/{bad}", **it.who("one", bad)},
        [saying(called(bad, f"{topic}/answer/{bad}"), [*LOST, *SILENT, "no subscri", "nobody", "differ", "filter"])],
        [accusing(good)],
    )
