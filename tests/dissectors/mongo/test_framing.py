"""Where MongoDB messages start, after a loss too, and whether a stream is MongoDB at all."""

from __future__ import annotations

import struct
from random import Random

import bson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.mongo.wire import Wire
from tests.support.mongo_messages import (
    CHECKSUM,
    compressed,
    message,
    op_get_more,
    op_msg,
    op_query,
    op_reply,
    op_update,
)
from tests.support.shares import examples
from tests.support.timing import takes_less_than
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Cut
from wirewitness.dissectors.mongo.decoder import MongoDecoder
from wirewitness.dissectors.mongo.framing import candidates, framer, probe

FIND = op_msg({"find": "orders", "filter": {"a": 1}, "$db": "shop"}, 7)
REPLY = op_msg({"cursor": {"firstBatch": [{"a": 1}], "id": 0, "ns": "shop.orders"}, "ok": 1.0}, 8, 7)
HELLO = op_query("admin.$cmd", {"isMaster": 1}, 1)
KAFKA = bytes.fromhex("00000019 0012 0003 00000001 0005 636f6e73 6f00 0000 0000 0000 0000 0000")
TLS = bytes.fromhex("160301 0200 010001fc0303") + bytes(range(200))
HTTP = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"

PROBES = [
    pytest.param(FIND, b"", True, 100, id="request"),
    pytest.param(FIND, REPLY, False, 100, id="both"),
    pytest.param(b"", REPLY, False, 100, id="reply alone"),
    pytest.param(HELLO, b"", True, 100, id="legacy hello"),
    pytest.param(op_msg({"ping": 1}, flags=CHECKSUM), b"", True, 100, id="checksum"),
    pytest.param(HELLO[:8] + b"\xff" * 4 + HELLO[12:], b"", True, 100, id="an old driver fills responseTo"),
    pytest.param(b"", op_reply([{"ok": 1.0}], 0), False, 100, id="reply to request 0"),
    pytest.param(op_reply([{"ok": 1.0}], 7), b"", True, 0, id="OP_REPLY from the client"),
    pytest.param(compressed(FIND, "zlib"), b"", True, 100, id="compressed"),
    pytest.param(compressed(FIND, "snappy"), b"", False, 100, id="snappy, mid-stream"),
    pytest.param(FIND[:40], b"", True, 60, id="cut request"),
    pytest.param(FIND[11:] + FIND, b"", False, 100, id="mid-stream, behind the rest of a message"),
    pytest.param(b"", REPLY[20:] + REPLY, False, 100, id="mid-stream, replies"),
    pytest.param(REPLY, b"", False, 60, id="a reply from the client: the other way round is better"),
    pytest.param(b"", FIND, False, 0, id="a request from the server"),
    pytest.param(FIND[:17], b"", True, 30, id="a header"),
    pytest.param(FIND[:15], b"", True, 0, id="less than a header"),
    pytest.param(b"", b"", True, 0, id="nothing"),
    pytest.param(KAFKA, b"", True, 0, id="Kafka"),
    pytest.param(TLS, b"", True, 0, id="TLS"),
    pytest.param(HTTP, b"", True, 0, id="HTTP"),
    pytest.param(b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0", b"", True, 0, id="MQTT"),
    pytest.param(message(2013, b"\0\0\0\0\0" + b"\xff" * 60), b"", True, 0, id="no document"),
    pytest.param(op_msg({"ping": 1}, flags=4), b"", True, 0, id="unknown required flag"),
    pytest.param(message(2013, b"\0\0\0\0\0" + bson.encode({"\x01": 1})), b"", True, 30, id="a key of no letters"),
]


@pytest.mark.parametrize(("client", "server", "whole", "expected"), PROBES)
def test_probe(client: bytes, server: bytes, whole: bool, expected: int) -> None:
    assert probe(client, server, whole) == expected


@given(st.binary(max_size=400), st.binary(max_size=400), st.booleans())
def test_noise_is_not_taken_for_mongodb(client: bytes, server: bytes, whole: bool) -> None:
    assert probe(client, server, whole) < 50


def cut(data: bytes, *, direction: int = CLIENT_TO_SERVER, start: bool = True) -> Cut:
    talk = MongoDecoder(Limits(), DecodeOptions())
    reader = framer(direction, start, Limits())
    return reader.feed(data, [0], lambda at: talk.boundary(direction, data, at, at == 0))


def test_messages_are_cut_by_their_size() -> None:
    found = cut(FIND + HELLO + FIND[:30])
    assert (found.starts, found.ends) == ([0, len(FIND)], [len(FIND), len(FIND) + len(HELLO)])
    assert (found.position, found.need) == (len(FIND) + len(HELLO), len(FIND))


@pytest.mark.parametrize("size", [-1, 0, 15, 2**31 - 1, -(2**31)])
def test_an_impossible_size_is_skipped(size: int) -> None:
    damaged = struct.pack("<i", size) + FIND[4:]
    found = cut(damaged + FIND + HELLO)
    assert found.starts == [len(damaged), len(damaged) + len(FIND)]
    assert found.skipped


BOUNDARIES = [
    pytest.param(FIND, CLIENT_TO_SERVER, id="OP_MSG"),
    pytest.param(REPLY, SERVER_TO_CLIENT, id="reply"),
    pytest.param(compressed(REPLY, "zstd"), SERVER_TO_CLIENT, id="compressed"),
    pytest.param(HELLO, CLIENT_TO_SERVER, id="OP_QUERY"),
    pytest.param(op_reply([{"a": 1}], 7), SERVER_TO_CLIENT, id="OP_REPLY"),
    pytest.param(op_update("d.a", {"x": 1}, {"y": 1}), CLIENT_TO_SERVER, id="OP_UPDATE"),
    pytest.param(op_get_more("d.a", 5), CLIENT_TO_SERVER, id="OP_GET_MORE"),
]


@pytest.mark.parametrize(("whole", "direction"), BOUNDARIES)
def test_after_a_loss_messages_are_found_again(whole: bytes, direction: int) -> None:
    rest = Random(3).randbytes(57)
    found = cut(rest + whole + whole, direction=direction, start=False)
    assert found.starts == [len(rest), len(rest) + len(whole)]


@pytest.mark.parametrize(("whole", "direction"), BOUNDARIES)
def test_the_other_direction_is_not_believed(whole: bytes, direction: int) -> None:
    assert cut(whole + whole, direction=1 - direction, start=False).starts == []


def test_a_reply_without_documents_is_believed_only_for_a_request_that_waits() -> None:
    data = op_reply([], 7, cursor_id=0)
    talk = Wire().client(op_get_more("d.a", 5, 0, 7)).decoder
    assert talk.boundary(SERVER_TO_CLIENT, data, 0, True) is True
    assert MongoDecoder(Limits(), DecodeOptions()).boundary(SERVER_TO_CLIENT, data, 0, True) is False


@examples(30)
@given(st.integers(min_value=0, max_value=5000), st.integers(0, 2**32))
def test_no_message_is_made_up_in_noise(size: int, seed: int) -> None:
    assert cut(Random(seed).randbytes(size), start=False).starts == []


def test_a_message_inside_a_document_is_not_a_boundary_of_its_own_when_cut_there() -> None:
    """A stored message looks like one; where its carrier is known to go on, nobody asks."""
    carrier = op_msg({"insert": "a", "$db": "d", "documents": [{"raw": FIND}]}, 9)
    assert cut(carrier + FIND).starts == [0, len(carrier)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_pieces_do_not_matter(sizes: list[int]) -> None:
    data = FIND + HELLO + REPLY + FIND
    reader = framer(CLIENT_TO_SERVER, True, Limits())
    ends: list[int] = []
    offset, held, at, turn = 0, b"", 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        held += data[at : at + size]
        at, turn = at + size, turn + 1
        found = reader.feed(held, [0], lambda _: True)
        ends += [offset + end for end in found.ends]
        offset, held = offset + found.position, held[found.position :]
    assert ends == [len(FIND), len(FIND + HELLO), len(FIND + HELLO + REPLY), len(data)]


def test_candidates_are_where_an_opcode_could_be_and_the_end() -> None:
    data = b"xx" + FIND + b"yyy"
    assert 2 in list(candidates(data, 0, len(data)))
    assert list(candidates(data, 0, len(data)))[-15:] == list(range(len(data) - 15, len(data)))


LARGE = [
    pytest.param(op_msg({f"f{number}": number for number in range(500)}, 7), id="many fields"),
    pytest.param(op_msg({"insert": "a", "text": "x" * 100_000}, 7), id="large"),
    pytest.param(compressed(op_msg({"insert": "a", "text": "x" * 100_000}, 7), "zlib"), id="large when decompressed"),
]


@pytest.mark.parametrize("whole", LARGE)
def test_what_is_costly_to_judge_is_believed_where_a_segment_starts(whole: bytes) -> None:
    talk = MongoDecoder(Limits(), DecodeOptions())
    assert talk.boundary(CLIENT_TO_SERVER, whole, 0, True) is True
    assert talk.boundary(CLIENT_TO_SERVER, whole, 0, False) is False
    assert talk.boundary(CLIENT_TO_SERVER, whole[:90], 0, False) is None
    assert 50 <= probe(whole, b"", True) <= 100


def test_judging_many_starts_inside_each_other_takes_a_bounded_time() -> None:
    """Each field holds the header of a message whose document are the fields that follow."""
    start = struct.pack("<iiii", 30_000, 1, 0, 2013) + b"\0\0\0\0\0" + struct.pack("<i", 30_000 - 21)
    data = (b"\x05k\0" + struct.pack("<i", len(start)) + b"\0" + start) * 6000
    assert cut(data, start=False).starts == []
    assert takes_less_than(10, lambda: cut(data, start=False))
