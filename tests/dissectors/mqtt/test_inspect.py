"""The tree of a packet: what it shows, what it keeps back."""

from __future__ import annotations

import pytest

from tests.support.mqtt_encode import auth, connack, connect, publish, string, subscribe, user_property
from wirewitness.dissectors.core.inspect import Asked, Inspected, Node
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.mqtt.inspect import inspect, may_hide

METHOD, DATA = b"\x15" + string("SCRAM"), b"\x16" + string("n,,n=user,r=proof")


def look(data: bytes, operation: str, version: str | None = "5.0", *, payload: bool = False) -> Inspected:
    return inspect(data, Asked("request", operation, version), DecodeOptions(payload=payload))


def hidden(data: bytes, found: Inspected) -> list[tuple[str, bytes]]:
    return [(one.kind, data[one.start : one.end]) for one in found.hidden]


def every(nodes: list[Node]) -> dict[str, object]:
    """Name -> value of all nodes."""
    found: dict[str, object] = {}
    for node in nodes:
        found[node.name] = node.value
        found.update(every(node.children))
    return found


def test_passwords_and_wills_are_kept_back() -> None:
    data = connect(4, "dev", user_name="me", password=b"hunter2", will=("w/t", b"goodbye", 1, False))
    found = look(data, "CONNECT", "3.1.1")
    assert hidden(data, found) == [("payload", b"goodbye"), ("secret", b"me"), ("secret", b"hunter2")]
    shown = every(found.nodes)
    assert shown["user_name"].startswith("***")
    assert shown["password"] == "***"
    assert shown["will_payload"] is None
    assert shown["connect_flags"] == "clean_start will will_qos password user_name"
    assert "hunter2" not in repr(found)
    opened = look(data, "CONNECT", "3.1.1", payload=True)
    assert hidden(data, opened) == [("secret", b"hunter2")]
    assert every(opened.nodes)["user_name"] == "me"
    redacting = DecodeOptions(payload=True, closed=True)
    overwritten = inspect(data, Asked("request", "CONNECT", "3.1.1"), redacting)
    assert hidden(data, overwritten) == [("secret", b"goodbye"), ("secret", b"me"), ("secret", b"hunter2")]


@pytest.mark.parametrize(
    ("data", "operation"),
    [
        (connect(5, properties=[METHOD, DATA]), "CONNECT"),
        (connack(properties=[METHOD, DATA]), "CONNACK"),
        (auth(0x18, METHOD, DATA), "AUTH"),
    ],
    ids=["CONNECT", "CONNACK", "AUTH"],
)
def test_authentication_data_is_secret(data: bytes, operation: str) -> None:
    found = look(data, operation)
    assert hidden(data, found) == [("secret", b"n,,n=user,r=proof")]
    assert every(found.nodes)["authentication_method"] == "SCRAM"
    assert may_hide(Asked("request", operation, "5.0"))


def test_what_follows_a_break_in_connect_is_secret() -> None:
    data = connect(4, "dev", user_name="me", password=b"hunter2")
    for end in range(2, len(data)):
        found = look(data[:end], "CONNECT", "3.1.1")
        cut = data[:end]
        assert all(b"hun" not in cut[at:stop] for at, stop in _shown_spans(cut, found))
    other = data.replace(b"MQTT\x04", b"MQTT\x09")
    assert hidden(other, look(other, "CONNECT", None))[-1][0] == "secret"


def _shown_spans(data: bytes, found: Inspected) -> list[tuple[int, int]]:
    """What is not hidden."""
    spans, at = [], 0
    for one in found.hidden:
        spans.append((at, one.start))
        at = one.end
    return [*spans, (at, len(data))]


def test_payloads_are_shown_on_request() -> None:
    data = publish("t", b"23 C", 1, 7, properties=[user_property("k", "v"), b"\x09" + string("id")])
    found = look(data, "PUBLISH")
    assert hidden(data, found) == [("secret", b"v"), ("payload", b"id"), ("payload", b"23 C")]
    assert every(found.nodes)["payload"] is None
    assert every(found.nodes)["user_property"] == "k: ***"
    asked = look(data, "PUBLISH", payload=True)
    assert (asked.hidden, every(asked.nodes)["payload"]) == ([], b"23 C")
    assert every(asked.nodes)["user_property"] == "k: v"
    assert every(asked.nodes)["packet_type_and_flags"] == "PUBLISH 0010"


def test_lists_and_options() -> None:
    found = look(subscribe(1, ("a", 0x2D), properties=()), "SUBSCRIBE")
    assert every(found.nodes)["options"] == "requested_qos no_local retain_as_published retain_handling=2"
    assert [node.name for node in found.nodes] == [
        "packet_type_and_flags",
        "remaining_length",
        "packet_identifier",
        "properties",
        "[0]",
    ]


@pytest.mark.parametrize(
    ("operation", "version", "expected"),
    [("CONNECT", "3.1", True), ("AUTH", "5.0", True), ("CONNACK", "3.1.1", True), ("PUBLISH", "3.1.1", False),
     ("PUBLISH", "5.0", True), ("PUBLISH", None, True), (None, "3.1", True), ("Type 0", "3.1", True)],
)  # fmt: skip
def test_which_packets_may_hold_credentials(operation: str | None, version: str, expected: bool) -> None:
    assert may_hide(Asked(None, operation, version)) is expected
