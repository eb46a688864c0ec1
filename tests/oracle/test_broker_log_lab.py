"""The lab's Kafka scenarios run afresh: the broker's request log equals our decode of the capture made a moment ago.

The samples are frozen; here clients, timing and identifiers are new in every run.
"""

from __future__ import annotations

import pytest

from tests.lab import broker_log, runs
from tests.lab.shared_runs import outcome_of
from tests.oracle.test_broker_log import check_amount, compare, damage
from tests.support.recorder import record
from tests.support.shares import long_cases

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


# A few logins make few requests: what is asked of the others (many exchanges, many APIs) does not fit.
SMALL = {"kafka_sasl": 20}


@pytest.mark.parametrize("scenario", long_cases(runs.names_meant("kafka"), "kafka_stale_commit"))
def test_fresh_run_equals_the_broker_log(scenario: str) -> None:
    outcome = outcome_of(scenario)
    log = broker_log.load_all(outcome.server_logs, on_wire=True)
    found = compare(log, record([outcome.pcap]).exchanges)
    print(f"{scenario}: {found}")
    assert found.differences == []
    if scenario in SMALL:
        assert found.exchanges == len(log) >= SMALL[scenario]
    else:
        check_amount(found, len(log))
    assert damage(outcome.pcap) == []
