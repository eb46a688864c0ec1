"""What is not in a capture that lost bytes of a connection is not said to have never been sent."""

from __future__ import annotations

import pytest

from tests.analyser.engine.rules.concerned import connected, looked_at
from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.build_mqtt import connection, flow_of, ping
from tests.analyser.engine.rules.scenarios.scenario import fires
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run


def finding(code: str, gap_bytes: int) -> Finding:
    """What is said of a client whose last packet, a PINGREQ long before the server closes, has no answer."""
    client = connection(gap_bytes=gap_bytes, ts_last_from_client=at(500), closed_by="server")
    scenario = fires(
        code, "info", "",
        mqtt_connections=[client], exchanges=[ping(500, None) | {"request_message_id": "a-500", "request_bytes": 2}],
        flows=[flow_of(client, acked_by_server=600_000, bytes_to_server=600_000)],
    )  # fmt: skip
    (found,) = [one for one in run(connected(scenario), looked_at(scenario)) if one.code == code]
    return found


@pytest.mark.parametrize(("gap_bytes", "is_sure"), [(0, True), (4, False)])
def test_a_client_is_not_silent_for_sure_where_bytes_are_missing(gap_bytes: int, is_sure: bool) -> None:
    assert ("may have sent a packet" in finding("MQT103", gap_bytes).sentence) != is_sure
