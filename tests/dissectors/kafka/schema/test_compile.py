"""The generated decoders: values, bounds inside a bigger buffer, projection, hostile counts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import kafka_encode
from tests.support.shares import examples
from tests.support.timing import takes_less_than
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema import compile as kafka_compile
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.compile_plan import Planned
from wirewitness.dissectors.kafka.schema.compile_source import MANY, FunctionSource
from wirewitness.dissectors.kafka.schema.definitions import MASKED, Direction
from wirewitness.dissectors.kafka.schema.primitives import continue_uvarint, read_uvarint, uuid_text

messages = st.sampled_from(kafka_encode.MESSAGES)


def decode(message: tuple[int, int, Direction], body: bytes, fields: frozenset[str] | None = None) -> dict[str, Any]:
    """The value of a body that fills its frame, read inside a bigger buffer."""
    function = decoder(*message, fields)
    assert function is not None
    value, behind = function(b"\xaa" * 3 + body + b"\x00" * 50, 3, 3 + len(body))
    assert behind == 3 + len(body)
    return value


def test_no_schema_no_decoder() -> None:
    assert decoder(97, 0, "request") is None
    assert decoder(8, 11, "request") is None
    assert decoder(8, -1, "request") is None


def test_decoders_are_made_once() -> None:
    assert decoder(8, 9, "request") is decoder(8, 9, "request")


COMMIT_V8 = bytes.fromhex(
    "04 677270"  # group_id "grp"
    "00000005"  # generation
    "02 6d"  # member_id "m"
    "00"  # group_instance_id null
    "02"  # one topic
    "02 74"  # name "t"
    "03"  # two partitions
    "00000000 0000000000000064 ffffffff 00 00"  # 0: 100, no epoch, null metadata, no tags
    "00000001 00000000000000c8 00000002 03 6869 01 07 02 cafe"  # 1: 200, epoch 2, "hi", tagged field 7
    "00 00"  # no tags of topic and request
)


def test_offset_commit_by_hand() -> None:
    value = decode((8, 8, "request"), COMMIT_V8)
    first = {"partition_index": 0, "committed_offset": 100, "committed_leader_epoch": -1, "committed_metadata": None}
    second = {"partition_index": 1, "committed_offset": 200, "committed_leader_epoch": 2, "committed_metadata": "hi"}
    assert value == {
        "group_id": "grp",
        "generation_id_or_member_epoch": 5,
        "member_id": "m",
        "group_instance_id": None,
        "topics": [{"name": "t", "partitions": [first, second]}],
    }


def test_projection_by_hand() -> None:
    wanted = frozenset({"group_id", "committed_offset"})
    assert decode((8, 8, "request"), COMMIT_V8, wanted) == {
        "group_id": "grp",
        "topics": [{"partitions": [{"committed_offset": 100}, {"committed_offset": 200}]}],
    }
    assert decode((8, 8, "request"), COMMIT_V8, frozenset({"topics"})) == {
        "topics": decode((8, 8, "request"), COMMIT_V8)["topics"]
    }
    assert decode((8, 8, "request"), COMMIT_V8, frozenset()) == {}


def project(value: Any, wanted: frozenset[str]) -> Any:
    """What projection has to leave of a value, without lists and nulls whose wanted inside is not there."""
    if isinstance(value, list):
        return [project(one, wanted) for one in value]
    return {
        name: one if name in wanted else project(one, wanted)
        for name, one in value.items()
        if name in wanted or _holds(one, wanted)
    }


def _holds(value: Any, wanted: frozenset[str]) -> bool:
    if isinstance(value, list):
        return any(_holds(one, wanted) for one in value)
    return isinstance(value, dict) and any(name in wanted or _holds(one, wanted) for name, one in value.items())


def names_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for one in value for name in names_in(one)]
    if isinstance(value, dict):
        return [*value, *(name for one in value.values() for name in names_in(one))]
    return []


@given(messages, st.integers(0, 2**32))
@examples(300)
def test_projection_is_a_part_of_the_whole(message: tuple[int, int, Direction], seed: int) -> None:
    random = Random(seed)
    body, _ = kafka_encode.message(*message, random)
    whole = decode(message, body)
    names = sorted(set(names_in(whole)))
    wanted = frozenset(random.sample(names, min(len(names), random.choice([1, 2, 4]))))
    assert repr(project(decode(message, body, wanted), wanted)) == repr(project(whole, wanted))


@given(messages, st.integers(0, 2**32))
@examples(300)
def test_projection_refuses_every_cut(message: tuple[int, int, Direction], seed: int) -> None:
    random = Random(seed)
    body, _ = kafka_encode.message(*message, random)
    if not body:
        return
    cut = random.randrange(len(body))
    for wanted in (None, frozenset[str](), frozenset({"name", "group_id"})):
        function = decoder(*message, wanted)
        assert function is not None
        with pytest.raises(DecodeError):
            function(body, 0, cut)  # the rest of the message lies behind the end of the frame
        with pytest.raises(DecodeError):
            function(body[:cut], 0, cut)
        with pytest.raises(DecodeError):
            function(body[:cut], 0, len(body))  # a frame that claims more than the buffer holds


@given(messages, st.binary(max_size=200), st.integers(0, 200))
@examples(1000)
def test_any_bytes_raise_nothing_but_decode_error(message: tuple[int, int, Direction], buf: bytes, pos: int) -> None:
    for wanted in (None, frozenset({"partitions", "name"})):
        function = decoder(*message, wanted)
        assert function is not None
        try:
            _, behind = function(buf, min(pos, len(buf)), len(buf))
        except DecodeError:
            continue
        assert behind <= len(buf)


def test_text_that_is_not_utf8_stays_readable() -> None:
    value = decode((12, 0, "request"), bytes.fromhex("0003 67ff70 00000001 0002 c3a9"))
    assert value == {"group_id": "g\\xffp", "generation_id": 1, "member_id": "é"}


PLAIN = b"\0alice\0open-sesame"
HMAC = b"hmac-of-a-token"
TOKEN_V1 = b"\0\0" + b"\0\4User\0\5alice" + bytes(24) + b"\0\4tk-1" + b"\0\0\0\x0f" + HMAC + b"\0\0\0\7"


@pytest.mark.parametrize(
    ("message", "body", "name", "secret"),
    [
        pytest.param((36, 0, "request"), b"\0\0\0\x12" + PLAIN, "auth_bytes", PLAIN, id="password"),
        pytest.param((36, 2, "request"), b"\x13" + PLAIN + b"\0", "auth_bytes", PLAIN, id="password, compact"),
        pytest.param((36, 0, "request"), b"\0\0\0\0", "auth_bytes", PLAIN, id="nothing"),
        pytest.param((38, 1, "response"), TOKEN_V1, "hmac", HMAC, id="token"),
    ],
)
def test_secrets_stay_in_the_buffer(message: tuple[int, int, Direction], body: bytes, name: str, secret: bytes) -> None:
    """A secret is checked for its length as any value is, but only its mask comes out."""
    for fields in (None, frozenset({name})):
        value = decode(message, body, fields)
        assert value[name] == MASKED["bytes"] == b"***"
        assert repr(secret)[2:-1] not in repr(value)
    function = decoder(*message)
    assert function is not None
    with pytest.raises(DecodeError):
        function(body[:-1], 0, len(body) - 1)


def test_fields_around_a_secret() -> None:
    value = decode((38, 1, "response"), TOKEN_V1)
    assert (value["principal_name"], value["token_id"], value["throttle_time_ms"]) == ("alice", "tk-1", 7)


HUGE = "7fffffff"
HOSTILE = [
    pytest.param((3, 1, "request"), HUGE, id="2**31-1 topics"),
    pytest.param((3, 9, "request"), "ffffffff0f", id="2**32-2 topics, compact"),
    pytest.param((3, 9, "request"), "ffffffff7f", id="count above 32 bits"),
    pytest.param((3, 9, "request"), "ffffffffffff", id="varint without end"),
    pytest.param((8, 2, "request"), "0001 67 00000001 0000 0000000000000000 00000001 0001 74" + HUGE, id="partitions"),
    pytest.param((11, 0, "request"), "0001 67 00000001 0000 0000 00000001 0001 61" + HUGE, id="2 GiB of metadata"),
    pytest.param((0, 3, "request"), "ffff 0001 00000001 00000001 0001 74 00000001 00000000" + HUGE, id="records"),
    pytest.param((15, 5, "request"), "ffffffff0f 01 01 01", id="compact strings"),
    pytest.param((9, 0, "request"), "0001 67 00000001 0001 74" + HUGE, id="2**31-1 numbers"),
    pytest.param((12, 4, "response"), "00000000 0000 ffffffff0f", id="2**32-1 tagged fields"),
    pytest.param((12, 4, "response"), "00000000 0000 01 00 ffffffff0f", id="4 GiB tagged field"),
    pytest.param((18, 3, "response"), "0000 01 00000000 01 00 05 ffffffff0f", id="count inside a tagged field"),
    pytest.param((68, 0, "response"), "00000000 0000 00 00 00000000 00000000 01 ffffffff0f", id="in a nullable struct"),
]


@pytest.mark.parametrize("behind", [0, 8 << 20], ids=["alone", "in a block of 8 MiB"])
@pytest.mark.parametrize(("message", "body"), HOSTILE)
def test_hostile_counts_cost_nothing(message: tuple[int, int, Direction], body: str, behind: int) -> None:
    raw = bytes.fromhex(body)
    buf = raw + bytes(behind)
    for wanted in (None, frozenset({"name"})):
        function = decoder(*message, wanted)
        assert function is not None

        def decode(function: Callable[..., object] = function) -> None:
            with pytest.raises(DecodeError):
                function(buf, 0, len(raw))

        tracemalloc.start()
        decode()
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < 200_000
        assert takes_less_than(0.1, decode)


@pytest.mark.parametrize("flexible", [False, True])
def test_elements_without_bytes_do_not_loop(flexible: bool) -> None:
    """No schema has them today: a struct all of whose fields belong to other versions, in an array in an array."""
    hollow = Planned("inner", "struct", True, False, None, True, (), 0)
    outer = Planned("outer", "struct", True, False, None, True, (hollow,), 4)
    source = FunctionSource(flexible, "")
    scope: dict[str, Any] = {**vars(kafka_compile), "DecodeError": DecodeError, "StructError": Exception}
    scope |= {"null": DecodeError, "long": continue_uvarint}
    exec(source.function((outer,)), scope | source.constants, scope)
    raw = bytes.fromhex("02 ffffffff0f 00 00" if flexible else "00000001 7fffffff")

    def decode() -> None:
        with pytest.raises(DecodeError):
            scope["decode"](raw, 0, len(raw))

    assert takes_less_than(0.5, decode)


@pytest.mark.parametrize("count", [0, 1, 2, MANY - 1, MANY, MANY + 1, 200])
@pytest.mark.parametrize("tagged_at", [None, 0, -1])
def test_arrays_of_numbers_of_every_length(count: int, tagged_at: int | None) -> None:
    """Few elements, many elements and tagged fields among them take different paths."""
    parts = [(index).to_bytes(4, "big") + (index % 7).to_bytes(2, "big") + b"\x00" for index in range(count)]
    if tagged_at is not None and parts:
        parts[tagged_at] = parts[tagged_at][:-1] + bytes.fromhex("01 05 01 ff")
    body = bytes.fromhex("00000000 02 02 74") + kafka_encode.uvarint(count + 1) + b"".join(parts) + b"\x00\x00"
    assert decode((8, 8, "response"), body)["topics"] == [
        {"name": "t", "partitions": [{"partition_index": i, "error_code": i % 7} for i in range(count)]}
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("00", (0, 1), id="0"),
        pytest.param("7f", (127, 1), id="127"),
        pytest.param("8001", (128, 2), id="128"),
        pytest.param("8000", (0, 2), id="0 in two bytes"),
        pytest.param("ffffffff0f", (2**32 - 1, 5), id="largest"),
        pytest.param("ffffffff1f", None, id="33 bits"),
        pytest.param("ffffffffff01", None, id="six bytes"),
        pytest.param("80", None, id="cut"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_uvarint(raw: str, expected: tuple[int, int] | None) -> None:
    body = bytes.fromhex(raw)
    if expected is None:
        with pytest.raises(DecodeError):
            read_uvarint(body, 0, len(body))
    else:
        assert read_uvarint(body + b"\x01", 0, len(body)) == expected


def test_uuid_text_is_as_kafka_prints_it() -> None:
    assert uuid_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(bytes.fromhex("fbf0" * 8)) == "-_D78Pvw-_D78Pvw-_D78A"
