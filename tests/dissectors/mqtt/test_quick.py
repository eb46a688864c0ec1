"""What reads few bytes of a PUBLISH gives what its layout gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.mqtt_encode import (
    publish,
    string,
    u16,
    user_property,
    varint,
)
from tests.support.shares import examples
from wirewitness.dissectors.mqtt.packet_types import PUBLISH
from wirewitness.dissectors.mqtt.properties import quick_properties
from wirewitness.dissectors.mqtt.publishing import publish_parts
from wirewitness.dissectors.mqtt.walk import walk

_small = st.integers(0, 4)
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
