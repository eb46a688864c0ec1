"""Names of addresses in datasets: they are read with names, not made with them, and say what captures say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import wirewitness
from tests.analyser.analysis.test_owners import REMARKS, SAMPLE, A, B, hosts
from tests.support.datasets import make_dataset
from wirewitness.analyser.base.options import ReadOptions

CHANGE = "2026-11-20T11:23:55Z"
NAMES = {
    "for good": f"{A} node-a\n{B} node-b\n10.77.0.2 kafka-0\n",
    "that change hands": f"address,name,from,until,pod\n{A},old,,{CHANGE},pay-1\n{A},new,{CHANGE},,pay-2\n{B},b,,,\n",
}
TABLES = ("flows", "exchanges", "kafka_offset_commits", "kafka_group_events", "findings")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("datasets") / "kafka", [SAMPLE])


@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_dataset_read_with_names_says_what_the_capture_says(dataset: Path, tmp_path: Path, text: str) -> None:
    options = hosts(tmp_path, text)
    with wirewitness.read(SAMPLE, options=options) as capture, wirewitness.read(dataset, options=options) as kept:
        assert kept.remarks == capture.remarks
        for table in TABLES:
            rows = [Counter(map(repr, one.arrow(table).to_pylist())) for one in (capture, kept)]
            assert rows[0] == rows[1]
            assert any(name in row for row in rows[0] for name in ("node-a", "'old'", "pay-1"))
        chosen = "select client_host, count(*) from exchanges group by all order by all"
        assert kept.sql(chosen) == capture.sql(chosen)
        where = "client_host IS NOT NULL"
        assert kept.arrow("exchanges", where=where).num_rows == capture.arrow("exchanges", where=where).num_rows > 0


@pytest.mark.parametrize(("text", "remark"), REMARKS.values(), ids=REMARKS)
def test_what_names_nobody_is_said_in_one_line(dataset: Path, tmp_path: Path, text: str, remark: str) -> None:
    with wirewitness.read(dataset, options=hosts(tmp_path, text)) as analysis:
        assert len(analysis.remarks) == 1
        assert remark in analysis.remarks[0]


def test_without_names_nothing_is_named(dataset: Path) -> None:
    with wirewitness.read(dataset, options=ReadOptions()) as analysis:
        assert analysis.sql("select count(client_host) from exchanges").column(0)[0].as_py() == 0
