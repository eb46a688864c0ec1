"""One topic, two groups: a member of sarama 1.43.2, whose concurrent commits overtake each other, and one of 1.43.3,
the first release without that fault. It is no sample: a test holds both to the contract `kafka-consumer`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, Process
from tests.lab.runs import Run
from tests.lab.scenarios.kafka import stale_commit

SHOWS = "commits of sarama 1.43.2, which go back, beside those of 1.43.3, which do not"
HOSTS = ("billing-old", "billing-new", "shop")
CLIENTS = ("IBM/sarama v1.43.2", "IBM/sarama v1.43.3")
EXPECTED = ("KAF103",)
SERVER = kafka.Kafka()

OLD, NEW = "billing-old", "billing-new"  # groups, each with a member of that name
ENOUGH = 5
BATCHES = 12


def _fixed() -> str:
    return clients.go_program_with("go_sarama_old", "github.com/IBM/sarama", "v1.43.3")


def prepare() -> None:
    """Build the clients."""
    for name in ("go_sarama_old", "go_sarama"):
        clients.go_program(name)
    _fixed()


def drive(run: Run) -> None:
    """Let both work on the same messages until the old one's offsets went back some times."""
    run.call("topics", "shop", clients.go_program("go_sarama"), "topics", "-broker", run.endpoint, "orders:24")
    members = [_member(run, OLD, clients.go_program("go_sarama_old")), _member(run, NEW, _fixed())]
    for member in members:
        member.wait_for_event("session")
    for batch in range(BATCHES):
        stale_commit.busy(run, batch).finish()
        time.sleep(0.5)
        if batch >= 2 and len(_regressions(OLD, run.records())) >= ENOUGH:
            break
    for member in members:
        member.terminate()


def _member(run: Run, name: str, program: str) -> Process:
    return run.start(name, name, program, "-broker", run.endpoint, "-client-id", name, "-group", name,
                     "-topics", "orders", env={"GOMAXPROCS": "1"})  # fmt: skip


def _regressions(group: str, records: list[LogRecord]) -> list[Any]:
    return [pair for pair in commits.regressions(commits.read_commits(records)) if pair[1].group == group]


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """How often each group's offsets went back, by the broker's log; LabError when the old one's did not."""
    del directory
    back = {group: len(_regressions(group, records)) for group in (OLD, NEW)}
    stored = {group: sum(1 for one in commits.read_commits(records) if one.group == group) for group in (OLD, NEW)}
    if back[OLD] < ENOUGH or not stored[NEW]:
        raise LabError(f"went back {back}, of commits {stored}")
    return {"back": back, "stored": stored}
