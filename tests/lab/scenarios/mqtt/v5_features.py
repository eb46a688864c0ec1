"""What MQTT 5 can do and 3.1.1 cannot, with four client libraries: properties, aliases, shares, reason codes, refusals.

The broker asks everybody to log in; guest may not touch secret/#. It allows less than clients ask for: keep alive 30 s,
8 messages in flight, packets of 20,000 bytes, 5 topic aliases. Passwords are of the lab only.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto, User
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, Process
from tests.lab.runs import Run

PLANT, GUEST = User("plant", "lab-plant-5Tz8"), User("guest", "lab-guest-2Wn6", forbidden=("secret/#",))
WRONG_PASSWORD = "lab-wrong-3Vb8"
SERVER = Mosquitto(
    settings=("max_keepalive 30", "max_inflight_messages 8", "max_packet_size 20000", "max_topic_alias 5"),
    users=(PLANT, GUEST),
)
SHOWS = "MQTT 5: properties of all kinds, topic aliases, shared subscriptions, wills, reason codes, refusals, logins"
HOSTS = ("sensors", "office", "workers", "visitors")
CLIENTS = (mqtt.PAHO_PYTHON, mqtt.PAHO_GO, mqtt.PAHO_GO_5, mqtt.MQTT_JS, mqtt.MOSQUITTO_CLIENTS)
EXPECTED = ("MQT111", "MQT119")
JOBS = 6
# Messages in flight that the display allows. With fewer Mosquitto 2.0.11 sends more than it may, now and then.
DISPLAY_MAXIMUM = 10
DISPLAY_BYTES = 5000  # the largest packet that the display takes; the picture is larger
USER_PROPERTIES = [["unit", "°C"], ["unit", "K"], ["", "empty name"]]
# What clients print of the codes that the broker answers: event, name of the output, codes.
CODES = (
    ("subscribed", "guest-5", [0x87, 1]),
    ("subscribed", "guest-4", [0x80, 0]),
    ("unsubscribed", "guest-5", [0x11, 0]),
    ("connected", "stranger-5", [0x87]),
    ("connected", "scram", [0x8C]),
)
# paho-mqtt goes on with PUBREL after a PUBREC of 0x87 and tells the code of PUBCOMP.
PUBLISH_CODES = {"guest-5": [0x87, 0, 0x10]}


def prepare() -> None:
    """Build the clients."""
    mqtt.prepare("paho", "go", "node")


def start(run: Run, library: str, host: str, wanted: dict[str, Any], user: User = PLANT) -> Process:
    """Start a client with a user's login; its output has the name of its client id."""
    known = {"user": user.name, "password": user.password, **wanted}
    name = wanted["client_id"] or "nameless"
    return run.start(name, host, *mqtt.command(library, run.endpoint, known))


def drive(run: Run) -> None:
    """Let each group of features have its turn; a display watches the plant all the time."""
    display = start(run, "paho", "office", display_plan())
    display.wait_for_event("subscribed")
    send_measures(run)
    share_jobs(run)
    ask_and_answer(run)
    be_refused(run)
    leave_wills(run)
    resume(run)
    display.terminate()


def display_plan() -> dict[str, Any]:
    """Wildcards with a subscription identifier, small packets only, few messages in flight."""
    wanted = {
        "SessionExpiryInterval": 60, "ReceiveMaximum": DISPLAY_MAXIMUM, "MaximumPacketSize": DISPLAY_BYTES,
        "TopicAliasMaximum": 4, "RequestProblemInformation": 1, "UserProperty": [["role", "display"]],
    }  # fmt: skip
    first = {"name": "plant/+/temperature", "qos": 2, "retainAsPublished": True, "retainHandling": 0}
    named = {"SubscriptionIdentifier": 268435455, "UserProperty": [["why", "watch"]]}
    watched = mqtt.subscribe(first, {"name": "plant/#", "qos": 1, "noLocal": True}, properties=named)
    own = mqtt.publish("plant/display", 1, payload="not for me")
    return mqtt.plan("display", 5, watched, own, mqtt.STAY, mqtt.DISCONNECT, properties=wanted)


