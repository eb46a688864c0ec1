"""The test server of MongoDB's protocol, with the real pymongo against it."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import bson
import crc32c
import pytest
from pymongo import DeleteOne, InsertOne, MongoClient, UpdateOne, WriteConcern, monitoring
from pymongo.cursor import CursorType
from pymongo.errors import NotPrimaryError, OperationFailure

from tests.support import mongo_examples
from tests.support.mongo_server import wire
from tests.support.mongo_server.server import Server, serving
from tests.support.mongo_server.store import Late

USER, PASSWORD = "ada", "secret"
Client = MongoClient[dict[str, Any]]


class Replies(monitoring.CommandListener):
    """Collects (request id, command, reply) of every command that was answered."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str, dict[str, Any]]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Only ends are collected."""

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Collect."""
        self.found.append((event.request_id, event.command_name, dict(event.reply)))

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Collect."""
        self.found.append((event.request_id, event.command_name, dict(event.failure)))

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return a command's replies."""
        return [reply for _, command, reply in self.found if command == name]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), ("snappy", "zlib", "zstd"), (f"{USER}:{PASSWORD}",)) as made:
        serving(made)
        yield made
        made.shutdown()


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture(params=["", "snappy", "zlib", "zstd"], ids=lambda name: name or "uncompressed")
def client(request: pytest.FixtureRequest, server: Server, replies: Replies) -> Iterator[Client]:
    more = {"compressors": request.param} if request.param else {}
    host = "{}:{}".format(*server.server_address[:2])
    with MongoClient(
        host, replicaSet="lab", username=USER, password=PASSWORD, event_listeners=[replies], **more
    ) as made:
        made.drop_database("shop")
        made.shop.orders.insert_many([{"_id": number, "count": number} for number in range(20)])
        yield made


def fail_next(client: Client, command: str, **data: Any) -> None:
    data["failCommands"] = [command]
    client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)


def test_cursors_are_read_to_their_end(client: Client, replies: Replies) -> None:
    assert len(list(client.shop.orders.find({"count": {"$gte": 3}}, batch_size=5))) == 17
    assert [len(reply["cursor"]["nextBatch"]) for reply in replies.of("getMore")] == [5, 5, 2]
    assert replies.of("getMore")[-1]["cursor"]["id"] == 0


def test_exhaust_replies_come_unasked(client: Client, replies: Replies) -> None:
    assert len(list(client.shop.orders.find({}, batch_size=6, cursor_type=CursorType.EXHAUST))) == 20
    asked = [request_id for request_id, command, _ in replies.found if command == "getMore"]
    assert asked[0] != 0
    assert asked[1:] == [0, 0]


