"""Forty groups over three days: pictures and pages are true to what the maker of the capture put in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import wirewitness
from tests.app.dashboard.opening import SCRIPT, TIMEOUT_S, kept, on_page, shown, tables
from tests.support import forty_groups as made
from wirewitness.app.dashboard.charts.commits import lag_points, ownership_lanes
from wirewitness.app.dashboard.charts.traffic import percentile_points
from wirewitness.app.dashboard.offers import given_offer
from wirewitness.reports.base.questions.timelines import (
    domain_ms,
    exchanges_over_time,
    percentiles_over_time,
    width_of,
)
from wirewitness.reports.protocols.kafka.questions.commits import commits, committers, owners
from wirewitness.reports.protocols.kafka.questions.lag_history import lag_over_time

MS = 1_000_000
GAP_MS = [(made.START_NS + hour * made.HOUR_NS) / MS for hour in (made.GAP.start, made.GAP.stop)]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.write(tmp_path_factory.mktemp("days") / "days.pcap")


@pytest.fixture(scope="module")
def analysis(capture: Path) -> Iterator[wirewitness.Analysis]:
    with wirewitness.read(str(capture)) as found:
        yield found


def cluster(analysis: wirewitness.Analysis) -> str:
    """The broker says no name of it."""
    return str(analysis.sql("SELECT DISTINCT cluster_id FROM kafka_offset_commits").column(0)[0].as_py())


def lag_of(analysis: wirewitness.Analysis, number: int, width_ns: int | None = None) -> list[dict[str, Any]]:
    return lag_over_time(analysis, cluster(analysis), made.name_of(number), width_ns or width_of(analysis))


def test_writers_that_take_turns_within_a_bin_show_both_lags(analysis: wirewitness.Analysis) -> None:
    """The bin is of hours, the turns of 50 ms: the band goes from none to all that the old offset leaves."""
    width = width_of(analysis)
    assert width > made.TURNS * made.TURN_NS
    at_ms = (made.START_NS + made.WRITTEN_AT * made.HOUR_NS + 60 * made.SECOND_NS) / MS
    rows = lag_of(analysis, made.TWO_WRITERS)
    bin_of = max((row for row in rows if row["t"] <= at_ms), key=lambda row: row["t"])
    assert (bin_of["least"], bin_of["most"]) == (0, made.log_end(made.WRITTEN_AT) - made.OLD)
    others = [row for row in rows if row is not bin_of and row["t"] < GAP_MS[0]]
    assert max(row["most"] for row in others) == made.GROWS_BY


def test_a_stopped_group_falls_behind_to_the_end_of_the_axis(analysis: wirewitness.Analysis) -> None:
    rows = lag_of(analysis, made.STOPPED)
    ends = domain_ms(analysis)
    assert ends is not None
    points = lag_points([{**row, "place": "p"} for row in rows], ends[1])
    stood = made.log_end(made.STOPPED_AT - 1)
    assert (points[-1]["t"], points[-1]["lag"]) == (ends[1], made.log_end(made.HOURS - 1) - stood)
    assert {row["stored"] for row in rows[-10:]} == {stood}
    hours = made.HOURS - 1 - made.STOPPED_AT
    assert rows[-1]["behind_ms"] == pytest.approx(hours * 3_600_000, rel=0.02)


def test_of_two_commits_answered_in_one_ms_the_last_answer_stands(analysis: wirewitness.Analysis) -> None:
    rows, _ = commits(analysis, cluster(analysis), made.name_of(made.SAME_MS), [(made.topic_of(made.SAME_MS), 0)])
    pair = [row for row in rows if row["committed_offset"] in (made.FIRST_OF_BROKER, made.LAST_OF_BROKER)]
    assert [row["committed_offset"] for row in pair] == [made.FIRST_OF_BROKER, made.LAST_OF_BROKER]
    assert [row["went_back"] for row in pair] == [True, True]  # from 660 to 222, then to 111


def test_a_lane_stands_to_the_end_of_the_capture_where_nothing_ended_it(analysis: wirewitness.Analysis) -> None:
    """Of the stopped member, too: it did not leave, and its generation goes on."""
    ends = domain_ms(analysis)
    assert ends is not None
    for number in (made.STOPPED, 0):
        (lane,) = owners(analysis, cluster(analysis), made.name_of(number))
        assert ends[1] - lane["t_end"] < 3_600_000


def test_a_lane_is_of_the_client_that_joined_not_of_one_that_writes_under_its_id(
    analysis: wirewitness.Analysis,
) -> None:
    names = cluster(analysis), made.name_of(made.TWO_WRITERS)
    who = committers(analysis, *names)
    assert len({one.member_id for one in who}) < len(who) == 2
    assert set(ownership_lanes(owners(analysis, *names), who, {}).data["owner"]) == {who[0].name}


def test_a_time_without_data_is_empty(analysis: wirewitness.Analysis) -> None:
    """Twelve hours: no bar stands there, and no line goes through."""
    width = width_of(analysis)
    first, last = GAP_MS[0] + width / MS, GAP_MS[1] - width / MS
    assert [row for row in exchanges_over_time(analysis, width) if first <= row["t"] <= last] == []
    wide = width_of(analysis, 80)
    last = GAP_MS[1] - wide / MS
    points = percentile_points(percentiles_over_time(analysis, wide, "true"), wide)
    inside = [point for point in points if point["of"] == "p99" and GAP_MS[0] - wide / MS < point["t"] < last]
    assert inside, "the line ends there"
    assert inside[-1]["shown"] is None


def opened(capture: Path, monkeypatch: pytest.MonkeyPatch, page: str, values: dict[str, str]) -> AppTest:
    offer = given_offer([str(capture)], {})
    kept(offer)
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps({'paths': [str(capture)], 'options': {}})}"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S)
    app.query_params["capture"] = offer.id
    app.run()
    return on_page(app, page, values)


def test_the_list_of_groups_has_all_forty_the_worst_first(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(capture, monkeypatch, "kafka-groups", {})
    assert not app.exception
    listed = tables(app)[0]
    assert len(listed) == made.GROUPS
    assert [row["Group"] for row in listed[:2]] == [made.name_of(made.TWO_WRITERS), made.name_of(made.SAME_MS)]
    lags = {row["Group"]: row["Lag"] for row in listed}
    stood = made.log_end(made.STOPPED_AT - 1)
    assert lags[made.name_of(made.STOPPED)] == f"{made.log_end(made.HOURS - 1) - stood:,}"
    assert lags[made.name_of(0)] == "0"
    # A head orders all of them.
    app = opened(capture, monkeypatch, "kafka-groups", {"groups.by": "-lag"})
    assert tables(app)[0][0]["Group"] == made.name_of(made.STOPPED)


def test_times_have_their_day_where_the_range_crosses_midnight(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(capture, monkeypatch, "exchanges", {})
    assert tables(app)[0][0]["Time"].startswith("18 Nov 22:30:0")
    day_ns = made.START_NS + 30 * made.HOUR_NS
    within = {"from": str(day_ns), "to": str(day_ns + made.HOUR_NS)}
    app = opened(capture, monkeypatch, "exchanges", within)
    times = {row["Time"][:2] for row in tables(app)[0]}
    assert times <= {"04", "05"}
    assert "20 Nov" not in shown(app)
