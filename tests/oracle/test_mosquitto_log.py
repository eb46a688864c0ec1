"""What MQTT brokers log of a run and our decode of its capture are the same packets, in order.

Mosquitto logs no DISCONNECT of its own, no CONNECT that it refuses, no packet that it takes for malformed, and nothing
that it closes a connection before; it logs a message as sent that is too large for its client and is never sent.
Both brokers end a connection without reading on. Those are counted here and checked against the run's facts; but for
what a client sends at the moment in which its session is taken over, since whether it does differs from run to run.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.lab import mosquitto_log
from tests.lab.mosquitto_log import LogEntry

ENTRIES = [
    entry
    for entry in tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
    if entry["protocol"] == "mqtt" and "broker_log" in entry
]
Key = tuple[tuple[str, int], str]  # the client's endpoint; received or sent, as the broker sees it
VERSIONS = {"Eclipse Mosquitto": {1: "3.1", 2: "3.1.1", 5: "5.0"}, "Mochi MQTT": {3: "3.1", 4: "3.1.1", 5: "5.0"}}
# What is on the wire and in no log, by sample.
NOT_LOGGED = {
    "mqtt_v5_features": {"CONNECT": 3},  # refused
    # A refused CONNECT and a second one; what breaks rules, and how the broker ends that; a ping to a frozen broker.
    "mqtt_faults": {"CONNECT": 2, "PUBLISH": 12, "DISCONNECT": 5, "PINGREQ": 1},
    "mqtt_other_broker": {"PUBLISH": 3},  # behind the one for which the broker ended the connection
    "mqtt_no_answer": {"PUBLISH": 12},  # to a frozen broker, and to one that has forgotten the connection
    "mqtt_resumed": {"PUBLISH": 4, "PINGREQ": 2},  # to a frozen broker, which then closed the connections unread
}


class Packet(NamedTuple):
    """One MQTT packet as we decoded it."""

    kind: str
    told: dict[str, Any]


@dataclass
class Agreement:
    """What a comparison found."""

    packets: int = 0
    fields: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    not_logged: Counter[str] = field(default_factory=Counter)  # decoded, and the broker does not log it
    unread: int = 0  # decoded, sent by a client whose session had just been taken over
    not_sent: int = 0  # logged, and too large for the client
    differences: list[str] = field(default_factory=list)


@cache
def our_packets(path: Path) -> dict[Key, list[Packet]]:
    """Our packets of a capture by connection and direction, in the order of the messages table."""
    with wirewitness.read(
        path, tables=["messages", "mqtt_connections", "mqtt_publishes", "mqtt_subscriptions"]
    ) as read:
        messages = read.arrow("messages", where="protocol = 'mqtt'").to_pylist()
        connections = {row["flow_id"]: row for row in read.arrow("mqtt_connections").to_pylist()}
        publishes = {row["message_id"]: row for row in read.arrow("mqtt_publishes").to_pylist()}
        filters = defaultdict(list)
        for row in read.arrow("mqtt_subscriptions").to_pylist():
            filters[row["exchange_id"]].append(row)
    found: dict[Key, list[Packet]] = defaultdict(list)
    for row in messages:
        from_client = row["direction"] == "client_to_server"
        end = "src" if from_client else "dst"
        key = ((row[f"{end}_address"], row[f"{end}_port"]), "received" if from_client else "sent")
        told = told_by(row, connections[row["flow_id"]], publishes.get(row["message_id"]), filters[row["message_id"]])
        found[key].append(Packet(row["operation"], told))
    return found


def told_by(
    message: dict[str, Any], connection: dict[str, Any], publish: dict[str, Any] | None, filters: list[dict[str, Any]]
) -> dict[str, Any]:
    """What our tables say of a packet, in the names of the log."""
    told: dict[str, Any] = {"mid": message["correlation_id"], "client_id": connection["client_id"],
                            "limit": connection["maximum_packet_size_bytes"]}  # fmt: skip
    if message["operation"] == "CONNECT":
        will = {"topic": connection["will_topic"], "qos": connection["will_qos"], "retain": connection["will_retain"],
                "size": connection["will_payload_bytes"]}  # fmt: skip
        told |= {"version": connection["version"], "clean": connection["clean_start"], "user": connection["user_name"],
                 "keep_alive_s": connection["keep_alive_s"], "will": will}  # fmt: skip
    elif message["operation"] == "CONNACK":
        told |= {"code": connection["error_code"], "session_present": connection["session_present"]}
    elif message["operation"] == "DISCONNECT":
        told["code"] = connection["disconnect_reason_code"]
    elif publish is not None:
        told |= {"topic": publish["topic"], "alias": publish["topic_alias"], "size": publish["payload_bytes"]}
        told |= {name: publish[name] for name in ("qos", "dup", "retain")}
    elif filters:
        told["filters"] = [[row["topic_filter"], row["requested_qos"], row["granted_qos"]] for row in filters]
    return told


def logged(entry: LogEntry, versions: dict[int, str]) -> dict[str, Any]:
    """What the log says of a packet, as far as our tables have it."""
    told = {name: value for name, value in entry.fields.items() if name not in ("level", "verdict", "codes")}
    told["client_id"] = entry.client_id
    if entry.kind == "AUTH":
        told.pop("code")  # no table has it
    if entry.kind == "CONNECT":
        told["version"] = versions[entry.fields["level"]]
    elif entry.kind == "PUBLISH":
        told["mid"] = told["mid"] or None
        if not told["topic"]:
            del told["topic"]  # an alias alone; we have the topic that it means
    elif entry.kind in ("SUBSCRIBE", "UNSUBSCRIBE") and not told["filters"]:
        del told["filters"]  # one that it cannot read
    elif entry.kind in ("PUBACK", "PUBREC", "PUBREL", "PUBCOMP"):
        told.pop("code", None)  # the tables have the last code of a handshake
    if entry.client_id is None:
        told.pop("client_id")  # a connection that was refused
    return told


def compare(entries: Iterable[LogEntry], ours: dict[Key, list[Packet]], versions: dict[int, str]) -> Agreement:
    """Walk both sides of each connection and direction together."""
    found = Agreement()
    entries = list(entries)
    theirs: dict[Key, list[LogEntry]] = defaultdict(list)
    for entry in mosquitto_log.packets(entries):
        assert entry.client is not None, entry
        theirs[(entry.client.host, entry.client.port), entry.direction].append(entry)
    taken_over = {(one.client, "received") for one in entries if one.kind == "taken over"}
    for key in {**theirs, **ours}:
        walk(key, theirs.get(key, []), ours.get(key, []), versions, found, key in taken_over)
    return found


def walk(
    key: Key, theirs: list[LogEntry], ours: list[Packet], versions: dict[int, str], found: Agreement, taken_over: bool
) -> None:
    """One connection and direction: equal packets side by side, what only one side has counted."""
    limit = ours[0].told["limit"] if ours else None
    left = [entry for entry in theirs if not too_large(entry, limit)]
    found.not_sent += len(theirs) - len(left)
    for packet in ours:
        if left and left[0].kind == packet.kind:
            compare_packet(key, left.pop(0), packet, versions, found)
        elif taken_over and not left:
            found.unread += 1
        else:
            found.not_logged[packet.kind] += 1
    for entry in left:
        found.differences.append(f"{key}: in the log only: {entry}")


def too_large(entry: LogEntry, limit_bytes: int | None) -> bool:
    """Whether a logged delivery cannot have been sent: its payload alone is above the client's maximum."""
    delivered = (entry.direction, entry.kind) == ("sent", "PUBLISH")
    return delivered and limit_bytes is not None and entry.fields["size"] >= limit_bytes