def test_a_tailable_cursor_waits_and_stays_open(client: Client, replies: Replies) -> None:
    cursor = client.shop.orders.find({}, cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(30)
    assert len(list(cursor)) == 20
    client.shop.orders.insert_one({"_id": "new"})
    assert list(cursor) == [{"_id": "new"}]
    assert cursor.alive
    assert [len(reply["cursor"]["nextBatch"]) for reply in replies.of("getMore")] == [0, 1, 0]


def test_a_bulk_write_reaches_several_collections(client: Client, replies: Replies) -> None:
    done = client.bulk_write([
        InsertOne(namespace="shop.audit", document={"_id": 1}),
        UpdateOne(namespace="shop.orders", filter={"_id": 2}, update={"$set": {"count": 0}}),
        DeleteOne(namespace="shop.orders", filter={"_id": 3}),
    ])  # fmt: skip
    assert (done.inserted_count, done.modified_count, done.deleted_count) == (1, 1, 1)
    assert client.shop.orders.find_one({"_id": 2}) == {"_id": 2, "count": 0}
    assert len(replies.of("bulkWrite")) == 1


def test_transactions_commit_abort_and_collide(client: Client) -> None:
    orders = client.shop.orders
    with client.start_session() as session, client.start_session() as other:
        with session.start_transaction():
            orders.update_one({"_id": 1}, {"$set": {"count": 100}}, session=session)
            assert orders.find_one({"_id": 1}) == {"_id": 1, "count": 1}
        session.start_transaction()
        orders.delete_one({"_id": 2}, session=session)
        other.start_transaction()
        with pytest.raises(OperationFailure) as found:
            orders.update_one({"_id": 2}, {"$set": {"count": 7}}, session=other)
        other.abort_transaction()
        session.abort_transaction()
    assert found.value.code == 112
    assert found.value.has_error_label("TransientTransactionError")
    assert [one["count"] for one in orders.find({"_id": {"$lte": 2}})] == [0, 100, 2]


def test_a_write_is_retried_with_its_number(client: Client, replies: Replies) -> None:
    fail_next(client, "insert", errorCode=10107)
    client.shop.orders.insert_one({"_id": "once"})
    assert [reply.get("code") for reply in replies.of("insert")[-2:]] == [10107, None]
    assert client.shop.orders.count_documents({"_id": "once"}) == 1


def test_a_write_that_was_done_is_not_done_again(client: Client, replies: Replies) -> None:
    with client.start_session() as session:
        command = {"update": "orders", "updates": [{"q": {"_id": 4}, "u": {"$inc": {"count": 1}}}], "txnNumber": 9}
        for _ in range(2):
            client.shop.command({**command, "txnNumber": bson.Int64(9)}, session=session)
    assert client.shop.orders.find_one({"_id": 4}) == {"_id": 4, "count": 5}
    assert replies.of("update")[-1]["retriedStmtIds"] == [0]


def test_time_limits_and_duplicates(client: Client, replies: Replies) -> None:
    fail_next(client, "find", blockConnection=True, blockTimeMS=500)
    with pytest.raises(OperationFailure) as found:
        client.shop.orders.find_one({}, max_time_ms=20)
    assert found.value.code == 50
    with pytest.raises(OperationFailure):
        client.shop.orders.insert_one({"_id": 3})
    assert [error["code"] for error in replies.of("insert")[-1]["writeErrors"]] == [11000]


def test_a_write_without_an_answer(client: Client) -> None:
    client.shop.orders.with_options(write_concern=WriteConcern(w=0)).insert_one({"_id": "quiet"})
    # The next command on the same connection is not confused by an answer.
    assert client.shop.orders.count_documents({"_id": "quiet"}) == 1


def test_a_wrong_password_is_refused(server: Server) -> None:
    host = "{}:{}".format(*server.server_address[:2])
    with MongoClient(host, username=USER, password="wrong") as client, pytest.raises(OperationFailure) as found:
        client.shop.orders.find_one({})
    assert found.value.code == 18


def test_who_is_in_stays_in_when_the_password_changes(client: Client, server: Server) -> None:
    client.admin.command("updateUser", USER, pwd="other")
    assert client.admin.command("ping")["ok"]
    with MongoClient(server.address_text, username=USER, password=PASSWORD) as late, pytest.raises(OperationFailure):
        late.admin.command("ping")
    client.admin.command("updateUser", USER, pwd=PASSWORD)


def exchange(server: Server, request: bytes) -> tuple[bytes, tuple[int, int, int, int]]:
    """Send bytes and return the reply with its header's four numbers."""
    with socket.create_connection(server.server_address[:2], timeout=5) as connection:
        connection.sendall(request)
        header = wire.receive(connection, 16)
        values = struct.unpack("<iiii", header)
        return header + wire.receive(connection, values[0] - 16), values


def test_a_checksum_is_answered_with_a_checksum(server: Server) -> None:
    reply, (_, _, response_to, opcode) = exchange(server, wire.encode_op_msg({"ping": 1, "$db": "admin"}, 77, 0, 1))
    assert (response_to, opcode) == (77, 2013)
    assert struct.unpack_from("<I", reply, 16)[0] & 1
    assert struct.unpack_from("<I", reply, len(reply) - 4)[0] == crc32c.crc32c(reply[:-4])


def test_the_legacy_hello_is_answered_with_op_reply(server: Server) -> None:
    body = struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1) + bson.encode({"isMaster": 1})
    reply, (length, _, response_to, opcode) = exchange(server, struct.pack("<iiii", 16 + len(body), 5, 0, 2004) + body)
    assert (response_to, opcode, length) == (5, 1, len(reply))
    assert bson.decode(reply[36:])["ismaster"] is True


