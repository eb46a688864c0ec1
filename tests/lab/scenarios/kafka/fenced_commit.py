"""The near miss: a late commit that carries the generation of its claim, which is over; the broker refuses it with 22.

Group payments-ledger runs the application of stale_commit, but each commit goes out with the session that handed out
the message. ledger-a ends a review after ledger-b took the partition over, and tries to commit it again and again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, terminate_all
from tests.lab.runs import Run
from tests.lab.scenarios.kafka.group_facts import group_facts

SHOWS = "commits with the generation of a claim that is over, refused with 22 ILLEGAL_GENERATION; no offset goes back"
HOSTS = ("ledger-a", "ledger-b", "shop")
CLIENTS = (clients.go_pin("go_sarama", "github.com/IBM/sarama"),)
EXPECTED = ("KAF105",)
SERVER = kafka.Kafka()

GROUP, TOPIC = "payments-ledger", "payments"
LOST = 4  # range assignment: with ledger-b in the group partition 4 goes from ledger-a to ledger-b
ILLEGAL_GENERATION = 22
REFUSED_S = 3.0
ENOUGH_REFUSALS = 3


def prepare() -> None:
    """Build the client."""
    clients.go_program("go_sarama")


def drive(run: Run) -> None:
    """Let ledger-a lose partition 4 while it works on a message of it."""
    sarama = clients.go_program("go_sarama")

    def produce(name: str, *words: str) -> list[str]:
        return [name, "shop", sarama, "produce", "-broker", run.endpoint, "-client-id", f"{TOPIC}-api",
                "-topic", TOPIC, *words]  # fmt: skip

    def ledger(name: str) -> list[str]:
        return [name, name, sarama, "ledger", "-broker", run.endpoint, "-client-id", name, "-group", GROUP,
                "-topic", TOPIC, "-own-session"]  # fmt: skip

    run.call("topics", "shop", sarama, "topics", "-broker", run.endpoint, f"{TOPIC}:6")
    payments = run.start(*produce("payments-feed", "-partitions", "0-5", "-pause", "250ms", "-value", "booked"))
    first = run.start(*ledger("ledger-a"))
    first.wait_for_event("session")
    time.sleep(1.5)
    run.call(*produce("review", "-partitions", str(LOST), "-rounds", "1", "-value", "review"))
    second = run.start(*ledger("ledger-b"))
    second.wait_for_event("session")
    first.wait_for_event("late")
    time.sleep(REFUSED_S)
    terminate_all(first, second)
    payments.terminate()


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return the refused commits and their member; LabError if they are not there or an offset went back."""
    rows = commits.read_commits(records)
    refused = [row for row in rows if row.error_code]
    kinds = {(row.client_id, row.partition, row.error_code) for row in refused}
    if len(refused) < ENOUGH_REFUSALS or kinds != {("ledger-a", LOST, ILLEGAL_GENERATION)}:
        raise LabError(f"refused commits: {len(refused)} of kinds {kinds}")
    if commits.regressions(rows):
        raise LabError("an accepted offset went back")
    payments = group_facts(rows, GROUP, directory, ("ledger-a", "ledger-b"))
    fault = "a member commits with a generation that is over"
    return {"group": [{"fault": fault, "expected_detectors": ["KAF105"], **payments}]}
