"""`kafka_lag_minutes` made in several runs, in any order of time, is that of one run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.engine.rules.scenarios.build import at, commit, fetch
from tests.support.archived import parts_of
from tests.support.datasets import make_log_ends, take_in
from tests.support.shares import examples
from wirewitness.analyser.archive.aggregate.lags import TABLE, run_lags
from wirewitness.analyser.archive.dataset.dataset import Change
from wirewitness.analyser.archive.dataset.parts import HOUR_NS

HOURS = 5


class Told(NamedTuple):
    """A row, the run that takes it in, and whether it is provisional there and comes again in the next."""

    table: str
    row: dict[str, Any]
    run: int
    open: bool


_seconds = st.integers(0, HOURS * 3600 * 4).map(lambda quarter: quarter / 4)
# Answers at once, after a minute, and hours later.
_waits = st.sampled_from([None, 2_000_000, 2_000_000, 90_000_000_000, 2 * HOUR_NS])


@st.composite
def told(draw: st.DrawFn) -> Told:
    seconds, wait, offset = draw(_seconds), draw(_waits), draw(st.integers(0, 30))
    answer = None if wait is None else at(seconds) + wait
    topic = {"topic": draw(st.sampled_from(["a", "b"])), "ts_response": answer}
    kind = draw(st.sampled_from(["commit", "commit", "fetch", "list"]))
    if kind == "commit":
        member, group, code = draw(st.sampled_from(["m1", "m2"])), draw(st.sampled_from("gh")), draw(
            st.sampled_from([0, 0, 0, 22, None]))  # fmt: skip
        row = commit(seconds, offset, member, group_id=group, error_code=code, **topic)
        return Told("kafka_offset_commits", row, draw(st.integers(0, 2)), draw(st.booleans()))
    if kind == "fetch":
        row = fetch(seconds, offset, high_watermark=draw(st.integers(-1, 40)), **topic)
        return Told("kafka_fetch_partitions", row, draw(st.integers(0, 2)), draw(st.booleans()))
    row = {
        "exchange_id": f"l{seconds}",
        "flow_id": "l",
        "ts": at(seconds),
        "cluster_id": "c1",
        "topic": topic["topic"],
        "partition": 0,
        "timestamp": -1,
        "offset": draw(st.integers(0, 40)),
    }
    return Told("kafka_list_offsets", row, draw(st.integers(0, 2)), draw(st.booleans()))


@examples(6)
@given(st.lists(told(), min_size=1, max_size=25, unique_by=lambda one: (one.table, one.row["ts"])))
def test_several_runs_make_what_one_makes(rows: list[Told]) -> None:
    with TemporaryDirectory() as folder:
        once, often = Path(folder) / "once", Path(folder) / "often"
        take_in(once, _of(rows), [make_log_ends, run_lags])
        for run in range(3):
            settled = [one for one in rows if one.run + one.open == run]
            held = [one for one in rows if one.open and one.run == run]
            take_in(
                often,
                {**_of(settled), **{f"{name}?": own for name, own in _of(held).items()}},
                [make_log_ends, run_lags],
            )
        take_in(often, _of([one for one in rows if one.run + one.open == 3]), [make_log_ends, run_lags])
        assert _rows(often) == _rows(once)


def test_a_run_reads_and_writes_what_is_new(tmp_path: Path) -> None:
    hours = [[commit(3600 * hour + 10, hour), fetch(3600 * hour + 20, hour)] for hour in range(HOURS)]
    for one, other in hours[:-1]:
        take_in(
            tmp_path / "d",
            {"kafka_offset_commits": [one], "kafka_fetch_partitions": [other]},
            [make_log_ends, run_lags],
        )
    one, other = hours[-1]
    written: list[set[int | None]] = []

    def gone_but_the_last(change: Change) -> None:
        """Earlier rows are not there to be read."""
        for part in change.parts("kafka_offset_commits") + change.parts("kafka_fetch_partitions"):
            if "000005" not in part.path:
                change.location(part).write_bytes(b"not read")

    take_in(tmp_path / "d", {"kafka_offset_commits": [one], "kafka_fetch_partitions": [other]},
            [make_log_ends, gone_but_the_last, lambda change: written.append(run_lags(change))])  # fmt: skip
    assert [len(hours) for hours in written] == [1]
    assert [row["lag"] for row in _rows(tmp_path / "d")] == [100_000 - hour for hour in range(HOURS)]


def _of(rows: list[Told]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in rows:
        found.setdefault(one.table, []).append(one.row)
    return found


def _rows(root: Path) -> list[dict[str, Any]]:
    return parts_of(root, TABLE).sort_by([(name, "ascending") for name in ("ts", "group_id", "topic")]).to_pylist()