def test_an_awaitable_hello_answers_again_and_again(server: Server) -> None:
    first, _ = exchange(server, wire.encode_op_msg({"hello": 1, "$db": "admin"}, 1, 0))
    version = bson.decode(first[21:])["topologyVersion"]
    hello = {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 30, "$db": "admin"}
    with socket.create_connection(server.server_address[:2], timeout=5) as connection:
        connection.sendall(wire.encode_op_msg(hello, 900, 0, wire.EXHAUST_ALLOWED))
        seen = []
        for _ in range(3):
            length, request_id, response_to, _ = struct.unpack("<iiii", wire.receive(connection, 16))
            (flags,) = struct.unpack_from("<I", wire.receive(connection, length - 16))
            seen.append((request_id, response_to, flags))
    ids = [request_id for request_id, _, _ in seen]
    assert [response_to for _, response_to, _ in seen] == [900, *ids[:-1]]
    assert {flags for _, _, flags in seen} == {wire.MORE_TO_COME}


def test_published_bytes_are_read() -> None:
    header, body = mongo_examples.SHELL_INSERT[:16], mongo_examples.SHELL_INSERT[16:]
    flags, command = wire.decode_op_msg(header, body)
    document = {"_id": bson.ObjectId("638cec46aa778bf370105429"), "a": 3.0}
    assert (flags, command) == (1, {"insert": "foo", "ordered": True, "$db": "test", "documents": [document]})
    with pytest.raises(ValueError, match="checksum"):
        wire.decode_op_msg(header, body.replace(b"foo", b"fop"))


def test_the_published_document_has_all_types() -> None:
    assert len(bson.decode(mongo_examples.ALL_TYPES)) == 25


@pytest.mark.parametrize("text", mongo_examples.BROKEN_DOCUMENTS.values(), ids=mongo_examples.BROKEN_DOCUMENTS.keys())
def test_published_documents_are_broken(text: str) -> None:
    with pytest.raises(bson.errors.InvalidBSON):
        bson.decode(bytes.fromhex(text))


def test_a_secondary_learns_late_and_takes_no_writes() -> None:
    with Server(("127.0.0.1", 0)) as primary:
        with Server(("127.0.0.1", 0), follows=primary, lag_s=3600) as secondary:
            serving(primary)
            serving(secondary)
            writer: Client = MongoClient(f"mongodb://{primary.address_text}/?replicaSet=lab")
            reader: Client = MongoClient(f"mongodb://{secondary.address_text}/?directConnection=true")
            writer.d.c.insert_one({"_id": 7})
            assert writer.d.c.find_one({"_id": 7}) == {"_id": 7}
            assert reader.d.c.find_one({"_id": 7}) is None
            late = secondary.context.store
            assert isinstance(late, Late)
            late.lag_s = 0.0
            assert reader.d.c.find_one({"_id": 7}) == {"_id": 7}
            both = {primary.address_text, secondary.address_text}
            until = time.monotonic() + 60  # the driver asks the second one when it likes
            while {f"{host}:{port}" for host, port in writer.nodes} != both:
                assert time.monotonic() < until
                time.sleep(0.02)
            with pytest.raises(NotPrimaryError):
                reader.d.c.insert_one({"_id": 8})
            writer.close()
            reader.close()
            secondary.shutdown()
        primary.shutdown()
