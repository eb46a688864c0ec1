"""KAF108 says what holds a group back: its handler, the replica that it reads from, or what it asks for."""

from __future__ import annotations

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, commit
from tests.analyser.engine.rules.scenarios.build_offsets import joined, read
from tests.analyser.engine.rules.scenarios.kafka_lag import loaded, written
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.tables.tables import TABLES


def found(reads: list[Row], commits: list[Row], per_second: int = 10) -> list[Finding]:
    log = written(range(40), per_second)
    return found_in(joined(kafka_produce_batches=log, kafka_fetch_partitions=reads, kafka_offset_commits=commits))


def found_in(tables: Rows) -> list[Finding]:
    con = connection_from_rows(tables)
    for stage in STAGES:
        if any(TABLES[name].protocol == "kafka" for name in (*stage.makes, *stage.reads)):
            stage.run(con)
    return run(con, [RULES["KAF108"]])


def read_at_once(behind: int = 0) -> list[Row]:
    """Each second all that is new; `behind` is how much the replica that it reads from gets less in a second."""
    each = 10 - behind
    return [read(n + 0.2, n * each, (n + 1) * each, high_watermark=(n + 1) * each) for n in range(40)]


def test_fetches_that_run_ahead_of_slow_commits_are_a_slow_handler() -> None:
    (one,) = found(read_at_once(), [commit(n + 0.5, n * 4) for n in range(1, 40)])
    assert (one.severity, one.numbers["cause"]) == ("warning", "slow handler")
    assert "its commits move by 4" in one.sentence
    assert "the log grows by 10" in one.sentence


def of_load(more: int, slower: int = 5) -> Finding:
    (one,) = found_in(joined(**loaded(more, slower)))
    return one


def test_who_writes_much_more_than_before_is_named_and_not_the_handler() -> None:
    one = of_load(more=45)
    assert one.numbers["cause"] == "more written"
    assert one.numbers["writer"] == {"address": "10.1.0.9", "client_id": "load-test", "member_id": None}
    assert "10 times as much is written" in one.sentence
    assert "90% of it by client load-test at 10.1.0.9" in one.sentence


@pytest.mark.parametrize(("more", "slower"), [(5, 5), (45, 1)], ids=["twice as much", "the group became slower"])
def test_another_load_is_no_cause_where_it_is_small_or_the_group_slower(more: int, slower: int) -> None:
    one = of_load(more, slower)
    assert one.numbers["cause"] != "more written"
    assert one.numbers["writer"] is None


def test_a_few_records_a_second_are_enough() -> None:
    reads = [read(n + 0.2, n * 2, n * 2 + 2, high_watermark=n * 2 + 2) for n in range(40)]
    (one,) = found(reads, [commit(n + 0.5, n) for n in range(1, 40)], per_second=2)
    assert one.numbers["lag"] < 100


def test_a_replica_that_is_behind_is_named_and_not_the_reader() -> None:
    (one,) = found(read_at_once(behind=5), [commit(n + 0.5, n * 5 + 5) for n in range(40)])
    assert one.numbers["cause"] == "replica behind"
    assert "handler" not in one.sentence


def slow_link() -> list[Row]:
    """Each response brings all that was in the log when it was asked for, and takes as long as the link needs for so
    much; the last one is under way when the capture ends."""
    reads, begin, offset = [], 0.2, 0
    while begin < 40:
        end = (int(begin) + 1) * 10
        takes = 0.02 + (end - offset) * 0.15
        told = {"high_watermark": end, "ts_response": at(begin + takes), "records_bytes": (end - offset) * 1000}
        reads.append(read(begin, offset, end, **told))
        begin, offset = begin + takes + 0.5, end
    reads[-1] |= dict.fromkeys(("next_offset", "high_watermark", "records_bytes"))
    return reads


def test_a_response_that_comes_slowly_tells_of_no_replica() -> None:
    reads = slow_link()
    (one,) = found(reads, [commit((row["ts_response"] - at(0)) / 1e9 + 0.1, row["next_offset"]) for row in reads[:-1]])
    assert one.numbers["cause"] == "broker or network"
    assert "replica" not in one.sentence


def test_one_large_response_is_not_fetched_again() -> None:
    """Its records are in hand while it handles them: it is the handler."""
    reads = [read(0.2, 0, 10, high_watermark=10), read(2.2, 10, 200, high_watermark=200)]
    (one,) = found(reads, [commit(n + 0.5, n * 4) for n in range(1, 40)])
    assert one.numbers["cause"] == "slow handler"


def test_a_seek_for_each_record_is_no_slow_handler() -> None:
    reads = [read(n + 0.2, n, n * 10 + 10, high_watermark=n * 10 + 10) for n in range(40)]
    (one,) = found(reads, [commit(n + 0.5, n) for n in range(1, 40)])
    assert one.numbers["cause"] == "fetched again"
    assert "handler" not in one.sentence


@pytest.mark.parametrize(
    "commits",
    [
        pytest.param([commit(n + 0.5, max(n - 3, 0) * 10) for n in range(1, 40)], id="thirty records in hand"),
        pytest.param([commit(n + 0.5, n * 10) for n in range(4, 40, 5)], id="every five seconds"),
        pytest.param([commit(n + 0.5, n * 10) for n in range(1, 34)], id="stopped six seconds before the end"),
        pytest.param([commit(n + 0.5, n * 10 - (n % 4) * 10) for n in range(4, 40)], id="some later, some sooner"),
    ],
)
def test_who_prefetches_and_keeps_up_is_not_accused(commits: list[Row]) -> None:
    assert found(read_at_once(), commits) == []


def test_what_is_written_may_grow_while_a_group_keeps_up() -> None:
    """Lag in records rises with the rate, and in time it does not."""
    ends = [n * (n + 1) for n in range(41)]
    reads = [read(n + 0.2, ends[n], ends[n + 1], high_watermark=ends[n + 1]) for n in range(40)]
    con = connection_from_rows(
        joined(kafka_fetch_partitions=reads, kafka_offset_commits=[commit(n + 0.5, ends[n]) for n in range(1, 40)])
    )
    for stage in STAGES:
        if any(TABLES[name].protocol == "kafka" for name in (*stage.makes, *stage.reads)):
            stage.run(con)
    assert run(con, [RULES["KAF108"]]) == []


def overwritten(per_second: int, *, since: int) -> list[Row]:
    """Each second what the group has handled; and, from then on, a stale commit of another member right after it."""
    own = [commit(n + 0.5, n * per_second) for n in range(1, 40)]
    return sorted(own + [commit(n + 0.51, 50, "m2", generation=4) for n in range(since, 40)], key=lambda row: row["ts"])


@pytest.mark.parametrize("since", [6, 20])
def test_stale_commits_over_those_of_a_group_that_keeps_pace_are_no_slow_handler(since: int) -> None:
    """The stored offset stands still while the log grows, and everything is handled: KAF103 tells of it."""
    assert found(read_at_once(), overwritten(10, since=since)) == []


def test_a_group_that_went_back_and_reads_again_faster_than_is_written_is_not_behind_for_good() -> None:
    back = [commit(n + 0.5, n * 10) for n in range(1, 20)] + [commit(n + 0.5, (n - 20) * 18) for n in range(20, 40)]
    assert found(read_at_once(), back) == []


def test_a_slow_handler_is_told_beside_stale_commits() -> None:
    (one,) = found(read_at_once(), overwritten(4, since=13))
    assert one.numbers["cause"] == "slow handler"
