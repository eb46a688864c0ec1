"""The lab's MongoDB scenarios run afresh: what the drivers say equals our decode of the capture made a moment ago.

The samples are frozen; here timing and identifiers are new in every run.
"""

from __future__ import annotations

import pytest

from tests.lab import command_log, runs
from tests.lab.shared_runs import outcome_of
from tests.oracle.test_mongo_clients import compare, rows_of
from tests.support.shares import long_cases

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("scenario", long_cases(runs.names_meant("mongo"), "mongo_healthy"))
def test_fresh_run_equals_what_the_drivers_say(scenario: str) -> None:
    outcome = outcome_of(scenario)
    log = command_log.load_all(outcome.server_logs)
    found = compare(log, rows_of(outcome.pcap))
    print(f"{scenario}: {found}")
    assert found.differences == []
    assert found.commands == sum(1 for record in log if record.request_id) >= 10
