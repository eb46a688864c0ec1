"""Scenarios of transactions that are begun and ended, and for nothing."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.kafka_producers import paid, payout
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_EVERY = 2.0


def ended(outcomes: str) -> dict[str, list[Row]]:
    """One transaction of ten records every two seconds: `c` is committed, `a` aborted by its own EndTxn, `i` left open
    until the producer starts anew, under the next epoch."""
    asked, written, epoch = [payout(0, "init_producer_id")], [], 0
    for n, one in enumerate(outcomes):
        start = 1 + n * _EVERY
        written.append(paid(start + 0.5, 11 * n, records_count=10, producer_epoch=epoch))
        if one == "i":
            epoch += 1
            asked.append(payout(start + 1, "init_producer_id", answered_producer_epoch=epoch))
        else:
            asked.append(payout(start + 1, "end_txn", committed=one == "c", producer_epoch=epoch))
    return {"kafka_transactions": asked, "kafka_produce_batches": written}


TRANSACTION_FIRES: list[Scenario] = [
    fires("KAF211", "warning", "from a time on each one is aborted", **ended("cccc" + 12 * "a")),
    fires("KAF211", "warning", "none was ever committed", **ended(5 * "a")),
    fires("KAF211", "warning", "a producer that dies in each transaction and starts anew", **ended("cc" + 6 * "i")),
    fires("KAF211", "warning", "ten in a row, and then it goes well", **ended("cc" + 10 * "a" + "ccc")),
]
TRANSACTION_NEAR_MISSES: list[Scenario] = [
    silent("KAF211", "each second one is aborted", **ended(12 * "ca")),
    silent("KAF211", "four in the end", **ended("ccc" + 4 * "a")),
    silent("KAF211", "nine in a row, and then it goes well", **ended("cc" + 9 * "a" + "ccc")),
    silent("KAF211", "all are committed", **ended(20 * "c")),
]
