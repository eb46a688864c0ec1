"""What is quick gives what the full readers give."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.mqtt.talk import MQTT_CASE
from tests.dissectors.properties import Turn, decoded
from tests.support.mqtt_encode import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connack,
    connect,
    publish,
    string,
    subscribe,
    u16,
    user_property,
    varint,
)
from tests.support.shares import examples
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.mqtt.decoder import MqttDecoder
from wirewitness.dissectors.mqtt.dissector import MQTT
from wirewitness.dissectors.mqtt.packet_types import PUBLISH
from wirewitness.dissectors.mqtt.properties import quick_properties
from wirewitness.dissectors.mqtt.publishing import publish_parts
from wirewitness.dissectors.mqtt.walk import walk


class FullPath(MqttDecoder):
    """A decoder that never takes the quick path."""

    __slots__ = ()

    def _is_ordinary(self) -> bool:
        return False


def full_path(limits: Limits, options: DecodeOptions) -> MqttDecoder:
    return FullPath(limits, options)


_CASES = (MQTT_CASE, replace(MQTT_CASE, dissector=replace(MQTT, decoder=full_path)))
_small = st.integers(0, 4)
_side = st.sampled_from([CLIENT_TO_SERVER, SERVER_TO_CLIENT])
_topics = st.sampled_from(["a", "plant/x", "ü", "", "bad/#", "\x01"])
_properties = st.lists(
    st.one_of(
        st.builds(lambda n: b"\x23" + u16(n), _small),
        st.builds(lambda n: b"\x02" + bytes([0, 0, 0, n]), _small),
        st.builds(lambda n: b"\x0b" + varint(n), st.sampled_from([0, 1, 127, 128, 300])),
        st.builds(user_property, st.sampled_from(["", "k", "ä"]), st.sampled_from(["", "v\0"])),
        st.builds(lambda data: b"\x09" + string(data), st.binary(max_size=5)),
        st.builds(lambda text: b"\x03" + string(text), st.sampled_from(["text", ""])),
        st.builds(lambda n: b"\x01" + bytes([n]), _small),
        st.binary(max_size=3),
    ),
    max_size=3,
)


@st.composite
def packets(draw: st.DrawFn, five: bool) -> Turn:
    """A message or an acknowledgement, right or wrong, with few identifiers so that they meet."""
    identifier = draw(_small)
    content = draw(
        st.one_of(
            st.builds(
                publish,
                _topics,
                st.binary(max_size=40),
                st.integers(0, 3),
                st.just(identifier),
                dup=st.booleans(),
                retain=st.booleans(),
                properties=_properties if five else st.none(),
            ),
            st.builds(ack, st.sampled_from([PUBACK, PUBREC, PUBREL, PUBCOMP]), st.just(identifier)),
            st.builds(lambda code: ack(PUBREC, identifier, code), st.sampled_from([0, 0x10, 0x97])),
            st.just(subscribe(identifier, ("a", 1), properties=() if five else None)),
        )
    )
    return Turn(draw(_side), content)


@examples(150)
@given(data=st.data())
def test_the_quick_path_gives_the_rows_of_the_full_one(data: st.DataObject) -> None:
    level = data.draw(st.sampled_from([4, 5]))
    limits = [b"\x22" + u16(3), b"\x21" + u16(2)] if level == 5 else None
    turns = [
        Turn(CLIENT_TO_SERVER, connect(level, "c", properties=limits or ())),
        Turn(SERVER_TO_CLIENT, connack(properties=limits)),
    ]
    turns += data.draw(st.lists(packets(level == 5), max_size=25))
    together = data.draw(st.integers(1, 30))
    quick, full = (decoded(case, turns, together=together) for case in _CASES)
    assert quick == full


@examples(200)
@given(st.binary(max_size=40), st.integers(0, 15), st.booleans())
def test_the_parts_of_a_publish_are_those_of_its_layout(body: bytes, flags: int, five: bool) -> None:
    data = bytes([0x30 | flags]) + varint(len(body)) + body
    found = walk(data, 0, len(data), 5 if five else 4)
    parts = publish_parts(data, 0, len(data), five)
    if found.error is not None:
        return  # the quick reader judges nothing: it may give parts of a packet whose properties are broken
    if parts is not None:
        topic_start, topic_end, identifier, properties_start, payload = parts
        assert found.value["payload"] == (payload, len(data) - payload)
        assert identifier == found.value.get("packet_identifier")
        assert data[topic_start:topic_end] == found.value["topic_name"].encode() or found.problems
        assert (properties_start == payload) == (not found.properties)
    else:
        assert five


@examples(300)
@given(_properties)
def test_quick_properties_are_those_of_the_layout(properties: list[bytes]) -> None:
    data = publish("t", properties=properties)
    found = walk(data, 0, len(data), 5)
    start = data.index(b"t") + 2
    quick = quick_properties(data, start, start + sum(map(len, properties)), PUBLISH, 100)
    if quick is not None:
        assert (found.error, found.problems) == (None, [])
        assert quick == found.properties
