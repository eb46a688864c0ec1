"""Subscriptions and assignments of consumers, in the forms that clients really send."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import kio_messages
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.blobs.consumer import (
    Assignment,
    StickyUserData,
    Subscription,
    TopicPartitions,
    assignment,
    sticky_user_data,
    subscription,
)

TOPICS = "00000002 0001 61 0002 6262"  # "a", "bb"
USER_DATA = "00000002 cafe"
OWNED = "00000001 0001 61 00000002 00000000 00000003"  # a: 0, 3
A_0_3 = (TopicPartitions("a", (0, 3)),)


@pytest.mark.parametrize(
    ("blob", "expected"),
    [
        pytest.param(
            f"0000 {TOPICS} {USER_DATA}",
            Subscription(0, ("a", "bb"), b"\xca\xfe", None, None, None, 0),
            id="version 0",
        ),
        pytest.param(
            f"0000 {TOPICS} ffffffff", Subscription(0, ("a", "bb"), None, None, None, None, 0), id="no user data"
        ),
        pytest.param(
            f"0001 {TOPICS} {USER_DATA} {OWNED}",
            Subscription(1, ("a", "bb"), b"\xca\xfe", A_0_3, None, None, 0),
            id="version 1",
        ),
        pytest.param(
            f"0002 {TOPICS} {USER_DATA} {OWNED} 00000007",
            Subscription(2, ("a", "bb"), b"\xca\xfe", A_0_3, 7, None, 0),
            id="version 2",
        ),
        pytest.param(
            f"0003 {TOPICS} {USER_DATA} {OWNED} 00000007 0002 7231",
            Subscription(3, ("a", "bb"), b"\xca\xfe", A_0_3, 7, "r1", 0),
            id="version 3",
        ),
        pytest.param(
            f"0003 {TOPICS} {USER_DATA} {OWNED} 00000007 ffff",
            Subscription(3, ("a", "bb"), b"\xca\xfe", A_0_3, 7, None, 0),
            id="version 3 without rack",
        ),
        pytest.param(
            f"0001 {TOPICS} {USER_DATA}",
            Subscription(1, ("a", "bb"), b"\xca\xfe", None, None, None, 0),
            id="version 1 without owned partitions",
        ),
        pytest.param(
            f"0003 {TOPICS} {USER_DATA} {OWNED}",
            Subscription(3, ("a", "bb"), b"\xca\xfe", A_0_3, None, None, 0),
            id="version 3 that ends as version 1",
        ),
        pytest.param(f"0000 {TOPICS}", Subscription(0, ("a", "bb"), None, None, None, None, 0), id="topics only"),
        pytest.param("0000 ffffffff ffffffff", Subscription(0, (), None, None, None, None, 0), id="null topics"),
        pytest.param(
            f"0000 {TOPICS} {USER_DATA} 00000000",
            Subscription(0, ("a", "bb"), b"\xca\xfe", None, None, None, 4),
            id="bytes left over",
        ),
        pytest.param(
            f"0009 {TOPICS} {USER_DATA} {OWNED} 00000007 0002 7231 00",
            Subscription(9, ("a", "bb"), b"\xca\xfe", A_0_3, 7, "r1", 1),
            id="a later version",
        ),
    ],
)
def test_subscription(blob: str, expected: Subscription) -> None:
    assert subscription(bytes.fromhex(blob)) == expected


@pytest.mark.parametrize(
    ("blob", "expected"),
    [
        pytest.param(f"0000 {OWNED} {USER_DATA}", Assignment(0, A_0_3, b"\xca\xfe", 0), id="version 0"),
        pytest.param(f"0003 {OWNED} ffffffff", Assignment(3, A_0_3, None, 0), id="version 3"),
        pytest.param(f"0000 {OWNED}", Assignment(0, A_0_3, None, 0), id="no user data at all"),
        pytest.param("0000 00000000 ffffffff", Assignment(0, (), None, 0), id="nothing assigned"),
        pytest.param("0000 ffffffff", Assignment(0, (), None, 0), id="null"),
        pytest.param(f"0001 {OWNED} 00000000 0102", Assignment(1, A_0_3, b"", 2), id="bytes left over"),
    ],
)
def test_assignment(blob: str, expected: Assignment) -> None:
    assert assignment(bytes.fromhex(blob)) == expected


@pytest.mark.parametrize(
    "blob",
    [
        pytest.param("", id="empty"),
        pytest.param("00", id="half a version"),
        pytest.param("ffff 00000000", id="negative version"),
        pytest.param("0000", id="version only"),
        pytest.param("0000 7fffffff", id="2**31-1 elements"),
        pytest.param("0000 00000001 ffff 00000000", id="null topic"),
        pytest.param("0000 00000001 0001 61 7fffffff", id="2**31-1 partitions"),
        pytest.param("0000 00000001 0009 61 00000000", id="topic longer than the blob"),
        pytest.param("0000 00000000 00000009 00", id="user data longer than the blob"),
    ],
)
def test_broken_assignment(blob: str) -> None:
    with pytest.raises(DecodeError):
        assignment(bytes.fromhex(blob))


@pytest.mark.parametrize(
    ("user_data", "cooperative", "expected"),
    [
        pytest.param(OWNED, False, StickyUserData(A_0_3, None), id="eager version 0"),
        pytest.param(OWNED + "00000005", False, StickyUserData(A_0_3, 5), id="eager version 1"),
        pytest.param("00000005", True, StickyUserData(None, 5), id="cooperative"),
    ],
)
def test_sticky_user_data(user_data: str, cooperative: bool, expected: StickyUserData) -> None:
    assert sticky_user_data(bytes.fromhex(user_data), cooperative=cooperative) == expected


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("name", ["subscription", "assignment"])
def test_blobs_that_kio_encodes(name: str, version: int) -> None:
    module = import_module(f"kio.schema.consumer_protocol_{name}.v{version}.data")
    kind = getattr(module, f"ConsumerProtocol{name.capitalize()}")
    for seed in range(40):
        entity = kio_messages.generate(kind, Random(seed))
        blob = version.to_bytes(2, "big") + kio_messages.encode(entity)
        found: Any = subscription(blob) if name == "subscription" else assignment(blob)
        assert found.trailing_bytes == 0
        assert found.version == version
        for field, expected in kio_messages.expected(entity).items():
            assert _plain(getattr(found, field)) == expected, f"seed {seed}, {field}"


def _plain(value: Any) -> Any:
    if isinstance(value, TopicPartitions):
        return {"topic": value.topic, "partitions": list(value.partitions)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_raise_nothing_but_decode_error(blob: bytes, cooperative: bool) -> None:
    for read in (subscription, assignment):
        with suppress(DecodeError):
            assert read(blob).trailing_bytes >= 0
    with suppress(DecodeError):
        sticky_user_data(blob, cooperative=cooperative)
