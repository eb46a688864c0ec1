"""Conversations of all protocols around names and texts that a test chooses; requests of Kafka are encoded by kio.

In: for each place a text. Out: packets. What is put in comes out of the capture unchanged, so a test can plant secrets
or control characters and look for them in what the program writes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode

from tests.support import mqtt_encode as mqtt
from tests.support.kio_messages import encode
from tests.support.mongo_messages import op_msg
from tests.support.packets import Captured
from tests.support.websocket import WebSocketTalk
from tests.support.wire import ACK, FIN, Talk

Name = Callable[[str], str]
Turn = tuple[bytes, bytes]  # what the client sends, what the server answers


def decoder(turns: Iterable[Turn], port: int, client: tuple[str, int]) -> list[Captured]:
    """One connection, from its handshake to its end."""
    talk = Talk(server=("10.0.0.2", port), client=client).handshake()
    sent = [0, 0]
    for asked, answered in turns:
        for from_client, data in ((True, asked), (False, answered)):
            if data:
                talk.send(from_client, sent[from_client], data, ack=sent[not from_client])
                sent[from_client] += len(data)
    talk.send(True, sent[True], flags=FIN | ACK, ack=sent[False])
    return talk.send(False, sent[False], flags=FIN | ACK, ack=sent[True] + 1).packets


def kafka_turn(api: str, version: int, client_id: str, number: int, request: Any, response: Any) -> Turn:
    """A request and its answer; both are given the module of kio that describes them."""
    asked = import_module(f"kio.schema.{api}.v{version}.request")
    told = import_module(f"kio.schema.{api}.v{version}.response")
    body, answer = request(asked), response(told)
    name = client_id.encode()
    head = struct.pack(">hhih", body.__api_key__, version, number, len(name)) + name
    flexible = body.__flexible__
    return (
        _sized(head + (b"\0" if flexible else b"") + encode(body)),
        _sized(struct.pack(">i", number) + (b"\0" if flexible else b"") + encode(answer)),
    )


def commits(client_id: str, group: str, member: str, topic: str, metadata: str, offsets: Sequence[int]) -> list[Turn]:
    """Offsets that a member stores, one after the other."""

    def request(kio: Any, offset: int) -> Any:
        part = kio.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=metadata
        )
        topics = (kio.OffsetCommitRequestTopic(name=topic, partitions=(part,)),)
        return kio.OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=3, member_id=member, group_instance_id=member, topics=topics
        )

    def response(kio: Any) -> Any:
        part = kio.OffsetCommitResponsePartition(partition_index=0, error_code=ErrorCode(0))
        topics = (kio.OffsetCommitResponseTopic(name=topic, partitions=(part,)),)
        return kio.OffsetCommitResponse(throttle_time=timedelta(0), topics=topics)

    return [
        kafka_turn("offset_commit", 7, client_id, number, lambda kio, o=offset: request(kio, o), response)
        for number, offset in enumerate(offsets)
    ]


def settings(client_id: str, resource: str, values: Sequence[tuple[str, str]], error: str) -> list[Turn]:
    """IncrementalAlterConfigs with these settings of a topic, which the broker refuses with a text."""

    def request(kio: Any) -> Any:
        configs = tuple(kio.AlterableConfig(name=name, config_operation=0, value=value) for name, value in values)
        one = kio.AlterConfigsResource(resource_type=2, resource_name=resource, configs=configs)
        return kio.IncrementalAlterConfigsRequest(resources=(one,), validate_only=False)

    def response(kio: Any) -> Any:
        one = kio.AlterConfigsResourceResponse(
            error_code=ErrorCode(40), error_message=error, resource_type=2, resource_name=resource
        )
        return kio.IncrementalAlterConfigsResponse(throttle_time=timedelta(0), responses=(one,))

    return [kafka_turn("incremental_alter_configs", 1, client_id, 1, request, response)]


def kafka_places(name: str, text: str) -> list[Turn]:
    """The text in requests and answers: a login that is refused, groups, rights, topics and their settings; the name
    where something is named."""

    def turn(api: str, version: int, request: Any, response: Any) -> Turn:
        return kafka_turn(api, version, name, 1, request, response)

    zero = timedelta(0)
    join = turn(
        "join_group", 8,
        lambda kio: kio.JoinGroupRequest(
            group_id=name, session_timeout=zero, rebalance_timeout=zero, member_id=name, group_instance_id=name,
            protocol_type="consumer", reason=text,
            protocols=(kio.JoinGroupRequestProtocol(name=name, metadata=text.encode()),),
        ),
        lambda kio: kio.JoinGroupResponse(
            throttle_time=zero, error_code=ErrorCode(0), generation_id=1, protocol_type="consumer", protocol_name=name,
            leader=name, member_id=name, members=(),
        ),
    )  # fmt: skip
    create = turn(
        "create_topics", 5,
        lambda kio: kio.CreateTopicsRequest(
            topics=(kio.CreatableTopic(
                name=name, num_partitions=1, replication_factor=1, assignments=(),
                configs=(kio.CreatableTopicConfig(name="x", value=text),
                         kio.CreatableTopicConfig(name="cleanup.policy", value=text)),
            ),),
            timeout=zero, validate_only=False,
        ),
        lambda kio: kio.CreateTopicsResponse(
            throttle_time=zero,
            topics=(kio.CreatableTopicResult(name=name, error_code=ErrorCode(40), error_message=text,
                                             topic_config_error_code=ErrorCode(0), num_partitions=-1,
                                             replication_factor=-1, configs=()),),
        ),
    )  # fmt: skip
    acl = turn(
        "create_acls", 1,
        lambda kio: kio.CreateAclsRequest(creations=(kio.AclCreation(
            resource_type=2, resource_name=name, resource_pattern_type=3, principal=f"User:{text}", host="*",
            operation=3, permission_type=3),)),
        lambda kio: kio.CreateAclsResponse(
            throttle_time=zero, results=(kio.AclCreationResult(error_code=ErrorCode(0), error_message=text),)
        ),
    )  # fmt: skip
    login = turn(
        "sasl_authenticate", 1,
        lambda kio: kio.SaslAuthenticateRequest(auth_bytes=b"\0" + text.encode() + b"\0Zk7pLq2-plain"),
        lambda kio: kio.SaslAuthenticateResponse(
            error_code=ErrorCode(58), error_message=text, auth_bytes=b"", session_lifetime=zero
        ),
    )  # fmt: skip
    hello = turn(
        "sasl_handshake", 1,
        lambda kio: kio.SaslHandshakeRequest(mechanism="PLAIN"),
        lambda kio: kio.SaslHandshakeResponse(error_code=ErrorCode(0), mechanisms=("PLAIN",)),
    )  # fmt: skip
    return [join, create, acl, hello, login]


def mongo_places(text: str) -> list[Turn]:
    """The text in a command that nobody knows, in a login, and in code that the server runs."""
    failed = {"ok": 0.0, "errmsg": text, "code": 18, "codeName": "AuthenticationFailed"}
    asked = [
        {"doAsISay": text, "with": {"what": [text]}, "$db": "shop"},
        {"saslStart": 1, "mechanism": "PLAIN", "payload": b"\0" + text.encode() + b"\0Zk7pLq2", "$db": "admin"},
        {"authenticate": 1, "mechanism": "MONGODB-X509", "user": text, "$db": "$external"},
        {"createUser": text, "pwd": "Zk7pLq2-pwd", "roles": [], "$db": "shop"},
        {"find": "orders", "filter": {"$where": text}, "comment": text, "$db": "shop"},
    ]
    return [(op_msg(one, number), op_msg(failed, 100 + number, number)) for number, one in enumerate(asked, 1)]


def mqtt_turns(
    client_id: str, user: str, topic: str, reason: str, properties: Sequence[tuple[str, str]], payload: bytes = b"1"
) -> list[Turn]:
    """A session of MQTT 5 with user properties at every packet that may carry them, and a reason at the end."""
    own = [mqtt.user_property(name, value) for name, value in properties]
    why = b"\x1f" + mqtt.string(reason)
    will = (f"{topic}/will", payload, 0, False)
    return [
        (
            mqtt.connect(5, client_id, properties=own, will=will, will_properties=own, user_name=user, password=b"pw"),
            mqtt.connack(properties=[*own, why]),
        ),
        (mqtt.subscribe(1, (topic, 1), properties=own), mqtt.suback(1, 1, properties=[*own, why])),
        (mqtt.publish(topic, payload, 1, 7, properties=own), mqtt.ack(mqtt.PUBACK, 7, 0x10, [*own, why])),
        (mqtt.unsubscribe(2, topic), mqtt.unsuback(2, 0x80, properties=[why])),
        (mqtt.publish(topic, payload, 1, 8, properties=own), mqtt.disconnect(0x8B, [why, *own])),
    ]


def mongo_turns(
    app_name: str, database: str, collection: str, document: dict[str, Any], comment: str, errors: Sequence[str]
) -> list[Turn]:
    """A hello, a find and an insert for each error, which the server answers with that text."""
    client = {
        "application": {"name": app_name},
        "driver": {"name": "PyMongo", "version": "4.9"},
        "os": {"type": "Linux"},
        "platform": "CPython",
    }
    hello = {"hello": 1, "client": client, "$db": "admin"}
    reply = {"isWritablePrimary": True, "maxWireVersion": 21, "ok": 1.0}
    turns = [(op_msg(hello, 1), op_msg(reply, 101, 1))]
    find = {"find": collection, "filter": document, "comment": comment, "$db": database}
    found = {"cursor": {"id": 0, "ns": f"{database}.{collection}", "firstBatch": []}, "ok": 1.0}
    turns.append((op_msg(find, 2), op_msg(found, 102, 2)))
    for number, text in enumerate(errors, 3):
        insert = {"insert": collection, "documents": [document], "comment": comment, "$db": database}
        refused = {"n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": text}], "ok": 1.0}
        failed = {"ok": 0.0, "errmsg": text, "code": 8000, "codeName": "AtlasError"}
        turns.append((op_msg(insert, number), op_msg(refused if number % 2 else failed, 100 + number, number)))
    return turns


def carried(fields: Sequence[tuple[str, str]], turns: Iterable[Turn]) -> list[Captured]:
    """MQTT inside WebSocket, with these header fields at the upgrade."""
    talk = WebSocketTalk(header_fields=fields).open()
    for asked, answered in turns:
        talk.binary(True, asked).binary(False, answered)
    return talk.close().packets


def together(*connections: list[Captured]) -> list[Captured]:
    """The packets of all connections in the order of time."""
    return sorted((packet for packets in connections for packet in packets), key=lambda packet: packet.ts_ns)


def _sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body
