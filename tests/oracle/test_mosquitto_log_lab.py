"""The lab's MQTT scenarios run afresh: what the broker logs equals our decode of the capture made a moment ago."""

from __future__ import annotations

import pytest

from tests.lab import runs
from tests.lab.shared_runs import outcome_of
from tests.oracle.test_mosquitto_log import check
from tests.support.shares import long_cases

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("name", long_cases(runs.names_meant("mqtt"), "mqtt_faults"))
def test_fresh_run_equals_the_broker_log(name: str) -> None:
    outcome = outcome_of(name)
    server = runs.load_scenario(name).SERVER
    check(name, server.name, outcome.facts, server.read_logs(outcome.server_logs), outcome.pcap)
