"""Both ways in which a stored offset goes back although every commit is accepted.

orders-billing: one sarama 1.43.2 member whose concurrent commits overtake each other.
payments-ledger: members that keep their own offsets past the end of a claim; ledger-a goes on committing partitions
that other members own by now, each rebalance adds one. Beside them partitions of both groups that stay in order, and
the healthy group shipments-labels.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, Process, terminate_all
from tests.lab.runs import Run
from tests.lab.scenarios.kafka.group_facts import group_facts

SHOWS = "stored offsets that go back: concurrent commits of one member, and a member that commits what it lost"
HOSTS = ("billing-a", "ledger-a", "ledger-b", "ledger-c", "labels-a", "shop")
CLIENTS = tuple(clients.go_pin(program, "github.com/IBM/sarama") for program in ("go_sarama_old", "go_sarama"))
EXPECTED = ("KAF101", "KAF102", "KAF103", "KAF104")
SERVER = kafka.Kafka()

REORDERED_GROUP, LEDGER_GROUP, HEALTHY_GROUP = "orders-billing", "payments-ledger", "shipments-labels"
BUSY, QUIET = "0-19", "20-23"  # partitions of orders; the quiet ones are too slow to be overtaken
# Three claims at a time have messages: with few committers the connection's lock often goes to the one that has just
# built a request, not to the one that waits with an older request. With many it is handed on in the order of waiting.
BUSY_SHAPE = ("-width", "3", "-burst", "4")
BUSY_ROUNDS, BATCHES, ENOUGH_REGRESSIONS = 8, 20, 20
# range assignment: with members a, b partition 4 goes from a to b; with a, b, c partition 2 goes from a to b.
FIRST_LOST, SECOND_LOST = 4, 2
SETTLED_COMMITS_S = 5.0


def prepare() -> None:
    """Build the clients."""
    clients.go_program("go_sarama_old")
    clients.go_program("go_sarama")


def drive(run: Run) -> None:
    """Create topics, start the healthy group, then both faults side by side."""
    sarama = clients.go_program("go_sarama")
    run.call("topics", "shop", sarama, "topics", "-broker", run.endpoint, "orders:24", "payments:6", "shipments:3")
    shipments = _produce(run, "shipments-feed", "shipments", "0-2", "400ms", "label")
    payments = _produce(run, "payments-feed", "payments", "0-5", "250ms", "booked")
    labels = run.start("labels-a", "labels-a", sarama, "consume", "-broker", run.endpoint, "-client-id", "labels-a",
                       "-group", HEALTHY_GROUP, "-topic", "shipments")  # fmt: skip
    labels.wait_for_event("session")
    _reorder(run)
    _outlive_claims(run)
    for process in (labels, payments, shipments):
        process.terminate()


def _produce(
    run: Run, name: str, topic: str, partitions: str, pause: str, value: str, rounds: int = 0, *shape: str
) -> Process:
    return run.start(name, "shop", clients.go_program("go_sarama"), "produce", "-broker", run.endpoint,
                     "-client-id", f"{topic}-api", "-topic", topic, "-partitions", partitions, "-pause", pause,
                     "-value", value, "-rounds", str(rounds), *shape)  # fmt: skip


def _reorder(run: Run) -> None:
    billing = run.start("billing-a", "billing-a", clients.go_program("go_sarama_old"), "-broker", run.endpoint,
                        "-client-id", "billing-a", "-group", REORDERED_GROUP, "-topics", "orders",
                        env={"GOMAXPROCS": "1"})  # fmt: skip
    billing.wait_for_event("session")
    quiet = _produce(run, "orders-quiet", "orders", QUIET, "400ms", "paid")
    for batch in range(BATCHES):
        busy(run, batch).finish()
        time.sleep(0.5)
        if len(_regressions_of(REORDERED_GROUP, run.records())) >= ENOUGH_REGRESSIONS:
            break
    quiet.terminate()
    billing.terminate()


def busy(run: Run, batch: int) -> Process:
    """Start one batch of messages in the shape in which commits overtake each other."""
    return _produce(run, f"orders-busy-{batch}", "orders", BUSY, "60ms", "paid", BUSY_ROUNDS, *BUSY_SHAPE)


def _regressions_of(group: str, records: list[LogRecord]) -> list[tuple[commits.Commit, commits.Commit]]:
    return [pair for pair in commits.regressions(commits.read_commits(records)) if pair[1].group == group]


def _ledger(run: Run, name: str) -> Process:
    return run.start(name, name, clients.go_program("go_sarama"), "ledger", "-broker", run.endpoint,
                     "-client-id", name, "-group", LEDGER_GROUP, "-topic", "payments")  # fmt: skip


def _outlive_claims(run: Run) -> None:
    first = _ledger(run, "ledger-a")
    first.wait_for_event("session")
    members = [first]
    for number, (name, lost) in enumerate((("ledger-b", FIRST_LOST), ("ledger-c", SECOND_LOST)), start=1):
        time.sleep(1.5)
        _produce(run, f"review-{lost}", "payments", str(lost), "1ms", "review", 1).finish()
        members.append(_ledger(run, name))
        members[-1].wait_for_event("session")
        first.wait_for_event("late", number)
        time.sleep(SETTLED_COMMITS_S)
    terminate_all(*members)


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return groups, partitions, committers and assignments of both faults; LabError when one did not happen."""
    reordered, ledger = _regressions_of(REORDERED_GROUP, records), _regressions_of(LEDGER_GROUP, records)
    lost = {after.partition for _, after in ledger}
    if len(reordered) < ENOUGH_REGRESSIONS or lost != {FIRST_LOST, SECOND_LOST}:
        raise LabError(f"the faults are not in the log: {len(reordered)} reordered commits, ledger partitions {lost}")
    if _regressions_of(HEALTHY_GROUP, records):
        raise LabError("the healthy group has regressions")
    rows = commits.read_commits(records)
    billing = group_facts(rows, REORDERED_GROUP, directory, ("billing-a",))
    payments = group_facts(rows, LEDGER_GROUP, directory, ("ledger-a", "ledger-b", "ledger-c"))
    return {
        "healthy_groups": [HEALTHY_GROUP],
        "group": [
            {
                "fault": "concurrent commits of one member overtake each other",
                "expected_detectors": ["KAF103"],
                **billing,
            },
            {
                "fault": "a member commits partitions that another member owns",
                "expected_detectors": ["KAF101", "KAF102", "KAF103", "KAF104"],
                **payments,
            },
        ],
    }
