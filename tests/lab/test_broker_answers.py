"""wirewitness and the broker itself are asked the same, at the same instants; the questions are not in the capture."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import wirewitness
from tests.lab import broker_answers
from tests.lab.broker_answers import CLASSIC, NEWER, QUESTIONS, Answers
from tests.lab.compare_answers import NO_OFFSET, REACHES_NS, Compared, Told, view_at
from tests.lab.load_slack import Slack
from tests.lab.shared_runs import require_lab
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.app.cli.main import cli
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

TABLES = sorted({
    table
    for name, flag in (("groups", ""), ("groups", "members"), ("groups", "changes"), ("groups", "state"),
                       ("topics", "partitions"), ("clients", "transactions"))
    for table in ("exchanges", *VIEWS[name][flag].tables)
})  # fmt: skip
LEAST = {"state": 40, "members": 40, "assignment": 30, "committed": 100, NO_OFFSET: 20, "log end": 60, "lag": 80,
         "transaction open": 15, "leader and ISR": 80}  # fmt: skip
# Of all rounds of questions about so many are compared, so that the test stays short.
ROUNDS = 14


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    require_lab()
    return broker_answers.answers_of(tmp_path_factory.mktemp("answers"))


@pytest.fixture(scope="module")
def analysis(answers: Answers) -> Iterator[Analysis]:
    with wirewitness.read(str(answers.pcap), tables=TABLES) as analysis:
        yield analysis


def rounds(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The answers in their order, those that belong together in one list."""
    found: list[list[dict[str, Any]]] = []
    for one in events:
        if QUESTIONS[0] in (one["event"], one.get("kind")):
            found.append([])
        if one["event"] in QUESTIONS:
            found[-1].append(one)
    return found


def comparisons(answers: Answers, analysis: Analysis) -> list[Compared]:
    told = Told(analysis)
    asked = rounds(answers.answers)
    every = max(1, len(asked) // ROUNDS)
    return [one for several in asked[::every] for answer in several for one in told.compared(answer)]


def test_the_broker_says_the_same(answers: Answers, analysis: Analysis, capsys: pytest.CaptureFixture[str]) -> None:
    found = comparisons(answers, analysis)
    counts = Counter(one.kind for one in found)
    equal, good = (Counter(one.kind for one in found if wanted(one)) for wanted in (is_equal, is_good))
    with capsys.disabled():
        print()
        for kind, count in counts.items():
            print(f"{kind}: {count} comparisons, {equal[kind]} equal, {good[kind] - equal[kind]} in between")
    assert [one for one in found if not one.good] == []
    assert {kind: counts[kind] for kind, least in LEAST.items() if counts[kind] < least} == {}


def is_equal(one: Compared) -> bool:
    return one.equal


def is_good(one: Compared) -> bool:
    return one.good


def test_the_capture_holds_no_question(analysis: Analysis) -> None:
    clients = {row["client_id"] for row in rows(analysis, "select distinct client_id from exchanges")}
    assert clients >= {"desk", "bill-a"}
    assert "watch" not in clients
    assert rows(analysis, "from kafka_group_events where event = 'describe'") == []
    asked = rows(analysis, "select distinct operation from exchanges where client_id = 'desk'")
    assert not {row["operation"] for row in asked} & {"OffsetFetch", "DescribeGroups", "ListOffsets"}


def stored(answers: Answers, groups: tuple[str, ...], *, by: int = 0, after: int = 0) -> dict[str, Any]:
    """The last answer on the groups' stored offsets that came by a time, or the first that was asked for after it."""
    told = [one for one in answers.answers if one["event"] == "offsets"]
    one = next(one for one in told if one["from"] > after) if after else [one for one in told if one["to"] < by][-1]
    return {"at": one["to"], "told": {group: one["told"].get(group, {}) for group in groups}}


@pytest.mark.parametrize("what", ["reset", "delete_offsets", "delete", "delete_group"])
def test_offsets_that_an_operator_moves_or_deletes(what: str, answers: Answers, analysis: Analysis) -> None:
    """Nobody else works in these groups then: before and after, the broker's answer is told to the number."""
    (work,) = [one for one in answers.works if one.what == what]
    late = REACHES_NS if what == "delete" else 0
    before, after = stored(answers, work.groups, by=work.begin), stored(answers, work.groups, after=work.end + late)
    for answer in (before, after):
        told: dict[str, dict[str, int]] = {group: {} for group in work.groups}
        for row in view_at(analysis, "groups", "", answer["at"]):
            if row["group_id"] in told and row["committed_offset"] is not None:
                told[row["group_id"]][f"{row['topic']}-{row['partition']}"] = row["committed_offset"]
        assert told == answer["told"]
    assert all(before["told"][group] != after["told"][group] for group in work.groups)


def at(time_ns: int, capture: Path, *options: str) -> list[dict[str, str]]:
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat()
    how = ["--at", moment, "--format", "csv", "--raw", "--quiet", *options]
    done = CliRunner().invoke(cli, ["groups", str(capture), *how])
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_at_a_time_the_command_says_what_the_tool_printed(answers: Answers, analysis: Analysis) -> None:
    """kafka-consumer-groups --describe beside `groups --at`, before and after: its columns by their names."""
    begin, end = (at(when, answers.pcap) for when in Slack(analysis).around(answers.tool["from"], answers.tool["to"]))
    lines = [line.split() for line in answers.tool["text"].splitlines()]
    printed = [line for line in lines if line and line[0] in (CLASSIC, NEWER)]
    assert len(printed) == 7
    for group, topic, part, offset, log_end, lag, consumer, host, client, *_ in printed:
        first, last = (
            next(row for row in shown if (row["group_id"], row["topic"], row["partition"]) == (group, topic, part))
            for shown in (begin, end)
        )
        assert int(first["committed_offset"]) <= int(offset) <= int(last["committed_offset"])
        assert int(first["log_end_offset"]) <= int(log_end) <= int(last["log_end_offset"])
        least = int(first["log_end_offset"]) - int(last["committed_offset"])
        assert least <= int(lag) <= int(last["log_end_offset"]) - int(first["committed_offset"])
        assert (consumer, host.lstrip("/"), client) == (
            last["consumer_id"], last["consumer_host"], last["consumer_client_id"],
        )  # fmt: skip