def compare_packet(key: Key, entry: LogEntry, packet: Packet, versions: dict[int, str], found: Agreement) -> None:
    """Two packets of one type: everything that both sides tell is equal."""
    found.packets += 1
    found.kinds[packet.kind] += 1
    for name, value in logged(entry, versions).items():
        mine = packet.told.get(name)
        if name == "session_present" and mine is None:
            continue  # 3.1 has no such flag
        if name == "filters" and value and isinstance(value[0], str):
            mine = [one[0] for one in mine]
        found.fields += 1
        if mine != value:
            found.differences.append(f"{key} {entry.kind} {name}: logged {value!r}, decoded {mine!r}")


# ----------------------------------------------------------------------------------------------------------------------


def check(file: str, server: str, facts: dict[str, Any], log: list[LogEntry], capture: Path) -> None:
    """Both sides of a run say the same, and what one side lacks is known."""
    found = compare(log, our_packets(capture), VERSIONS[server])
    print(f"{file}: {found.packets} packets, {found.fields} fields, not logged {dict(found.not_logged)}")
    assert found.differences == []
    assert found.packets + found.not_sent == len(mosquitto_log.packets(log)) > 10
    assert found.not_sent == facts.get("too_large_to_send", 0)
    assert found.not_logged == NOT_LOGGED.get(file, {})
    assert found.fields > 2 * found.packets


@pytest.mark.parametrize("sample", ENTRIES, ids=lambda entry: str(entry["file"]))
def test_sample_equals_the_broker_log(sample: dict[str, Any]) -> None:
    log = mosquitto_log.load(SAMPLES / sample["broker_log"])
    file, server = sample["file"].removesuffix(".pcapng"), sample["server"].rpartition(" ")[0]
    check(file, server, sample["facts"], log, SAMPLES / sample["file"])


