"""walk and the generated decoders read the same, whole or broken; walk shows where a message breaks."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import kafka_encode
from tests.support.shares import examples, share
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.definitions import Direction
from wirewitness.dissectors.kafka.schema.walk import Node, begins, walk

BEFORE, BEHIND = b"\x02" * 7, b"\x01\x00" * 40
messages = st.sampled_from(kafka_encode.MESSAGES)


def check_equal(message: tuple[int, int, Direction], buf: bytes, pos: int, end: int) -> None:
    """The decoder gives what walk gives, and fails exactly where walk reports an error."""
    decode = decoder(*message)
    assert decode is not None
    walked = walk(*message, buf, pos, end)
    check_inside(walked.nodes, pos, walked.pos)
    try:
        decoded = decode(buf, pos, end)
    except DecodeError:
        assert walked.error is not None
        assert walked.error_at is not None
        assert pos <= walked.error_at <= end
    else:
        assert walked.error is None, walked.error
        assert repr(decoded) == repr_in_order(walked.value, walked.pos, decoded)


def check_inside(nodes: list[Node], start: int, end: int) -> None:
    """Fields follow each other inside their parent."""
    for node in nodes:
        assert start <= node.start <= node.end <= end, node.name
        check_inside(node.children, node.start, node.end)
        start = node.end


def repr_in_order(value: dict[str, Any], pos: int, like: tuple[dict[str, Any], int]) -> str:
    """Both as text, since a NaN is not equal to itself; keys in the order of `like`."""
    return repr((_ordered(value, like[0]), pos))


def _ordered(value: Any, like: Any) -> Any:
    if isinstance(value, dict):
        assert value.keys() == like.keys()
        return {key: _ordered(value[key], like[key]) for key in like}
    if isinstance(value, list):
        return [_ordered(one, other) for one, other in zip(value, like, strict=True)]
    return value


def broken(body: bytes, random: Random) -> bytes:
    """The bytes with a few changed, or cut, or lengthened."""
    changed = bytearray(body)
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        if changed:
            at = random.randrange(len(changed))
            changed[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
    if random.random() < 0.4:
        del changed[random.randrange(len(changed) + 1) :]
    if random.random() < 0.1:
        changed += random.randbytes(5)
    return bytes(changed)


MESSAGES = kafka_encode.MESSAGES
EDGES = [message for message in MESSAGES if kafka_encode.is_edge(*message[:2])]


@pytest.mark.parametrize("message", share(MESSAGES, EDGES), ids=lambda one: "{}-v{}-{}".format(*one))
def test_walk_equals_decoder_for_every_message(message: tuple[int, int, Direction]) -> None:
    for seed in range(8):
        random = Random(seed)
        body, value = kafka_encode.message(*message, random)
        buf = BEFORE + body + BEHIND
        check_equal(message, buf, len(BEFORE), len(BEFORE) + len(body))
        walked = walk(*message, buf, len(BEFORE), len(BEFORE) + len(body))
        assert (walked.error, walked.pos) == (None, len(BEFORE) + len(body))
        assert _with_records(walked.value, buf) == value
        for _ in range(8):
            other = broken(body, random)
            check_equal(message, BEFORE + other + BEHIND, len(BEFORE), len(BEFORE) + len(other))


@given(messages, st.integers(0, 2**32), st.integers(0, 2**32))
@examples(500)
def test_walk_equals_decoder_on_broken_messages(message: tuple[int, int, Direction], seed: int, breaks: int) -> None:
    body, _ = kafka_encode.message(*message, Random(seed))
    body = broken(body, Random(breaks))
    check_equal(message, BEFORE + body + BEHIND, len(BEFORE), len(BEFORE) + len(body))


@given(messages, st.binary(max_size=300), st.binary(max_size=60))
@examples(500)
def test_walk_equals_decoder_on_any_bytes(message: tuple[int, int, Direction], body: bytes, behind: bytes) -> None:
    check_equal(message, body + behind, 0, len(body))


@given(messages, st.integers(0, 2**32))
@examples(150)
def test_cutting_a_message_gives_a_prefix_of_its_tree(message: tuple[int, int, Direction], seed: int) -> None:
    random = Random(seed)
    body, _ = kafka_encode.message(*message, random)
    whole = walk(*message, body, 0, len(body))
    cut = random.randrange(len(body) + 1)
    part = walk(*message, body[:cut], 0, cut)
    assert (part.error is None) == (cut == len(body))
    finished = [one for one in leaves(part.nodes) if one.end < part.pos]
    assert finished == leaves(whole.nodes)[: len(finished)]


def leaves(nodes: list[Node]) -> list[Node]:
    found = []
    for node in nodes:
        found += leaves(node.children) if node.children else [node]
    return found


@given(messages, st.integers(0, 2**32))
@examples(150)
def test_spans_of_fields_lie_side_by_side(message: tuple[int, int, Direction], seed: int) -> None:
    body, _ = kafka_encode.message(*message, Random(seed))
    walked = walk(*message, body, 0, len(body))
    assert [*(one.start for one in walked.nodes), len(body)] == [0, *(one.end for one in walked.nodes)]


HEARTBEAT_V0 = bytes.fromhex(
    "0005 6f72646572"  # group_id "order"
    "00000007"  # generation_id
    "0002 6d31"  # member_id "m1"
)


def test_tree_of_a_heartbeat() -> None:
    walked = walk(12, 0, "request", HEARTBEAT_V0, 0, len(HEARTBEAT_V0))
    assert walked.nodes == [
        Node("group_id", 0, 7, "order"),
        Node("generation_id", 7, 11, 7),
        Node("member_id", 11, 15, "m1"),
    ]
    assert walked.value == {"group_id": "order", "generation_id": 7, "member_id": "m1"}


@pytest.mark.parametrize(
    ("body", "value", "error", "at"),
    [
        pytest.param(
            HEARTBEAT_V0[:9], {"group_id": "order"}, "the message ends inside a field", 7, id="cut in a number"
        ),
        pytest.param(
            HEARTBEAT_V0[:14],
            {"group_id": "order", "generation_id": 7},
            "the message ends inside a field",
            13,
            id="cut in a string",
        ),
        pytest.param(b"\xff\xff" + HEARTBEAT_V0[7:], {}, "group_id is null where it may not be", 0, id="null group"),
        pytest.param(b"\x7f\xff" + HEARTBEAT_V0[2:], {}, "the message ends inside a field", 2, id="string too long"),
    ],
)
def test_broken_message_keeps_what_was_readable(body: bytes, value: dict[str, Any], error: str, at: int) -> None:
    walked = walk(12, 0, "request", body, 0, len(body))
    assert (walked.value, walked.error, walked.error_at) == (value, error, at)


# ShareAcknowledge v1: a batch of a partition whose list of types says that it has more elements than there are bytes.
SHARE_ACKNOWLEDGE = bytes.fromhex(
    "02 67 02 6d 00000001 02" + "00" * 16 + "02 00000000 02 0000000000000000 0000000000000005 09 010203"
)


def test_elements_of_a_list_that_claims_too_many_lie_inside_it() -> None:
    walked = walk(79, 1, "request", SHARE_ACKNOWLEDGE, 0, len(SHARE_ACKNOWLEDGE))
    assert walked.error == "acknowledge_types has more elements than bytes left"
    assert walked.error_at == len(SHARE_ACKNOWLEDGE) - 4
    check_inside(walked.nodes, 0, walked.pos)
    assert walked.value["topics"][0]["partitions"][0]["acknowledgement_batches"][0]["acknowledge_types"] == [1, 2, 3]


SASL_PLAIN = bytes.fromhex("00000012 00") + b"alice\0open-sesame"


@pytest.mark.parametrize("cut", [len(SASL_PLAIN), len(SASL_PLAIN) - 1, 9])
def test_secrets_are_masked_in_the_tree(cut: int) -> None:
    """Their length shows in the span only, and a broken message shows nothing of them either."""
    walked = walk(36, 0, "request", SASL_PLAIN, 0, cut)
    assert "open" not in repr(walked)
    assert "alice" not in repr(walked)
    if cut == len(SASL_PLAIN):
        assert walked.nodes == [Node("auth_bytes", 0, 22, b"***")]
        assert walked.value == {"auth_bytes": b"***"}
    else:
        assert walked.error == "the message ends inside a field"


def test_no_schema_is_an_error_not_a_guess() -> None:
    assert walk(12, 99, "request", HEARTBEAT_V0, 0, 15).error == "no schema for API key 12 version 99"
    assert walk(999, 0, "request", HEARTBEAT_V0, 0, 15).error == "no schema for API key 999 version 0"


def _with_records(value: Any, buf: bytes) -> Any:
    if isinstance(value, dict):
        return {key: _with_records(one, buf) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_records(one, buf) for one in value]
    if isinstance(value, tuple):
        return buf[value[0] : value[0] + value[1]]
    return value


@given(messages, st.integers(0, 2**32), st.data())
@settings(deadline=None)
def test_every_part_of_a_message_can_begin_it(
    chosen: tuple[int, int, Direction], seed: int, data: st.DataObject
) -> None:
    body, _ = kafka_encode.message(*chosen, Random(seed))
    cut = data.draw(st.integers(0, max(len(body) - 1, 0)))
    found = begins(*chosen, body[:cut], 0, len(body))
    assert not body or (found is not None and found <= cut)
    assert begins(*chosen, body, 0, len(body) + 1) is None


BEGINNINGS = {
    "body": ("00000000 00000001 0001 74 00000001 00000003 00", 21, 19),
    "too many topics for the frame": ("00000000 00010000 0001 74 00000001 00000003 00", 40, None),
    "a name longer than the frame": ("00000000 00000001 0100 74 00000001 00000003 00", 40, None),
    "the body ends before the frame": ("00000000 00000000 0001 74 00000001 00000003 00", 40, None),
}


@pytest.mark.parametrize(("part", "frame_end", "read"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_the_beginning_of_an_offset_commit_answer(part: str, frame_end: int, read: int | None) -> None:
    """Version 3: throttle time; topics with a name; partitions with number and error."""
    assert begins(8, 3, "response", bytes.fromhex(part), 0, frame_end) == read
