"""What findings about MongoDB advise, and which of them stands first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.build_mongo import (
    TRANSACTION,
    alone,
    begun,
    command,
    failed,
    in_transaction,
    left_alone,
    opened,
    short_lives,
)
from tests.analyser.engine.rules.scenarios.mongo_use import held, many, two_speeds, unread, written_back
from tests.analyser.engine.rules.scenarios.scenario import silent
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.incidents.incidents import with_stories
from wirewitness.analyser.engine.rules.findings import Finding, findings_table
from wirewitness.analyser.engine.rules.running import run


def found(code: str, rows: dict[str, list[Row]]) -> list[Finding]:
    return run(connected(silent(code, "", **rows)), [RULES[code]])


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
    first, _, _ = one.sentence.partition(". ")  # an incident of many findings shows this alone
    assert first.endswith("sent 1 write again: update on shop.orders; it succeeded then"), first
    assert "took 5.0 s." in one.sentence
    assert one.numbers["wasted_ms"] == 5020


def test_a_write_whose_last_attempt_has_no_answer_did_not_fail_for_all_that_is_known() -> None:
    (one,) = found("MON112", alone(*(command(n, "update", None, lsid="s", txn_number=1) for n in (1, 2))))
    assert "; no reply to the last attempt is known. " in one.sentence
    assert "failed" not in one.sentence
    assert "last reply" not in one.sentence
    assert (one.numbers["succeeded"], one.numbers["failed"], one.numbers["unknown"]) == (0, 0, 1)
    assert one.numbers["wasted_ms"] == 1000  # until the second attempt, at least


def test_an_attempt_whose_wait_a_limit_ended_is_no_success() -> None:
    (one,) = found("MON112", alone(*(command(n, "update", None, lsid="s", txn_number=1, status=None) for n in (1, 2))))
    assert "; no reply to the last attempt is known. " in one.sentence
    assert "ended with: no reply that is known." in one.sentence
    assert one.numbers["succeeded"] == 0


def test_writes_that_were_sent_again_are_counted_by_how_they_ended() -> None:
    def twice(number: int, took_ms: float | None, **more: Any) -> list[Row]:
        known = {"lsid": "s", "txn_number": number}
        return [
            command(number, "update", None, **known),
            command(number + 0.5, "update", took_ms, "b", **known, **more),
        ]

    refused = {"status": "error", "ok": False, "error_code": 91}
    (one,) = found("MON112", alone(*twice(1, 20), *twice(2, 20), *twice(3, None), *twice(4, 20, **refused)))
    assert "sent 4 writes again" in one.sentence
    assert "; 2 of 4 succeeded then, 1 failed again, of 1 no reply" in one.sentence
    assert "The first attempts ended with: no reply." in one.sentence


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


def test_a_transaction_that_nobody_ends_stands_before_a_command_that_was_a_little_slow() -> None:
    (left,) = found("MON111", alone(begun(1), in_transaction(2), end=3, closed_by="client"))
    (slow,) = found("MON101", alone(command(1, "insert", 150), command(2, "insert")))
    assert (left.severity, slow.severity) == ("info", "info")
    assert left.numbers["wasted_ms"] == 58_998  # 2 ms of the 60 s it was at work
    assert told([slow, left]) == [left.subject, slow.subject]


WITH_VERSION = "Application billing at 10.3.0.1 (PyMongo 4.20.0)"


def test_who_left_a_cursor_is_named_with_the_version_of_its_driver() -> None:
    (one,) = found("MON104", left_alone(25, 1.5))
    assert one.sentence.startswith(WITH_VERSION)
    assert one.numbers["clients"][0]["driver"] == "PyMongo 4.20.0"


def test_who_left_a_transaction_open_is_named_with_the_version_of_its_driver() -> None:
    (one,) = found("MON111", alone(begun(1), in_transaction(2), end=70))
    assert one.sentence.startswith(WITH_VERSION)
    assert one.numbers["clients"][0]["driver"] == "PyMongo 4.20.0"


def test_a_driver_whose_handshake_is_not_in_the_capture_has_no_version() -> None:
    (one,) = found("MON111", alone(begun(1, driver_version=None), end=70))
    assert one.sentence.startswith("Application billing at 10.3.0.1 (PyMongo) began")


def test_the_error_that_refused_most_stands_first() -> None:
    rows = [failed(1, 13), *(failed(2 + n, 50) for n in range(9)), *(failed(20 + n, 43) for n in range(3))]
    assert [subject.rsplit("=")[-1] for subject in told(found("MON102", alone(*rows)))] == ["50", "43", "13"]


def test_answers_that_may_only_be_missing_from_the_capture_stand_behind_a_fault() -> None:
    lost = alone(command(1, took_ms=None), command(2, took_ms=None), end=40, gap_bytes=100)
    (remark,) = found("MON103", lost)
    (left,) = found("MON111", alone(begun(1), in_transaction(2), end=70, gap_bytes=9))
    (storm,) = found("MON107", short_lives(25, 0.2))
    assert (remark.severity, left.severity, storm.severity) == ("info", "info", "warning")
    assert told([remark, left]) == [left.subject, remark.subject]
    assert told([remark, storm]) == [storm.subject, remark.subject]


def test_a_title_says_what_happened_to_what_and_who_did_it() -> None:
    (one,) = found("MON101", alone(command(1, took_ms=5000)))
    assert one.title == "Slow find on shop.orders: once, up to 5.0 s, by billing"


def test_a_title_cuts_long_names() -> None:
    (one,) = found("MON101", alone(command(1, took_ms=5000, app_name="a" * 200, collection="c" * 200)))
    assert len(one.title) <= 120
    assert one.title.endswith(f"by {'a' * 27}…")


def lost_cursors(flow: str, after_s: float = 0.1) -> dict[str, list[Row]]:
    """Cursors that the server does not know when more is asked for, on that connection."""
    return alone(*(
        row for n in range(3) for row in (
            opened(1000 * n, cursor_id=n + 5),
            failed(1000 * n + after_s, 43, "getMore", flow=flow, cursor_id=n + 5, cursor_exhausted=None),
        )
    ))  # fmt: skip


def test_a_cursor_that_is_gone_at_once_on_another_connection_was_another_servers() -> None:
    (one,) = found("MON102", lost_cursors("b"))
    assert "3 cursors had been opened on another connection, 102 ms (median) before" in one.sentence
    for rows in (lost_cursors("a"), lost_cursors("b", 700)):
        (one,) = found("MON102", rows)
        assert "another connection" not in one.sentence


def test_the_pause_before_the_same_is_sent_again_is_told() -> None:
    (one,) = found("MON102", alone(*(failed(1 + n / 100, 8000) for n in range(40))))
    assert "It sent the same again 8 ms (median) after a refusal." in one.sentence
    assert one.numbers["without_pause"] == 39
    assert one.numbers["heals"] == "retry"


def test_the_holder_its_session_and_who_met_it_are_named() -> None:
    (one,) = found("MON125", alone(*held(1.5, 2)))
    assert "billing at 10.3.0.1" in one.sentence
    assert "session s1, number 1" in one.sentence
    assert "2 writes were refused (WriteConflict) that write the same document: application stock" in one.sentence
    assert (one.numbers["held_ms"], one.numbers["outcome"]) == (1502.0, "committed")


def test_a_long_way_is_told_by_hellos_and_other_reasons_by_what_differs() -> None:
    far = [command(1 + n, "hello", 55, database="admin", collection=None) for n in range(3)]
    (one,) = found("MON124", alone(*two_speeds(60), *far))
    assert one.sentence.endswith("Its hellos take 55 ms as well: the way to the server is long.")
    (one,) = found("MON124", alone(*two_speeds(60, read_concern="majority")))
    assert one.sentence.endswith("Its read concern is majority, theirs the default.")
    (one,) = found("MON124", alone(*two_speeds(60)))
    assert one.sentence.endswith("wait 2 ms for the same.") or one.sentence.endswith("waits 2 ms for the same.")


def test_both_who_write_back_are_named() -> None:
    (one,) = found("MON126", alone(*written_back(3)))
    assert "stock at 10.3.0.2 and application billing at 10.3.0.1 read and write back the same document" in one.sentence
    assert "3 times a write replaced" in one.sentence


def test_a_query_that_finds_nothing_is_told_by_its_pace() -> None:
    (one,) = found("MON119", alone(*many(60, every=0.1, documents_returned=0, cursor_exhausted=True, literals_id="a")))
    assert "60 times in 5.9 s, one each 100 ms; 60 of them found nothing." in one.sentence


def test_a_lost_write_is_told_of_the_client_that_sent_it() -> None:
    stock = {"app_name": "stock", "client_address": "10.3.0.77", "flow": "b"}
    rows = alone(
        command(1, "insert", n=1, documents_sent=1, document_ids=[7]),
        *(unread(2 + n / 10, 100 + n, **stock) for n in range(5)),
        unread(3, 7),
    )
    (only,) = found("MON123", rows)
    assert "stock" not in only.subject
    assert only.numbers["records_lost"] == 1


def test_of_two_writes_of_one_id_the_first_one_was_lost_and_the_second_one_refused() -> None:
    stock = {"app_name": "stock", "client_address": "10.3.0.77", "flow": "b"}
    looked = command(3, document_ids=[7], documents_returned=0, cursor_exhausted=True)
    told = [one.sentence for one in found("MON123", alone(unread(1, 7), unread(1.05, 7, **stock), looked))]
    assert ["stored already" in one for one in told] == ["stock" in one for one in told]
    assert len(told) == 2
    (only,) = found("MON123", alone(unread(1, 7), looked, unread(4, 7)))
    assert "stored already" not in only.sentence
