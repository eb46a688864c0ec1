"""Clients of the lab that speak TLS: one short piece of work through a listener with TLS, or without.

In: a library (rdkafka, kafka-python, paho, pymongo, handshake, late, churn, http) and NAME=VALUE words: endpoint, ca,
cert, key, keylog, name (server name), version (1.2 or 1.3), unchecked, times, user, password, transport (of MQTT: tcp
or websockets), connections, resume. Out: one JSON line, what happened.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

Words = Mapping[str, str]
TOPIC = "orders"


def context_of(words: Words) -> ssl.SSLContext | None:
    """Return what Python's ssl is to use; None for clear text."""
    if "ca" not in words:
        return None
    context = ssl.create_default_context(cafile=words["ca"])
    if "unchecked" in words:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "cert" in words:
        context.load_cert_chain(words["cert"], words["key"])
    if "version" in words:
        version = ssl.TLSVersion.TLSv1_2 if words["version"] == "1.2" else ssl.TLSVersion.TLSv1_3
        context.minimum_version = context.maximum_version = version
    if "keylog" in words:
        context.keylog_filename = words["keylog"]
    return context


def rdkafka(words: Words) -> str:
    """Ask for topics with librdkafka, which has OpenSSL inside."""
    from confluent_kafka.admin import AdminClient

    names = {"ca": "ssl.ca.location", "cert": "ssl.certificate.location", "key": "ssl.key.location"}
    settings = {name: words[word] for word, name in names.items() if word in words}
    protocol = ("SASL_" if "user" in words else "") + ("SSL" if "ca" in words else "PLAINTEXT")
    if "user" in words:
        login = {"username": words["user"], "password": words["password"]}
        settings |= {"sasl.mechanism": "PLAIN", **{f"sasl.{name}": value for name, value in login.items()}}
    admin = AdminClient(
        {"bootstrap.servers": words["endpoint"], "security.protocol": protocol, "log_level": "0", **settings}
    )
    return f"{len(admin.list_topics(timeout=6).topics)} topics"


def kafka_python(words: Words) -> str:
    """Make a topic, write ten records and read them, with kafka-python and Python's ssl."""
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]
    from kafka.admin import NewTopic  # type: ignore[import-untyped]

    context = context_of(words)
    settings: dict[str, Any] = {"bootstrap_servers": words["endpoint"]}
    settings |= {"security_protocol": "PLAINTEXT"} if context is None else {"security_protocol": "SSL"}
    settings |= {} if context is None else {"ssl_context": context, "ssl_check_hostname": context.check_hostname}
    admin = KafkaAdminClient(**settings)
    with suppress(Exception):  # it is there already
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
    producer = KafkaProducer(**settings)
    for number in range(10):
        producer.send(TOPIC, f"record {number}".encode()).get(10)
    producer.close()
    consumer = KafkaConsumer(TOPIC, group_id="billing", auto_offset_reset="earliest", **settings)
    read, until = 0, time.monotonic() + 20
    while read < 10 and time.monotonic() < until:
        read += sum(map(len, consumer.poll(500).values()))
    consumer.commit()
    consumer.close()
    admin.close()
    return f"{read} records"


def paho(words: Words) -> str:
    """Publish and receive one message with paho."""
    from paho.mqtt import client as mqtt

    host, _, port = words["endpoint"].partition(":")
    transport: Any = words.get("transport", "tcp")
    version = mqtt.CallbackAPIVersion.VERSION2
    client = mqtt.Client(version, client_id="meter-7", protocol=mqtt.MQTTv5, transport=transport)
    context = context_of(words)
    if context is not None:
        client.tls_set_context(context)
    got: list[bytes] = []
    client.on_connect = lambda c, *_: c.subscribe("meters/+", 1)
    client.on_subscribe = lambda c, *_: c.publish("meters/7", b"231", 1)
    client.on_message = lambda _c, _u, message: got.append(message.payload)
    client.connect(host, int(port), keepalive=10)
    until = time.monotonic() + 5
    while not got and time.monotonic() < until:
        if client.loop(0.2) not in (mqtt.MQTT_ERR_SUCCESS, mqtt.MQTT_ERR_AGAIN):
            break
    client.disconnect()
    client.loop(0.2)
    return f"{len(got)} messages"


