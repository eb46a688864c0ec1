"""Scenarios of transactions that are begun and ended, and for nothing."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.build_offsets import read
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


def rests(*seconds: float, code: int = 49) -> dict[str, list[Row]]:
    """Transactions at these seconds; the last one is refused with this error."""
    asked = [payout(0, "init_producer_id")]
    for one in seconds[:-1]:
        asked += [payout(one, "add_partitions_to_txn"), payout(one + 0.1, "end_txn", committed=True)]
    return {"kafka_transactions": [*asked, payout(seconds[-1], "add_partitions_to_txn", error_code=code)]}


def given(outcomes: str, *levels: int) -> dict[str, list[Row]]:
    """Transactions as in `ended`, read by a consumer each with these levels of isolation."""
    rows = ended(outcomes)
    fetches = [
        read(n * _EVERY + 2.2, 11 * n, 11 * n + 11, isolation_level=level, records_count=10)
        | {"client_id": f"ledger-{number}", "client_address": f"10.1.0.{70 + number}", "group_id": f"ledger-{number}",
           "topic": "orders", "exchange_id": f"ledger-{number}-f{n}"}
        for number, level in enumerate(levels) for n in range(len(outcomes))
    ]  # fmt: skip
    return rows | {"kafka_fetch_partitions": fetches}


TRANSACTION_FIRES: list[Scenario] = [
    fires("KAF211", "warning", "from a time on each one is aborted", **ended("cccc" + 12 * "a")),
    fires("KAF211", "warning", "none was ever committed", **ended(5 * "a")),
    fires("KAF211", "warning", "a producer that dies in each transaction and starts anew", **ended("cc" + 6 * "i")),
    fires("KAF219", "warning", "after a rest of a minute", **rests(1, 2, 3, 63)),
    fires("KAF219", "warning", "its success lies before the capture", **rests(3)),
    fires("KAF220", "warning", "another one reads committed records", **given("cacacaca", 0, 1)),
    fires("KAF220", "info", "nobody else reads", **given("cacacaca", 0)),
    fires("KAF211", "warning", "ten in a row, and then it goes well", **ended("cc" + 10 * "a" + "ccc")),
]
TRANSACTION_NEAR_MISSES: list[Scenario] = [
    silent("KAF211", "each second one is aborted", **ended(12 * "ca")),
    silent("KAF219", "another error", **rests(1, 2, 3, 63, code=51)),
    silent("KAF220", "both read committed records", **given("cacacaca", 1, 1)),
    silent("KAF220", "nothing was aborted", **given("cccccccc", 0, 1)),
    silent("KAF211", "four in the end", **ended("ccc" + 4 * "a")),
    silent("KAF211", "nine in a row, and then it goes well", **ended("cc" + 9 * "a" + "ccc")),
    silent("KAF211", "all are committed", **ended(20 * "c")),
]