def send_measures(run: Run) -> None:
    """Aliases, user properties, content type, expiry, retained messages; a message too large for the display."""
    measure = {"UserProperty": USER_PROPERTIES, "ContentType": "text/plain", "PayloadFormatIndicator": 1,
               "MessageExpiryInterval": 300}  # fmt: skip
    sensor = mqtt.plan(
        "sensor", 5,
        mqtt.publish("plant/oven/temperature", 1, payload="181", retain=True, properties={**measure, "TopicAlias": 1}),
        mqtt.publish("", 1, payload="182", count=3, properties={**measure, "TopicAlias": 1}),
        mqtt.publish("plant/küche/temperature", 2, payload="21", properties={"TopicAlias": 5}),
        mqtt.publish("", 2, payload="22", properties={"TopicAlias": 5}),
        mqtt.publish("plant/hall/temperature", 0, payload="19", properties={"TopicAlias": 1}),
        mqtt.publish("", 0, payload="20", properties={"TopicAlias": 1}),
        mqtt.publish("plant/picture", 1, size=6000),
        mqtt.publish("plant/oven/temperature", 1, payload="", retain=True),
        {**mqtt.DISCONNECT, "properties": {"ReasonString": "shift is over", "SessionExpiryInterval": 0}},
        properties={"SessionExpiryInterval": 10, "RequestResponseInformation": 1},
    )  # fmt: skip
    start(run, "paho", "sensors", sensor).finish()
    scripted = mqtt.plan(
        "scripted", 5, mqtt.publish("plant/line/speed", 1, payload="7", count=3), mqtt.DISCONNECT,
        options={"autoAssignTopicAlias": True}, properties={"userProperties": {"from": ["a", "b"]}},
    )  # fmt: skip
    start(run, "node", "sensors", scripted).finish()
    run.call("assigned", "sensors", *mqtt.mosquitto_command(
        "pub", run.endpoint, "", "mqttv5", "-u", PLANT.name, "-P", PLANT.password, "-t", "plant/shell", "-m", "5",
        "-q", "2", "-D", "publish", "user-property", "shell", "sh", "-D", "connect", "session-expiry-interval", "5",
    ))  # fmt: skip
    start(run, "paho", "sensors", mqtt.plan("", 5, mqtt.publish("plant/nobody", 1), mqtt.DISCONNECT)).finish()


def share_jobs(run: Run) -> None:
    """Two workers share one subscription, a third has its own and gets all."""
    shared = mqtt.subscribe(("$share/crew/jobs/#", 1))
    workers = [
        start(run, "go", "workers", mqtt.plan("worker-1", 5, shared, mqtt.STAY, mqtt.DISCONNECT)),
        start(run, "node", "workers", mqtt.plan("worker-2", 5, shared, mqtt.STAY, mqtt.DISCONNECT)),
        start(run, "go", "workers", mqtt.plan("foreman", 5, mqtt.subscribe(("jobs/#", 1)), mqtt.STAY, mqtt.DISCONNECT)),
    ]
    for worker in workers:
        worker.wait_for_event("subscribed")
    jobs = mqtt.publish("jobs/paint", 1, payload="red", count=JOBS, properties={"User": [{"Key": "k", "Value": "v"}]})
    start(run, "go", "office", mqtt.plan("planner", 5, jobs, mqtt.DISCONNECT)).finish()
    workers[2].wait_for_event("received", JOBS)
    for worker in workers:
        worker.terminate()


def ask_and_answer(run: Run) -> None:
    """Request and response, with correlation data."""
    answers, question = "answers/asker", base64.b64encode(b"\x00question 1\xff").decode()
    asker = start(run, "go", "office", mqtt.plan(
        "asker", 5, mqtt.subscribe((answers, 1), properties={"SubscriptionIdentifier": 128}),
        mqtt.publish("questions", 1, payload="?", properties={"ResponseTopic": answers, "CorrelationData": question}),
        mqtt.receive(1), mqtt.unsubscribe(answers), mqtt.DISCONNECT))  # fmt: skip
    asker.wait_for_event("published")
    start(run, "paho", "office", mqtt.plan(
        "answerer", 5, mqtt.publish(answers, 1, payload="!", properties={"CorrelationData": "question 1"}),
        {**mqtt.DISCONNECT, "code": 0})).finish()  # fmt: skip
    asker.finish()


def be_refused(run: Run) -> None:
    """Wrong passwords, an authentication method that is not known, forbidden topics; all codes that say no."""
    asked = mqtt.subscribe(("secret/doors", 1), ("open/doors", 1))
    guest = mqtt.plan("guest-5", 5, asked, mqtt.publish("secret/doors", 1), mqtt.publish("secret/doors", 2),
                      mqtt.publish("nobody/listens", 1), mqtt.unsubscribe("never/asked", "open/doors"),
                      mqtt.DISCONNECT)  # fmt: skip
    start(run, "paho", "visitors", guest, GUEST).finish()
    old = mqtt.plan("guest-4", 4, mqtt.subscribe(("secret/doors", 1), ("open/doors", 0)),
                    mqtt.publish("secret/doors", 1), mqtt.DISCONNECT)  # fmt: skip
    start(run, "paho", "visitors", old, GUEST).finish()
    for version in (4, 5):
        stranger = mqtt.plan(f"stranger-{version}", version)
        start(run, "paho", "visitors", stranger, PLANT._replace(password=WRONG_PASSWORD)).finish()
    method = {"AuthenticationMethod": "SCRAM-SHA-1", "AuthenticationData": "n,,n=plant,r=x"}
    start(run, "paho", "visitors", mqtt.plan("scram", 5, properties=method)).finish()