def pymongo(words: Words) -> str:
    """Write and read two documents with pymongo."""
    from pymongo import MongoClient

    secure = {"tls": True, "tlsCAFile": words["ca"]} if "ca" in words else {}
    own = {"tlsCertificateKeyFile": words["both"]} if "both" in words else {}
    client: MongoClient[dict[str, Any]] = MongoClient(
        f"mongodb://{words['endpoint']}/?directConnection=true", serverSelectionTimeoutMS=4000, **secure, **own
    )
    client.shop.carts.insert_many([{"n": 1}, {"n": 2}])
    return f"{len(list(client.shop.carts.find({'n': {'$gt': 0}})))} documents"


def handshake(words: Words) -> str:
    """Only open TLS by Python's ssl, for a server name that need not resolve, and send ApiVersions of Kafka."""
    host, _, port = words["endpoint"].partition(":")
    context = context_of(words)
    assert context is not None
    raw = socket.create_connection((host, int(port)), 5)
    with raw, context.wrap_socket(raw, server_hostname=words.get("name", host)) as secure:
        secure.sendall(bytes.fromhex("0000000f 0012 0000 00000001 0005") + b"probe")
        return f"{len(secure.recv(4096))} bytes"


def late(words: Words) -> str:
    """Do nothing for a while once the server's certificate is there, as who asks whether it was revoked."""
    host, _, port = words["endpoint"].partition(":")
    context = context_of(words)
    assert context is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = context.wrap_bio(incoming, outgoing, server_hostname=host)
    with socket.create_connection((host, int(port)), 5) as raw:
        waits = True
        while True:
            try:
                secure.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                incoming.write(raw.recv(1 << 16))
                if waits:
                    time.sleep(1.2)
                waits = False
        raw.sendall(outgoing.read())
        secure.write(hello_of_mongo())
        raw.sendall(outgoing.read())
        return f"{len(raw.recv(1 << 16)) > 0}"


def churn(words: Words) -> str:
    """Connect again and again, each time for one request to MongoDB; with resume each goes on with the last session."""
    host, _, port = words["endpoint"].partition(":")
    context = context_of(words)
    assert context is not None
    session, resumed = None, 0
    for _ in range(int(words["connections"])):
        raw = socket.create_connection((host, int(port)), 5)
        with raw, context.wrap_socket(raw, server_hostname=host, session=session) as secure:
            secure.sendall(hello_of_mongo())
            secure.recv(4096)
            resumed += bool(secure.session_reused)
            session = secure.session if "resume" in words else None
    return f"{resumed} resumed"


def hello_of_mongo() -> bytes:
    """Return the request of who looks whether a server of MongoDB is there."""
    import bson

    body = bytes(4) + b"\0" + bson.encode({"hello": 1, "$db": "admin"})
    return struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body


def http(words: Words) -> str:
    """Ask for metrics as a scraper does."""
    host, _, port = words["endpoint"].partition(":")
    with socket.create_connection((host, int(port)), 5) as raw:
        raw.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return f"{len(raw.recv(4096))} bytes"


WORK: dict[str, Callable[[Words], str]] = {
    "rdkafka": rdkafka, "kafka-python": kafka_python, "paho": paho, "pymongo": pymongo, "handshake": handshake,
    "late": late, "churn": churn, "http": http,
}  # fmt: skip


def main() -> None:
    """Do it `times` times and say what came of the last one."""
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    said = {}
    for _ in range(int(words.get("times", "1"))):
        try:
            said = {"event": "done", "what": WORK[sys.argv[1]](words)}
        except Exception as error:
            said = {"event": "failed", "what": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
