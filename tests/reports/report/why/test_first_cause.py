"""The one line that says what an incident of findings begins with: only where it is sure, else nothing."""

from __future__ import annotations

import json

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.reports.base.why.chains import culprit, opened
from tests.support.shares import share
from wirewitness.reports.base.questions.causes import causes, findings
from wirewitness.reports.report.why.first_cause import first_causes

SURE = {
    "member_frozen-6": "the process of {} stood still (18:31:31.054); so {} fell silent",
    "member_killed-5": "the host of {} closed its connection (18:23:13.815); so {} fell silent",
    "link_down-2": "packets did not get through (18:32:38.251, packet 1778); so {} fell silent",
}
# Incidents whose sentence says what is known, and healthy ones: a line would only guess.
NOTHING = [
    "clean_stop-1", "rolling_restart-10", "rolling_restart-13", "static_restart-3", "mirror_maker_beside-2",
    "never_commits-5", "unknown_topic-4", "wrong_password-2", "out_of_sequence-1", "hanging_transaction-2",
]  # fmt: skip


@pytest.mark.parametrize(("name", "line"), SURE.items())
def test_a_member_that_was_gone_is_told_by_what_stood(name: str, line: str) -> None:
    incidents = causes(findings(opened(name)))
    assert first_causes(opened(name)) == {
        incidents[0].first.incident_id: line.format(*[culprit(name)] * line.count("{}"))
    }


@pytest.mark.parametrize("name", share(NOTHING, ["rolling_restart-10", "out_of_sequence-1"]))
def test_where_nothing_is_sure_nothing_is_said(name: str) -> None:
    assert first_causes(opened(name)) == {}


def test_every_form_of_a_report_has_the_line() -> None:
    sample = SAMPLES / "kafka_fenced_commit.pcapng"
    line = "ledger-b@10.77.0.12 joined (11:22:24.221, packet 468); so rebalance to generation 2"
    text = run("analyse", sample).stdout.decode()
    assert f"because    {line}" in text
    assert line in run("analyse", sample, "--format", "html").stdout.decode()
    assert "rebalance to generation 2" in run("analyse", sample, "--format", "markdown").stdout.decode()
    told = json.loads(run("analyse", sample, "--format", "json").stdout)["findings"]
    assert {one["code"]: one["first_cause"] for one in told} == {"KAF105": line, "KAF130": None, "KAF309": None}
