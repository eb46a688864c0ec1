"""Names that stand in many rows cost their length once, and stay apart."""

from __future__ import annotations

from tests.support.attacks import ATTACKS
from tests.support.wire import decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.rows.names import with_cut_names
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import PROTOCOLS


def test_names_that_differ_behind_the_cut_still_differ() -> None:
    rows = [(0, "n" * 2000 + "a"), (1, "n" * 2000 + "b"), (2, None), (3, "n" * 1024), (4, "n" * 2000 + "a")]
    assert with_cut_names(rows, 1, 1024) == [0, 1, 4]
    names = [row[1] for row in rows]
    assert names[0] == names[4] != names[1]
    assert names[0] is not None
    assert names[0].startswith("n" * 900)
    assert "2001 characters" in names[0]
    assert names[2:4] == [None, "n" * 1024]


def test_a_long_name_costs_its_length_once() -> None:
    capture = ATTACKS["long_client_id"](1)
    decoded = decode(capture, TABLES)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        messages = analysis.arrow("messages")
        assert messages.num_rows > 8000
        # Of 60,000 characters in every row there would be 480 MB.
        assert messages.column("client_id").nbytes < 10_000_000
        (flow,) = analysis.arrow("flows").column("flow_id").to_pylist()
        told = analysis.sql("SELECT flow_id, text FROM expert_infos WHERE code = 'long_names'").to_pylist()
    assert {row["flow_id"] for row in told} == {flow}
    assert any("messages.client_id" in row["text"] and "60000" in row["text"] for row in told)