def leave_wills(run: Run) -> None:
    """Wills: at once, delayed, asked for with DISCONNECT 0x04, and one that an orderly end takes back."""
    delayed = {"topic": "plant/alarm/delayed", "payload": "lost", "qos": 1, "properties": {
        "WillDelayInterval": 1, "MessageExpiryInterval": 60, "ContentType": "text/plain", "ResponseTopic": "plant/ack",
        "CorrelationData": "x", "UserProperty": [["level", "high"]], "PayloadFormatIndicator": 1}}  # fmt: skip
    session = {"SessionExpiryInterval": 30}
    doomed = [
        start(run, "paho", "sensors", mqtt.plan("pump-1", 5, mqtt.STAY, will=delayed, properties=session)),
        start(run, "go", "sensors", mqtt.plan("pump-2", 5, mqtt.STAY, will={
            "topic": "plant/alarm/now", "payload": "lost", "qos": 1, "retain": True})),
    ]  # fmt: skip
    for one in doomed:
        one.wait_for_event("did")
        one.kill()
    will = {"topic": "plant/alarm/told", "payload": "off", "qos": 0}
    start(run, "paho", "sensors", mqtt.plan("pump-3", 5, {**mqtt.DISCONNECT, "code": 4}, will=will)).finish()
    start(run, "paho", "sensors", mqtt.plan("pump-4", 5, mqtt.DISCONNECT, will=will)).finish()
    time.sleep(2.5)


def resume(run: Run) -> None:
    """A session that outlives its connection: what comes meanwhile is delivered later, unless it has expired."""
    kept = {"properties": {"SessionExpiryInterval": 60}, "clean": False}
    asked = mqtt.subscribe(("night/#", 1))
    start(run, "paho", "office", mqtt.plan("night", 5, asked, mqtt.DISCONNECT, **kept)).finish()
    start(run, "paho", "office", mqtt.plan(
        "evening", 5, mqtt.publish("night/news", 1, payload="kept", properties={"MessageExpiryInterval": 100}),
        mqtt.publish("night/news", 1, payload="gone", properties={"MessageExpiryInterval": 1}),
        mqtt.DISCONNECT)).finish()  # fmt: skip
    time.sleep(2.2)
    back = start(run, "paho", "office", mqtt.plan("night", 5, mqtt.receive(1), mqtt.DISCONNECT, **kept))
    back.finish()


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return messages, refusals, wills and shares; LabError where a code is not the wanted one."""
    for event, name, codes in CODES:
        told = next(one for one in mqtt_facts.events_of(directory, name) if one["event"] == event)
        if told.get("codes", [told.get("code")]) != codes:
            raise LabError(f"{name}: {told}, expected {codes}")
    for name, codes in PUBLISH_CODES.items():
        printed = [one["code"] for one in mqtt_facts.events_of(directory, name) if one["event"] == "published"]
        if printed != codes:
            raise LabError(f"{name}: {printed}, expected {codes}")
    logged, records = records, mqtt_facts.without_too_large(records, "display", DISPLAY_BYTES)
    names = ("worker-1", "worker-2", "foreman", "display")
    mqtt_facts.check_deliveries(records, directory, {name: name for name in names})
    got = {name: sum(one["event"] == "received" for one in mqtt_facts.events_of(directory, name)) for name in names}
    if got["worker-1"] + got["worker-2"] != JOBS or min(got["worker-1"], got["worker-2"]) == 0:
        raise LabError(f"shared jobs went to {got}")
    alarms = [one for one in mqtt_facts.messages(records, "sent", "messages") if "/alarm/" in one["topic"]]
    if len(alarms) != 3:
        raise LabError(f"wills: {alarms}")
    return {
        **mqtt_facts.common(records),
        "refused_connections": mqtt_facts.refused_connections(records),
        "refused_subscription": mqtt_facts.refused_subscriptions(records),
        "refused_message": mqtt_facts.refused_messages(records),
        "shared": {"filter": "$share/crew/jobs/#", "messages": JOBS, "by_client": {
            name: got[name] for name in ("worker-1", "worker-2")}},
        "too_large_to_send": len(logged) - len(records),
        "will": [{"topic": one["topic"], "qos": one["qos"]} for one in alarms],
        "server_limits": {"keep_alive_s": 30, "receive_maximum": 8, "packet_bytes": 20000, "topic_alias_maximum": 5},
    }  # fmt: skip
