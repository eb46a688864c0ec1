"""Every protocol runs through the same properties; a new one is a line in CASES."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.dissectors import properties
from tests.dissectors.example.talk import EXAMPLE_CASE
from tests.dissectors.kafka.talk import KAFKA_CASE
from tests.dissectors.mongo.talk import MONGO_CASE
from tests.dissectors.mqtt.talk import MQTT_CASE
from tests.support.shares import examples
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT

CASES = {"kafka": KAFKA_CASE, "mqtt": MQTT_CASE, "mongo": MONGO_CASE, "example": EXAMPLE_CASE}

# A message with a size of 16 MiB and more.
OVERSIZED: dict[str, Callable[[bytes], bytes]] = {
    "kafka": lambda message: b"\x03" + message[1:],
    "mqtt": lambda message: message[:1] + b"\x80\x80\x80\x08" + message[5:],
    "mongo": lambda message: message[:3] + b"\x02" + message[4:],
}

each_case = pytest.mark.parametrize("protocol", CASES)
few = examples(40, suppress_health_check=[HealthCheck.too_slow])


@each_case
@few
@given(data=st.data())
def test_any_bytes_give_rows_and_no_error(protocol: str, data: st.DataObject) -> None:
    properties.check_any_bytes(CASES[protocol], data)


@each_case
@few
@given(data=st.data())
def test_the_rows_do_not_depend_on_segments_and_batches(protocol: str, data: st.DataObject) -> None:
    properties.check_any_split(CASES[protocol], data)


@each_case
@few
@given(data=st.data())
def test_a_truncated_capture_gives_a_prefix(protocol: str, data: st.DataObject) -> None:
    properties.check_truncation(CASES[protocol], data)


@each_case
@pytest.mark.parametrize("seed", [0, 7, 42])
def test_after_losses_messages_are_found_again_and_none_is_made_up(protocol: str, seed: int) -> None:
    properties.check_loss(CASES[protocol], seed)


@each_case
@pytest.mark.parametrize("direction", [CLIENT_TO_SERVER, SERVER_TO_CLIENT])
def test_a_boundary_is_found_wherever_a_segment_ends_in_it(protocol: str, direction: int) -> None:
    properties.check_cut_boundary(CASES[protocol], direction)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("direction", [CLIENT_TO_SERVER, SERVER_TO_CLIENT])
@pytest.mark.parametrize("protocol", OVERSIZED)
def test_a_damaged_size_does_not_hide_what_follows(protocol: str, direction: int, lost: bool) -> None:
    properties.check_damaged_size(CASES[protocol], direction, OVERSIZED[protocol], lost)


@each_case
@few
@given(data=st.data())
def test_framers_and_decoders_can_be_pickled(protocol: str, data: st.DataObject) -> None:
    properties.check_pickling(CASES[protocol], data)


@each_case
@few
@given(data=st.data())
def test_any_bytes_have_a_tree(protocol: str, data: st.DataObject) -> None:
    properties.check_inspect(CASES[protocol], data)


@each_case
@few
@given(data=st.data())
def test_the_probe_knows_its_own_and_takes_anything(protocol: str, data: st.DataObject) -> None:
    properties.check_probe(CASES[protocol], data)
