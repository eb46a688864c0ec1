"""Rules that cannot be checked are one line on what to mend, before any capture is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirewitness.app.expect.comparison import Comparison, comparison
from wirewitness.app.expect.errors import RulesError
from wirewitness.app.expect.kinds import Measured, NoFindings, OfQuery, Order, Rows
from wirewitness.app.expect.rules import expectations_of, read_rules

FETCH = '[[expect]]\nname = "n"\ntable = "exchanges"\n'
CAUSES = '[[expect]]\nname = "n"\nno_findings = ["KAF103"]\n'


def said(text: str) -> str:
    with pytest.raises(RulesError) as error:
        expectations_of("rules.toml", "rules.toml", text)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("rules.toml: ")
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("", "there is no expectation in it", id="empty"),
        pytest.param("[[expect", "Expected", id="no TOML"),
        pytest.param("a = " + "[" * 5000, "no TOML that can be read", id="deep"),
        pytest.param(f"a = {'9' * 5000}", "no TOML that can be read", id="long number"),
        pytest.param("expect = 3", "no expectation in it", id="no list"),
        pytest.param("rules = []", "'rules' means nothing here", id="other table"),
        pytest.param("[[expect]]\nname = 'n'", "expectation 1 ('n') says nothing to check", id="nothing"),
        pytest.param(
            CAUSES.replace("no_findings", "no_finding"),
            "says nothing to check ('no_finding' means nothing here; did you mean no_findings", id="kind misspelt",
        ),
        pytest.param(
            CAUSES + FETCH.replace('"n"', '"m"') + "count = 0\n" + CAUSES,
            "expectation 3 ('n'): expectation 1 has that name, too", id="names twice",
        ),
        pytest.param(FETCH + "sql = 'select 1'\ncount = 0", "has table and sql, which are expectations each", id="two"),
        pytest.param(FETCH + "", "nothing to compare: write count", id="no number"),
        pytest.param(
            FETCH.replace("exchanges", "exchange") + "count = 0",
            "unknown table 'exchange'; did you mean exchanges", id="table",
        ),
        pytest.param(
            FETCH + "p99_latency = '< 1'",
            "exchanges has no column 'latency'; did you mean latency_ms", id="column",
        ),
        pytest.param(FETCH + "p99_latency_ms = 'fast'", 'must be a comparison such as "<= 700"', id="comparison"),
        pytest.param(FETCH + "p99_latency_ms = '<= 7; drop'", "must be a comparison", id="more than a comparison"),
        pytest.param(FETCH + "count = true", "must be a comparison", id="boolean"),
        pytest.param(FETCH + "count = nan", "must be a comparison", id="nan"),
        pytest.param(FETCH + "median_operation = 1", "operation of exchanges is no number but string", id="text"),
        pytest.param(FETCH + "counts = 0", "'counts' means nothing here; did you mean count", id="key"),
        pytest.param(FETCH + "count = 0\nwhere = \"api = 'Fetch'\"", "exchanges has no column 'api'", id="where"),
        pytest.param(FETCH + "count = 0\nwhere = 'true) or (true'", "where: ", id="brackets"),
        pytest.param(FETCH + "count = 0\nwhere = 'true order by ts'", "where: ", id="more than a condition"),
        pytest.param(FETCH + "count = 0\nwhere = 3", "where must be a text", id="where is no text"),
        pytest.param(FETCH + "count = 0\nper = ['client']", "has no column 'client'; did you mean client_id", id="per"),
        pytest.param(FETCH + "count = 0\nabout.group = 'g'", "exchanges has no column for 'group'", id="about"),
        pytest.param(FETCH + "count = 0\nneeds = 'exchanges, flows'", "needs must be", id="needs"),
        pytest.param(
            FETCH + "count = 0\nneeds = 'flow'",
            "unknown table 'flow'; did you mean flows", id="needs a table",
        ),
        pytest.param(CAUSES.replace("KAF103", "KAF1O3"), "unknown rule 'KAF1O3'; did you mean", id="rule"),
        pytest.param(CAUSES.replace('["KAF103"]', "[]"), "no_findings names no rule", id="no rule"),
        pytest.param(CAUSES.replace('["KAF103"]', "3"), "no_findings must be a list of texts", id="rules are no list"),
        pytest.param(CAUSES + "severity = 'bad'", "severity must be one of info, warning, critical", id="severity"),
        pytest.param(CAUSES + "about.grup = 'g'", "nothing is called 'grup'; did you mean group", id="subject"),
        pytest.param(
            "[[expect]]\nsql = 'select client_id from exchanges'\nabout.group = 'g'",
            "about: the query gives no column for 'group'", id="about of a query",
        ),
        pytest.param(CAUSES + "about = 'g'", "about must be a table of texts", id="about is no table"),
        pytest.param(CAUSES.replace('"n"', "3"), "name must be a text", id="name"),
        pytest.param("[[expect]]\nsql = 'select 1; select 2'", "exactly one SELECT", id="two queries"),
        pytest.param("[[expect]]\nsql = 'drop table exchanges'", "exactly one SELECT", id="no SELECT"),
        pytest.param("[[expect]]\nsql = \"select * from read_csv('/etc/passwd')\"", "sql: ", id="a file"),
        pytest.param(
            "[[expect]]\nsql = 'select * from flws'",
            "unknown table 'flws'; did you mean flows", id="no table",
        ),
        pytest.param(FETCH + "order = ['true']\nper = 'client_id'", "order needs two conditions", id="one step"),
        pytest.param(FETCH + "order = ['true', 'fals']", "order: ", id="step"),
        pytest.param(
            FETCH.replace("exchanges", "flows") + "order = ['true', 'true']",
            "have no time (ts)", id="no time",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(text: str, wrong: str) -> None:
    assert wrong in said(text)


def test_files_that_are_none_or_too_large(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    for prepare, wrong in (
        (lambda: None, "no such file"),
        (lambda: path.write_bytes(b"\xff\xfe"), "not UTF-8 at byte 0"),
        (lambda: path.open("wb").truncate(1 << 30), "larger than 1 MB"),
    ):
        prepare()
        with pytest.raises(RulesError, match=wrong):
            read_rules(str(path))
    with pytest.raises(RulesError, match="that is no file"):
        read_rules(str(tmp_path))


def test_every_kind_is_read() -> None:
    found = expectations_of(
        "rules.toml",
        "rules",
        FETCH + "where = \"operation = 'Fetch'\"\nper = 'client_id'\np99_9_latency_ms = '<= 1.5'\ncount = 3\n"
        + CAUSES.replace('"n"', '"m"') + "about.group = 'pay*'\nneeds = \"kafka_offset_commits where topic = 'a'\"\n"
        + "[[expect]]\nsql = 'select 1 from flows;'\nrows = '!= 0'\n"
        + FETCH.replace('"n"', '"in order"') + "order = ['true', 'false']\n",
    )  # fmt: skip
    measured, causes, query, order = found
    assert isinstance(measured, Measured)
    assert measured.rows == Rows("exchanges", "operation = 'Fetch'")
    assert [(m.name, m.sql, m.column, m.wanted) for m in measured.measures] == [
        ("p99_9_latency_ms", 'quantile_cont("latency_ms", 0.9990)', "latency_ms", Comparison("<=", 1.5)),
        ("count", "count(*)", None, Comparison("==", 3.0)),
    ]
    assert isinstance(causes, NoFindings)
    assert causes.needs == (Rows("kafka_offset_commits", "topic = 'a'"),)
    assert isinstance(query, OfQuery)
    assert (query.name, query.sql, query.tables) == ("select 1 from flows;", "select 1 from flows", ("flows",))
    assert isinstance(order, Order)


@pytest.mark.parametrize(
    ("text", "holds", "breaks"),
    [
        ("<= 700", 700, 700.1),
        ("<5", 4, 5),
        (">= -1.5", -1.5, -2),
        (" > 0 ", 1, 0),
        ("= 3", 3, 4),
        ("!= 0", 1, 0),
        (0, 0, 1),
    ],
)
def test_comparisons(text: object, holds: float, breaks: float) -> None:
    wanted = comparison(text, "x")
    assert wanted.holds(holds)
    assert not wanted.holds(breaks)
