"""The rules about TLS before real servers: Kafka, Mosquitto, a front before MongoDB; clients in Java, C and Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.lab import tls_world
from tests.lab.tls_world import (
    EXPIRED_PORT,
    MONGO_FORGETS,
    MONGO_MUTUAL,
    MONGO_SLOW,
    MONGO_TLS,
    MQTT_MUTUAL,
    MQTT_TLS,
    MQTT_WSS,
    MUTUAL_PORT,
    PASSWORD,
    SASL_PORT,
    SSL_PORT,
    USER,
    World,
    both,
)
from wirewitness.analyser.base.options import ReadOptions

pytestmark = pytest.mark.lab
CLEAR_KAFKA, CLEAR_MQTT, CLEAR_WEBSOCKET = 9092, 1883, 9001


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with tls_world.running(tmp_path_factory.mktemp("tls")) as made:
        yield made


class Case(NamedTuple):
    """library: java, or one of the client in Python. words: of the client; what begins with $ is of the certificates.

    found: the codes about TLS. says: what stands in the sentence of the first of them.
    """

    library: str
    port: int
    words: Mapping[str, str]
    found: set[str]
    says: str | re.Pattern[str] = ""


CA = {"ca": "$ca"}
JAVA = {"security_protocol": "SSL", "ssl_truststore_type": "PEM", "ssl_truststore_location": "$ca"}
OWN = {"cert": "$client.cert", "key": "$client.key"}
STRANGE = {"cert": "$stranger.cert", "key": "$stranger.key"}
LATE = {"cert": "$late.cert", "key": "$late.key"}
JAVA_OWN = {"ssl_keystore_type": "PEM", "ssl_keystore_location": "$client.both"}
V12, WEBSOCKET = {"version": "1.2"}, {"transport": "websockets"}
FAILED, MUTUAL, EXPIRED, WRONG_PORT = {"TLS101"}, {"TLS101", "TLS107"}, {"TLS101", "TLS102"}, {"TLS106"}

RESUMES = CA | {"resume": "1"}
UNUSUAL = {MQTT_MUTUAL: "mqtt", MONGO_SLOW: "mongo", MONGO_FORGETS: "mongo"}

CASES = {
    "librdkafka": Case("rdkafka", SSL_PORT, CA, set()),
    "librdkafka, mutual": Case("rdkafka", MUTUAL_PORT, CA | OWN, set()),
    "librdkafka, SASL": Case("rdkafka", SASL_PORT, CA | {"user": USER, "password": PASSWORD}, set()),
    "kafka-python": Case("kafka-python", SSL_PORT, CA, set()),
    "kafka-python, 1.2": Case("kafka-python", SSL_PORT, CA | V12, set()),
    "Java": Case("java", SSL_PORT, JAVA, set()),
    "Java, mutual": Case("java", MUTUAL_PORT, JAVA | JAVA_OWN, set()),
    "paho": Case("paho", MQTT_TLS, CA, set()),
    "paho, WebSocket": Case("paho", MQTT_WSS, CA | WEBSOCKET, set()),
    "paho, mutual": Case("paho", MQTT_MUTUAL, CA | OWN, set()),
    "pymongo": Case("pymongo", MONGO_TLS, CA, set()),
    "librdkafka without a certificate": Case("rdkafka", MUTUAL_PORT, CA, MUTUAL, "sends none"),
    "Java without a certificate": Case("java", MUTUAL_PORT, JAVA, MUTUAL, "sends none"),
    "OpenSSL without a certificate, 1.2": Case("handshake", MUTUAL_PORT, CA | V12, MUTUAL, "(alert bad_certificate)"),
    "librdkafka with an expired one": Case("rdkafka", MUTUAL_PORT, CA | LATE, MUTUAL, "refuses the certificate"),
    # Of an issuer that the server does not name in its request: the library keeps it to itself.
    "librdkafka with a stranger's": Case("rdkafka", MUTUAL_PORT, CA | STRANGE, MUTUAL, "sends none"),
    "pymongo without a certificate": Case("pymongo", MONGO_MUTUAL, CA, MUTUAL, "sends none"),
    "paho with a stranger's": Case("paho", MQTT_MUTUAL, CA | STRANGE, MUTUAL, "refuses the certificate"),
    "librdkafka that trusts others": Case("rdkafka", SSL_PORT, {"ca": "$other"}, FAILED, "unknown_ca"),
    "Java that trusts others": Case(
        "java", SSL_PORT, JAVA | {"ssl_truststore_location": "$other"}, FAILED, "The alert is encrypted"
    ),
    "paho that trusts others": Case("paho", MQTT_TLS, {"ca": "$other"}, FAILED, "unknown_ca"),
    "librdkafka, expired": Case("rdkafka", EXPIRED_PORT, CA, EXPIRED, "alert certificate_expired"),
    "Java, expired": Case("java", EXPIRED_PORT, JAVA, FAILED, "The alert is encrypted"),
    "OpenSSL, expired, 1.2": Case("handshake", EXPIRED_PORT, CA | V12, EXPIRED, "CN=broker1.lab,O=Example, ended at"),
    "another name, 1.2": Case(
        "handshake",
        SSL_PORT,
        CA | V12 | {"name": "other.lab"},
        EXPIRED,
        "is for broker1.lab, 10.77.0.2, and the client",
    ),
    "librdkafka in clear text to TLS": Case("rdkafka", SSL_PORT, {}, WRONG_PORT, "expects TLS"),
    "Java in clear text to TLS": Case("java", SSL_PORT, {}, WRONG_PORT, "expects TLS"),
    "librdkafka with TLS to clear text": Case("rdkafka", CLEAR_KAFKA, CA, WRONG_PORT, "(size = 369295616"),
    "Java with TLS to clear text": Case("java", CLEAR_KAFKA, JAVA, WRONG_PORT, "or 369296128"),
    "HTTP to Kafka": Case("http", CLEAR_KAFKA, {}, WRONG_PORT, "(size = 1195725856)"),
    "HTTP to Kafka's TLS": Case("http", SSL_PORT, {}, WRONG_PORT, "speaks HTTP"),
    "paho in clear text to TLS": Case("paho", MQTT_TLS, {"times": "3"}, WRONG_PORT, "expects TLS"),
    "paho with TLS to clear text": Case("paho", CLEAR_MQTT, CA, WRONG_PORT, "expects clear text"),
    "pymongo, a server that is slow": Case(
        "pymongo", MONGO_SLOW, CA, {"TLS104"}, re.compile(r"first response (9\d|100)%")
    ),
    "a client that is slow": Case("late", MONGO_TLS, CA | {"times": "3"}, {"TLS104"}, "first response "),
    "a client that was slow twice": Case("late", MONGO_TLS, CA | {"times": "2"}, set()),
    "sessions that do not go on": Case(
        "churn", MONGO_FORGETS, RESUMES | {"connections": "40"}, {"TLS105"}, "39 times, and the server takes 0"
    ),
    "the same, 1.2": Case(
        "churn", MONGO_FORGETS, RESUMES | V12 | {"connections": "40"}, {"TLS105"}, "39 times, and the server takes 0"
    ),
    "sessions that go on": Case("churn", MONGO_TLS, RESUMES | {"connections": "40"}, set()),
    "the same, 1.2 ": Case("churn", MONGO_TLS, RESUMES | V12 | {"connections": "40"}, set()),
    "no session offered": Case(
        "churn", MONGO_TLS, CA | {"connections": "110"}, {"TLS105"}, "It offers an earlier session 0 times"
    ),
    "no session offered, 60 connections": Case("churn", MONGO_TLS, CA | {"connections": "60"}, set()),
}


def filled(world: World, words: Mapping[str, str]) -> dict[str, str]:
    """The words with paths of certificates."""
    made = world.made
    paths = {"$ca": made.authority.path, "$other": made.other.path}
    for name in ("client", "stranger", "late"):
        own = getattr(made, name)
        paths |= {f"${name}.cert": own.certificate, f"${name}.key": own.key, f"${name}.both": both(own)}
    return {name: paths.get(value, value) for name, value in words.items()}


def command_of(world: World, case: Case) -> list[str]:
    words = filled(world, case.words)
    return world.java(case.port, **words) if case.library == "java" else world.python(case.library, case.port, **words)


def findings(capture: Path, **options: Any) -> list[dict[str, Any]]:
    """Those about TLS, in the order in which they are told."""
    rows = wirewitness.read(str(capture), options=ReadOptions(**options)).findings().to_dict("records")
    return [row for row in rows if row["code"].startswith("TLS")]


@pytest.mark.parametrize("name", CASES)
def test_what_servers_and_clients_do(world: World, name: str) -> None:
    case = CASES[name]
    capture, (process,) = world.captured(command_of(world, case))
    found = findings(capture, decode_as=UNUSUAL)
    assert {row["code"] for row in found} == case.found, process.stdout_path.read_text()[-300:]
    if case.found:
        first = max(found, key=lambda row: (row["incident_id"] == row["finding_id"], row["code"]))
        says = case.says if isinstance(case.says, re.Pattern) else re.compile(re.escape(case.says))
        assert says.search(first["sentence"])
        assert "10.77.0.11" in first["sentence"]
        assert f"10.77.0.2:{case.port}" in first["sentence"]


@pytest.mark.parametrize(("version", "tickets"), [("1.2", 1), ("1.3", 2)])
def test_tickets_that_a_server_gives_and_another_does_not_take(
    world: World, version: str, tickets: int, tmp_path: Path
) -> None:
    """OpenSSL gives one in TLS 1.2, which are in the clear, and two in 1.3, which are seen with keys."""
    keylog = tmp_path / "keys.log"
    words = filled(world, RESUMES) | {"version": version, "connections": "40", "keylog": str(keylog)}
    capture, _ = world.captured(world.python("churn", MONGO_FORGETS, **words))
    read = {"decode_as": UNUSUAL, "keylogs": (str(keylog),)}
    flows = wirewitness.read(str(capture), options=ReadOptions(**read)).table("flows")
    assert set(flows.tls_tickets) == {tickets}
    assert set(flows.tls_ticket_lifetime_s) == {7200}
    (found,) = findings(capture, **read)
    assert "It gives tickets and does not take them" in found["next_step"]
    if version == "1.3":
        assert (
            wirewitness.read(str(capture), options=ReadOptions(decode_as=UNUSUAL))
            .table("flows")
            .tls_tickets.isna()
            .all()
        )


def test_the_broker_logs_what_the_finding_says(world: World) -> None:
    """Whoever reads the log finds the line by its number."""
    world.captured(world.python("http", CLEAR_KAFKA), command_of(world, CASES["Java with TLS to clear text"]))
    log = (world.directory / "kafka" / "server.log").read_text()
    assert "Invalid receive (size = 1195725856 larger than" in log
    assert "Invalid receive (size = 3692961" in log


@pytest.mark.parametrize("software", ["Java with an agent", "Go"])
def test_software_logs_its_keys_as_the_page_says(world: World, software: str, tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    if software == "Go":
        endpoint = f"{tls_world.ADDRESS}:{SSL_PORT}"
        command = [str(tls_world.go_client()), endpoint, world.made.authority.path, str(keylog)]
    else:
        command = world.java(SSL_PORT, f"-javaagent:{tls_world.java_agent()}={keylog}", **filled(world, JAVA))
    capture, (process,) = world.captured(command)
    assert keylog.exists(), process.stderr_path.read_text()[-500:]
    analysis = wirewitness.read(str(capture), options=ReadOptions(keylogs=(str(keylog),)))
    flows, messages = analysis.table("flows"), analysis.table("messages")
    assert set(flows.tls_decryption) == {"decrypted"}
    assert "ApiVersions" in set(messages.operation)
    assert messages.error.isna().all()


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_with_keys_a_run_is_read_as_one_in_clear_text(world: World, version: str, tmp_path: Path) -> None:
    """The same work of kafka-python, encrypted and not: the same requests on the same connections."""
    keylog = tmp_path / "keys.log"
    words = filled(world, CA) | {"version": version, "keylog": str(keylog)}
    told = []
    for command in (world.python("kafka-python", SSL_PORT, **words), world.python("kafka-python", CLEAR_KAFKA)):
        capture, (process,) = world.captured(command)
        assert process.named_events("done")[0]["what"] == "10 records"
        analysis = wirewitness.read(str(capture), options=ReadOptions(keylogs=(str(keylog),)))
        flows, messages = analysis.table("flows"), analysis.table("messages")
        assert set(flows.protocol) == {"kafka"}
        assert messages.error.isna().all()
        once = messages[~messages.operation.isin(["Fetch", "Heartbeat", "Metadata"])]  # as often as time allows
        told.append(sorted(zip(once.operation, once.version, once.role, strict=True)))
    assert told[0] == told[1]
    assert {"Produce", "OffsetCommit", "JoinGroup"} <= {operation for operation, _, _ in told[0]}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_mqtt_in_websocket_in_tls_is_read_as_in_clear_text(world: World, version: str, tmp_path: Path) -> None:
    """paho to Mosquitto, with TLS and without: the same packets of MQTT."""
    keylog = tmp_path / "keys.log"
    words = filled(world, CA) | {"version": version, "keylog": str(keylog)}
    told = []
    for port, more in ((MQTT_WSS, words), (CLEAR_WEBSOCKET, {})):
        capture, (process,) = world.captured(world.python("paho", port, **WEBSOCKET, **more))
        assert process.named_events("done")[0]["what"] == "1 messages"
        analysis = wirewitness.read(str(capture), options=ReadOptions(keylogs=(str(keylog),)))
        (flow,) = analysis.table("flows").to_dict("records")
        assert (flow["protocol"], flow["carrier"]) == ("mqtt", "websocket")
        assert bool(flow["encrypted"]) == (port == MQTT_WSS)
        assert analysis.table("mqtt_connections").transport.tolist() == ["websocket"]
        messages = analysis.table("messages")
        assert messages.error.isna().all()
        told.append(sorted(zip(messages.operation, messages.role, messages.length_bytes, strict=True)))
    assert told[0] == told[1]
    assert {"CONNECT", "SUBSCRIBE", "PUBLISH", "PUBACK"} <= {operation for operation, _, _ in told[0]}
