"""What captures cover together, and until when a flow would have been seen."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wirewitness
from tests.support.shares import SAMPLES
from wirewitness.analyser.analysis.covered import SLACK_NS, covered, covered_until

S = 1_000_000_000


@pytest.mark.parametrize(
    ("times", "spans"),
    [
        ([], ()),
        ([(None, None)], ()),
        ([(5, 9), (None, None)], ((5, 9),)),
        ([(0, 5 * S), (6 * S, 9 * S)], ((0, 9 * S),)),
        ([(6 * S, 9 * S), (0, 5 * S)], ((0, 9 * S),)),
        ([(0, 50 * S), (2 * S, 3 * S), (51 * S, 60 * S)], ((0, 60 * S),)),
        ([(0, S), (S + SLACK_NS, 20 * S)], ((0, 20 * S),)),
        ([(0, S), (S + SLACK_NS + 1, 20 * S)], ((0, S), (S + SLACK_NS + 1, 20 * S))),
    ],
    ids=["none", "no packets", "one", "rotated", "in any order", "one in another", "a moment", "begun again"],
)
def test_spans(times: list[tuple[int | None, int | None]], spans: tuple[tuple[int, int], ...]) -> None:
    assert covered(times) == spans


def test_nobody_looks_between_two_captures() -> None:
    spans = ((10, 20), (100, 200))
    times = pa.array([10, 15, 20, 100, 150, 200, 5, 50, 300])
    assert covered_until(times, spans).to_pylist() == [20, 20, 20, 200, 200, 200, 20, 50, 300]
    assert covered_until(times, ()).to_pylist() == times.to_pylist()


def test_flows_of_two_captures_are_looked_at_until_their_own_ends() -> None:
    paths = [SAMPLES / "kafka_cluster.pcapng", SAMPLES / "kafka_share_streams.pcapng"]
    with wirewitness.read(paths, tables=["captures", "flows"]) as both:
        ends = {row["file"]: row["ts_last"] for row in both.arrow("captures").to_pylist()}
        flows = [row for row in both.arrow("flows").to_pylist() if row["ts_closed"] is None]
    assert len({row["file"] for row in flows}) == 2
    assert all(row["ts_last"] <= row["observed_until"] <= ends[row["file"]] for row in flows)
