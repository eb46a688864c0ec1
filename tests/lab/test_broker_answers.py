"""wirewitness and the broker itself are asked the same, at the same instants; the questions are not in the capture."""

from __future__ import annotations

import csv
import io
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

import analyser
from app.cli.main import cli
from reports.questions.kafka_views import VIEWS
from tests.lab import broker_answers
from tests.lab.broker_answers import CLASSIC, NEWER, Answers
from tests.lab.compare_answers import Compared, Told
from tests.lab.shared_runs import require_lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

TABLES = sorted({
    table
    for name, flag in (("groups", ""), ("groups", "members"), ("groups", "changes"), ("groups", "state"),
                       ("topics", "partitions"), ("clients", "transactions"))
    for table in ("exchanges", *VIEWS[name][flag].tables)
})  # fmt: skip
LEAST = {"state": 30, "members": 30, "assignment": 30, "committed": 100, "log end": 50, "lag": 80,
         "transaction open": 15, "leader and ISR": 80}  # fmt: skip
# Of several hundred answers every fourth of a kind is compared, so that the test stays short.
EVERY = 4


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    require_lab()
    return broker_answers.answers_of(tmp_path_factory.mktemp("answers"))


def comparisons(answers: Answers) -> list[Compared]:
    with analyser.read(str(answers.pcap), tables=TABLES) as analysis:
        told = Told(analysis)
        kinds = ([one for one in answers.answers if one["event"] == kind] for kind in broker_answers.QUESTIONS)
        asked = sorted((one for kind in kinds for one in kind[::EVERY]), key=lambda one: one["from"])
        return [one for answer in asked for one in told.compared(answer)]


def test_the_broker_says_the_same(answers: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    found = comparisons(answers)
    counts = Counter(one.kind for one in found)
    equal, good = (Counter(one.kind for one in found if wanted(one)) for wanted in (is_equal, is_good))
    with capsys.disabled():
        print()
        for kind, count in counts.items():
            print(f"{kind}: {count} comparisons, {equal[kind]} equal, {good[kind] - equal[kind]} in between")
    assert not [one for one in found if not one.good]
    assert {kind: counts[kind] for kind, least in LEAST.items() if counts[kind] < least} == {}


def is_equal(one: Compared) -> bool:
    return one.equal


def is_good(one: Compared) -> bool:
    return one.good


def test_the_capture_holds_no_question(answers: Answers) -> None:
    with analyser.read(str(answers.pcap), tables=["exchanges", "kafka_group_events"]) as analysis:
        clients = {row["client_id"] for row in analysis.sql("select distinct client_id from exchanges").to_pylist()}
        described = analysis.sql("from kafka_group_events where event = 'describe'").num_rows
    assert "watch" not in clients
    assert not described


def at(time_ns: int, capture: Path, *options: str) -> list[dict[str, str]]:
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat()
    done = CliRunner().invoke(cli, ["groups", str(capture), "--at", moment, "--format", "csv", "--quiet", *options])
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_at_a_time_the_command_says_what_the_tool_printed(answers: Answers) -> None:
    """kafka-consumer-groups --describe beside `groups --at`, before and after: its columns by their names."""
    begin, end = (at(answers.tool[name], answers.pcap) for name in ("from", "to"))
    lines = [line.split() for line in answers.tool["text"].splitlines()]
    printed = [line for line in lines if line and line[0] in (CLASSIC, NEWER)]
    assert len(printed) == 7
    for group, topic, part, offset, log_end, lag, consumer, host, client, *_ in printed:
        first, last = (
            next(row for row in rows if (row["group_id"], row["topic"], row["partition"]) == (group, topic, part))
            for rows in (begin, end)
        )
        assert int(first["committed_offset"]) <= int(offset) <= int(last["committed_offset"])
        assert int(first["log_end_offset"]) <= int(log_end) <= int(last["log_end_offset"])
        least = int(first["log_end_offset"]) - int(last["committed_offset"])
        assert least <= int(lag) <= int(last["log_end_offset"]) - int(first["committed_offset"])
        assert (consumer, host.lstrip("/"), client) == (
            last["consumer_id"], last["consumer_host"], last["consumer_client_id"],
        )  # fmt: skip
