"""Thousands of clients that read and commit one partition: KAF127 looks at each commit's last readers, not at all."""

from __future__ import annotations

from typing import Any

from tests.support.rows import connection_from_rows
from tests.support.timing import takes_less_than
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.kafka.rules.kaf127_zombie_overlap import MOST_OTHERS

BASE = 10**18
PLACE = {"cluster_id": "c1", "group_id": "g", "topic": "t", "partition": 0}


def client(number: int) -> dict[str, Any]:
    return PLACE | {"client_id": f"c{number}", "client_address": "10.0.0.1", "file": "f", "request_packet": number}


def readers(number: int, *, late: range) -> list[Finding]:
    """So many clients begin to read one after the other; those of `late` commit when all have begun."""
    runs = [
        client(n) | {"ts": BASE + n, "ts_last": BASE + n, "first_offset": n, "next_offset": n + 100_000, "fetches": 1}
        for n in range(number)
    ]
    commits = [client(n) | {"ts": BASE + 10**13 + n, "committed_offset": 100_000, "error_code": 0} for n in late]
    con = connection_from_rows({"kafka_fetch_ranges": runs, "kafka_offset_commits": commits})
    return run(con, [RULES["KAF127"]], [])


def test_a_late_commit_names_the_last_of_many_that_took_over() -> None:
    found = readers(100, late=range(3, 4))
    assert {one.numbers["client"] for one in found} == {"c3"}
    assert [f"client c{n} at 10.0.0.1" in one.sentence for n, one in enumerate(found, 100 - MOST_OTHERS)] == [
        True
    ] * MOST_OTHERS


def test_what_it_costs_follows_the_number_of_readers() -> None:
    """Each compared with each, and that with all, would take minutes."""
    assert takes_less_than(8.0, lambda: readers(3_000, late=range(10)))
    assert takes_less_than(8.0, lambda: readers(700, late=range(0, 700, 50)))