# Topics that nobody gets twice or late: no overlapping filters, nothing retained, no session that sleeps.
PLAIN = {"mqtt_qos2_stuck": "", "mqtt_websocket": "", "mqtt_takeover_loop": "", "mqtt_healthy": "house/"}


@pytest.mark.parametrize("name", PLAIN)
def test_deliveries_are_those_that_the_broker_logged(name: str) -> None:
    with wirewitness.read(SAMPLES / f"{name}.pcapng", tables=["mqtt_publishes"]) as read:
        rows = read.arrow("mqtt_publishes", where="direction = 'client_to_server'").to_pylist()
    found: Counter[str] = Counter()
    for row in rows:
        found[row["topic"]] += row["deliveries"] or 0
    logged_ones = mosquitto_log.load(SAMPLES / "broker_logs" / f"{name}.jsonl.gz")
    sent = Counter(one.fields["topic"] for one in logged_ones if (one.kind, one.direction) == ("PUBLISH", "sent"))
    assert {topic: count for topic, count in found.items() if topic.startswith(PLAIN[name])} == {
        topic: count for topic, count in sent.items() if topic.startswith(PLAIN[name])
    }


# ----------------------------------------------------------------------------------------------------------------------

STUCK = SAMPLES / "mqtt_qos2_stuck.pcapng"
MOSQUITTO = VERSIONS["Eclipse Mosquitto"]


def stuck_log() -> list[LogEntry]:
    return mosquitto_log.load(SAMPLES / "broker_logs" / "mqtt_qos2_stuck.jsonl.gz")


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("CONNECT", "version", None),
        ("CONNECT", "keep_alive_s", 61),
        ("CONNACK", "code", 5),
        ("PUBLISH", "topic", "press/5"),
        ("PUBLISH", "mid", 999),
        ("PUBLISH", "qos", 0),
        ("PUBLISH", "dup", 1),
        ("PUBLISH", "size", 99),
        ("PUBREL", "mid", 999),
        ("SUBSCRIBE", "filters", [["press/+", 2, 2]]),
    ],
    ids=str,
)
def test_a_changed_log_differs(kind: str, name: str, value: Any) -> None:
    log = stuck_log()
    entry = next(one for one in log if one.kind == kind)
    if name == "version":
        entry.fields["level"] = 1
    else:
        entry.fields[name] = value
    assert len(compare(log, our_packets(STUCK), MOSQUITTO).differences) == 1


def test_packets_of_one_side_are_found() -> None:
    log = mosquitto_log.packets(stuck_log())
    without = [one for one in log if one is not log[-1]]
    assert compare(without, our_packets(STUCK), MOSQUITTO).not_logged == {log[-1].kind: 1}
    twice = [*log, log[-1]]
    assert len(compare(twice, our_packets(STUCK), MOSQUITTO).differences) == 1
    ours = {key: packets[:-1] for key, packets in our_packets(STUCK).items()}
    assert len(compare(log, ours, MOSQUITTO).differences) == len(ours)


def test_what_comes_as_a_session_is_taken_over_may_be_unread() -> None:
    name = "mqtt_takeover_loop"
    log = mosquitto_log.load(SAMPLES / "broker_logs" / f"{name}.jsonl.gz")
    ours = our_packets(SAMPLES / f"{name}.pcapng")
    taken_over = {one.client for one in log if one.kind == "taken over"}
    received = [one for one in mosquitto_log.packets(log) if one.direction == "received"]
    said = Counter(one.client for one in received)
    lost = next(one for one in reversed(received) if one.client in taken_over and said[one.client] > 1)
    found = compare([one for one in log if one is not lost], ours, MOSQUITTO)
    assert (found.unread, found.not_logged) == (1, {})
    kept = next(one for one in reversed(received) if one.client not in taken_over)
    found = compare([one for one in log if one is not kept], ours, MOSQUITTO)
    assert (found.unread, found.not_logged) == (0, {kept.kind: 1})
    first = next(one for one in received if one.client == lost.client)
    assert first is not lost
    found = compare([one for one in log if one is not first], ours, MOSQUITTO)
    assert (found.unread, found.not_logged) == (0, {first.kind: 1}), "only what is last may be unread"


def test_another_order_differs() -> None:
    log = stuck_log()
    places = [place for place, one in enumerate(log) if (one.direction, one.client_id) == ("received", "ledger")]
    first, second = next(pair for pair in pairwise(places) if log[pair[0]].kind != log[pair[1]].kind)
    log[first], log[second] = log[second], log[first]
    found = compare(log, our_packets(STUCK), MOSQUITTO)
    assert found.differences
