"""What findings about MongoDB advise, and which of them stands first."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from analyser.detectors import DETECTORS
from analyser.detectors.findings import Finding, findings_table
from analyser.detectors.running import run
from analyser.detectors.stories import with_stories
from tests.analyser.detectors.concerned import connected
from tests.analyser.detectors.scenarios.build import Row
from tests.analyser.detectors.scenarios.build_mongo import (
    TRANSACTION,
    alone,
    begun,
    command,
    failed,
    in_transaction,
    short_lives,
)
from tests.analyser.detectors.scenarios.scenario import silent


def found(code: str, rows: dict[str, list[Row]]) -> list[Finding]:
    return run(connected(silent(code, "", **rows)), [DETECTORS[code]])


def told(findings: Iterable[Finding]) -> list[str]:
    """Subjects of findings in the order of a report."""
    rows = findings_table(findings).to_pylist()
    for row in rows:
        row["ts_first"], row["ts_last"] = (int(row[name].value) for name in ("ts_first", "ts_last"))
    return [row["subject"] for row in with_stories(rows)]


ADVICE = [
    pytest.param("find", '{"filter":{"_id":"?number"}}', "The index on _id", id="by _id"),
    pytest.param("find", '{"filter":{"_id":{"$in":["?number"]}}}', "The index on _id", id="by some _id"),
    pytest.param("update", '{"updates":[{"q":{"_id":"?oid"},"u":{"$set":{"a":"?"}}}]}', "The index on _id", id="write"),
    pytest.param("aggregate", '{"pipeline":[{"$match":{"_id":"?oid"}}]}', "The index on _id", id="a stage"),
    pytest.param("find", '{"filter":{"_id":"?oid","a":"?number"}}', "explain()", id="more than _id"),
    pytest.param("find", '{"filter":{}}', "explain()", id="everything"),
    pytest.param("delete", '{"deletes":[{"q":{"_id":1}},{"q":{"a":1}}]}', "explain()", id="one of them is not by _id"),
    pytest.param("find", '{"filter":{"_id":"?oid"', "explain()", id="cut"),
    pytest.param("ping", None, "db.currentOp()", id="no query"),
    pytest.param("commitTransaction", None, "write concern", id="a commit"),
]


@pytest.mark.parametrize(("name", "shape", "words"), ADVICE)
def test_an_index_is_advised_where_one_could_help(name: str, shape: str | None, words: str) -> None:
    (one,) = found("MON101", alone(command(1, name, 1200, query_shape=shape)))
    assert words in one.next_step


def test_conflicts_that_are_retried_are_counted_by_themselves() -> None:
    commit = in_transaction(4, 4, "commitTransaction", collection=None)
    tries = [failed(n, 112, **(TRANSACTION | {"txn_number": n})) for n in (1, 2, 3)]
    (one,) = found("MON102", alone(*tries, begun(3.5, 4), commit))
    assert "3 of them were tried again in a transaction that was committed." in one.sentence
    assert "committed 3 times" not in one.sentence


ROLES = [
    pytest.param("secondary", "rs0", "said before that it is a secondary of the replica set rs0", id="secondary"),
    pytest.param(
        "primary", "rs0", "called it primary of the replica set rs0: it stepped down since", id="stepped down"
    ),
    pytest.param("arbiter", None, "said before that it is an arbiter", id="arbiter"),
]


@pytest.mark.parametrize(("role", "name", "words"), ROLES)
def test_what_the_hello_of_a_member_said_stands_by_a_write_that_it_refused(role: str, name: str, words: str) -> None:
    (one,) = found("MON102", alone(failed(1, 10107, "insert", server_role=role, set_name=name)))
    assert words in one.sentence


def test_without_a_hello_in_the_capture_nothing_is_said_of_it() -> None:
    (one,) = found("MON102", alone(failed(1, 10107, "insert")))
    assert "hello" not in one.sentence


def test_a_write_that_was_sent_again_says_what_that_cost() -> None:
    twice = [command(1, "update", None, lsid="s", txn_number=1), command(6, "update", 20, "b", lsid="s", txn_number=1)]
    (one,) = found("MON112", alone(*twice))
    assert "took 5.0 s." in one.sentence
    assert one.numbers["wasted_ms"] == 5020


def test_a_client_for_each_request_names_the_application_and_what_it_costs() -> None:
    (one,) = found("MON107", short_lives(25, 0.2))
    assert one.sentence.startswith("Application billing at 10.3.0.1 (PyMongo 4.20.0) makes a client for each request")
    assert "25 connections" in one.sentence
    assert one.numbers["clients"][0]["client_id"] == "billing"
    assert one.numbers["wasted_ms"] == 250


def test_the_shape_that_costs_most_time_stands_first() -> None:
    shapes = {"a": 1100, "b": 9000, "c": 1200}
    rows = [command(n, took_ms=ms, shape_id=name) for n, (name, ms) in enumerate(shapes.items())]
    assert [subject[-1] for subject in told(found("MON101", alone(*rows)))] == ["b", "c", "a"]


def test_the_error_that_refused_most_stands_first() -> None:
    rows = [failed(1, 13), *(failed(2 + n, 50) for n in range(9)), *(failed(20 + n, 43) for n in range(3))]
    assert [subject.rsplit("=")[-1] for subject in told(found("MON102", alone(*rows)))] == ["50", "43", "13"]
