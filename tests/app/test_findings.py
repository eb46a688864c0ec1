"""`wirewitness findings`, and reports, beside what somebody has looked at before."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from tests.support.shares import share

CAPTURE = SAMPLES / "kafka_stale_commit.pcapng"
SMALLEST = SAMPLES / "mqtt_takeover_loop.pcapng"
LOG = SAMPLES / "request_logs" / "kafka_stale_commit.log.gz"
# So many bytes of the capture end within what happens to the group payments-ledger.
WITHIN = 1_700_000
STORY = "80cc66383d3b5a6d"  # KAF103 on payments-4, and what followed from it


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of the capture: its findings are read, not found, each time."""
    return make_dataset(tmp_path_factory.mktemp("whole") / "dataset", [CAPTURE])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A review of all that the first part of the capture shows."""
    folder = tmp_path_factory.mktemp("small")
    capture = folder / "small.pcapng"
    capture.write_bytes(CAPTURE.read_bytes()[:WITHIN])
    return accepted(capture, folder / "small.toml", "all", note="update planned")


def findings(capture: Path, review: Path, *more: str, command: str = "findings", status: int = 0) -> str:
    done = run(command, capture, "--review", review, "--quiet", *more)
    assert done.returncode == status, done.stderr
    return done.stdout.decode()


def accepted(capture: Path, review: Path, *names: str, note: str = "known") -> Path:
    words = [word for name in names for word in ("--accept", name)]
    findings(capture, review, *words, "--note", note, "--by", "anna")
    return review


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_what_was_looked_at_is_folded_away_and_what_is_new_is_told(whole: Path, tmp_path: Path) -> None:
    review = accepted(whole, tmp_path / "review.toml", STORY)
    text = findings(whole, review, "--fail-on", "warning", status=1)
    assert "8 of 28 findings are collapsed: acknowledged before and not grown since (review.toml)" in one_line(text)
    assert "orders-billing" in text
    assert "payments-ledger" not in text
    accepted(whole, review, "KAF103", "KAF309")
    assert "No new findings." in findings(whole, review, "--fail-on", "info")


@pytest.mark.parametrize("witness", share([CAPTURE, LOG], []), ids=["capture", "log"])
def test_the_same_trouble_in_another_witness_is_the_same(whole: Path, tmp_path: Path, witness: Path) -> None:
    review = accepted(whole, tmp_path / "review.toml", "all")
    assert "No new findings." in findings(witness, review, "--fail-on", "info")


def test_what_has_grown_is_told_again(whole: Path, small: Path) -> None:
    text = one_line(findings(whole, small, "--fail-on", "critical", status=1))
    today = datetime.now(UTC).date()
    grew = f"KAF103 grew since {today}: 6 -> 41 steps back; new partition payments-2"
    assert f"{grew} (acknowledged by anna: update planned)" in text
    assert "20 of 28 findings are collapsed" in text


@pytest.mark.parametrize("form", share(["text", "markdown", "html"], ["text"]))
def test_reports_tell_what_is_new_or_has_grown(whole: Path, small: Path, form: str) -> None:
    done = run("analyse", whole, "--review", small, "--quiet", "--format", form, "--fail-on", "critical")
    told = one_line(done.stdout.decode())
    assert done.returncode == 1
    assert "20 of 28 findings are collapsed" in told
    assert "2 causes: 2 critical. 8 findings: 2 of these causes, 6 of what followed." in told
    assert "grew since" in told


def test_a_report_in_which_nothing_is_new(whole: Path, tmp_path: Path) -> None:
    review = accepted(whole, tmp_path / "review.toml", "all")
    text = findings(whole, review, "--fail-on", "info", command="analyse")
    assert text.startswith("reviewed   all 28 findings are collapsed")
    assert "\nFINDINGS\n" not in text
    assert "CONSUMER GROUPS" in text


def test_an_id_accepts_the_story_and_a_rule_its_findings_alone(whole: Path, tmp_path: Path) -> None:
    by_id = tomllib.loads(accepted(whole, tmp_path / "id.toml", STORY).read_text())["reviewed"]
    assert [entry["rule"] for entry in by_id] == ["KAF101", "KAF102", "KAF103", "KAF104"]
    assert {entry["subject"]["group"] for entry in by_id} == {"payments-ledger"}
    by_rule = tomllib.loads(accepted(whole, tmp_path / "rule.toml", "offset-regression").read_text())["reviewed"]
    assert [(entry["rule"], entry["subject"]["group"]) for entry in by_rule] == [
        ("KAF103", "orders-billing"),
        ("KAF103", "payments-ledger"),
    ]


def test_programs_get_all_rows_with_columns_on_the_review(whole: Path, small: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(findings(whole, small, "--format", "csv"))))
    assert Counter(row["reviewed"] for row in rows) == {"true": 20, "false": 8}
    assert {row["review_note"] for row in rows} == {"update planned"}
    grown = {row["code"]: row["review_grew"] for row in rows if row["review_grew"]}
    assert grown["KAF104"] == "6 -> 42 foreign commits; new partition payments-2"
    lines = [json.loads(line) for line in findings(whole, small, "--format", "jsonl").splitlines()]
    document = json.loads(findings(whole, small, "--format", "json"))
    report = json.loads(findings(whole, small, "--format", "json", command="analyse"))
    began = {one["code"]: one.pop("first_cause") for one in report["findings"]}
    assert began["KAF103"]
    assert began["KAF309"] is None
    assert lines == document["findings"] == report["findings"]
    assert [line["reviewed"] for line in lines] == [row["reviewed"] == "true" for row in rows]


def test_without_a_review_the_columns_are_there_and_nothing_is_folded(whole: Path) -> None:
    done = run("findings", whole, "--format", "jsonl", "--quiet")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(line["reviewed"], line["review_note"], line["review_grew"]) for line in lines} == {(False, None, None)}
    assert "collapsed" not in run("findings", whole, "--quiet").stdout.decode()


def test_verbose_and_all_tell_what_is_folded(whole: Path, tmp_path: Path) -> None:
    review = accepted(whole, tmp_path / "review.toml", "all", note="as before")
    told = one_line(findings(whole, review, "--verbose"))
    assert "KAF103, group orders-billing, topic orders: 19 findings; " in told
    assert told.count("acknowledged by anna: as before") == 6
    whole = findings(whole, review, "--all")
    assert whole.count("acknowledged by anna: as before") == 6
    assert "committed a stale offset" in one_line(whole)


def test_people_change_the_file_and_it_stays_theirs(whole: Path, tmp_path: Path) -> None:
    review = accepted(whole, tmp_path / "review.toml", "KAF309", STORY)
    text = review.read_text().replace('subject.group = "payments-ledger"', 'subject.group = "pay*er"  # all of them')
    text = text.replace('[[reviewed]]\nrule = "KAF309"', '# The admins know.\n[[reviewed]]\nrule = "KAF309"')
    review.write_text(text)
    assert "9 of 28 findings are collapsed" in findings(whole, review)
    accepted(whole, review, "KAF103")
    now = review.read_text()
    assert "# The admins know.\n[[reviewed]]" in now
    assert now.count("# all of them") == 4
    assert [entry["rule"] for entry in tomllib.loads(now)["reviewed"]] == [
        *("KAF101", "KAF102", "KAF103", "KAF103", "KAF103", "KAF104", "KAF309"),
    ]
    again = accepted(whole, review, "KAF309", note="second look").read_text()
    assert again.count("KAF309") == 1
    assert "# The admins know.\n[[reviewed]]" in again


def test_what_is_written_once_is_written_alike_again(whole: Path, tmp_path: Path) -> None:
    one = accepted(whole, tmp_path / "a.toml", "all").read_text()
    two = accepted(whole, accepted(whole, tmp_path / "b.toml", "KAF309"), "KAF104", "all").read_text()
    assert one == two


ENTRY = '[[reviewed]]\nrule = "KAF103"\nnote = "n"\ndate = 2026-11-01\nseverity = "info"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[[reviewed", "Expected", id="no TOML"),
        pytest.param("a = " + "[" * 5000, "no TOML that can be read", id="deep"),
        pytest.param(f"a = {'9' * 5000}", "no TOML that can be read", id="long number"),
        pytest.param("\ufffe\x00", "review.toml: ", id="binary"),
        pytest.param("ignore = 1", "'ignore' means nothing here", id="other table"),
        pytest.param("reviewed = 3", "not a list of tables", id="no list"),
        pytest.param("reviewed = [3]", "not a list of tables", id="no tables"),
        pytest.param(ENTRY.replace("KAF103", "KAF1O3"), "unknown rule 'KAF1O3'; did you mean ", id="rule"),
        pytest.param(ENTRY + "notes = 1", "unknown key 'notes'; did you mean note?", id="key"),
        pytest.param(ENTRY.replace('note = "n"\n', ""), "entry 1: note is missing", id="missing"),
        pytest.param(ENTRY.replace("2026-11-01", '"2026-11-01"'), "must be a date", id="date"),
        pytest.param(ENTRY + 'subject = "payments"', "subject must be a table", id="subject"),
        pytest.param(ENTRY + "subject.partition = 3", "subject.partition must be a text", id="value"),
        pytest.param(ENTRY + "size = -1", "size must be a number from 0 on, not -1", id="size"),
        pytest.param(ENTRY + "size = nan", "size must be a number from 0 on, not nan", id="nan"),
        pytest.param(ENTRY + "size = true", "size must be a number", id="boolean"),
        pytest.param(ENTRY + "places = [[]]", "places must be a text", id="places"),
        pytest.param(ENTRY.replace('"info"', '"fatal"'), "must be one of info, warning, critical", id="word"),
    ],
)
def test_a_bad_file_is_one_line_and_wrong_usage(tmp_path: Path, text: str, said: str) -> None:
    review = tmp_path / "review.toml"
    review.write_text(text)
    for command in ("findings", "analyse"):
        done = run(command, CAPTURE, "--review", review)
        lines = done.stderr.decode().splitlines()
        assert (done.returncode, done.stdout) == (2, b"")
        assert said in lines[0]
        assert lines[0].startswith(f"wirewitness: --review {review}: ")
        assert [line for line in lines[1:] if not line.startswith("known: ")] == []


def test_a_file_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    review = tmp_path / "review.toml"
    with review.open("wb") as file:
        file.truncate(1 << 30)
    done = run("findings", CAPTURE, "--review", review)
    assert (done.returncode, done.stderr.decode()) == (
        2,
        f"wirewitness: --review {review}: larger than 4 MB, so somebody else's file\n",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--accept", "KAF103"], "--accept needs --review FILE"),
        (["--accept", "KAF103", "--review", "new.toml"], "--accept needs --note TEXT"),
        (["--note", "n", "--review", "new.toml"], "--note is for --accept"),
        (["--review", "new.toml"], "new.toml: no such file"),
        (["--review", "."], "that is no file"),
        (["--accept", "KAF1O3", "--note", "n", "--review", "new.toml"], "nor all; did you mean "),
        (["--accept", "0" * 16, "--note", "n", "--review", "new.toml"], "no finding here has this id"),
        (["--accept", "KAF103", "--note", "n" * 1001, "--review", "new.toml"], "at most 1,000"),
        (["--accept", "KAF103", "--note", "n", "--review", str(SMALLEST)], "that is one of the captures"),
    ],
)
def test_wrong_usage_writes_nothing(tmp_path: Path, words: list[str], said: str) -> None:
    done = run("findings", SMALLEST, "--quiet", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_written_otherwise_is_left_alone(whole: Path, tmp_path: Path) -> None:
    review = tmp_path / "review.toml"
    text = 'reviewed = [{rule = "KAF309", note = "n", date = 2026-11-01, severity = "info"}]\n'
    review.write_text(text)
    assert "1 of 28 findings is collapsed" in findings(whole, review)
    done = run("findings", whole, "--review", review, "--accept", "KAF103", "--note", "n")
    assert done.returncode == 2
    assert "nothing can be added to it" in done.stderr.decode()
    assert review.read_text() == text
