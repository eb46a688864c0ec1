"""Findings about producers and changes name who, where and how much, in words and in numbers."""

from __future__ import annotations

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios import FIRES
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run


def found(code: str, name: str) -> Finding:
    """The finding of that scenario."""
    scenario = next(one for one in FIRES if one.code == code and one.name.startswith(name))
    (finding,) = run(connected(scenario, [RULES[code]]), [RULES[code]])
    return finding


def test_a_refused_batch_counts_once_and_the_missing_brokers_are_named() -> None:
    finding = found("KAF205", "a broker is gone, and the capture ends")
    assert finding.numbers["missing_replicas"] == ["2 kafka-2:9092", "3 kafka-3:9092"]
    assert finding.numbers["requests_refused"] == 80
    assert finding.numbers["refused_records"] == finding.numbers["records_waiting"] == 10
    for named in (
        "shop-1",
        "10.1.0.7",
        "orders-0",
        "NOT_ENOUGH_REPLICAS",
        "kafka-2:9092",
        "10 records were not stored",
    ):
        assert named in finding.sentence


def test_who_came_last_with_a_transactional_id_is_named_first() -> None:
    finding = found("KAF206", "two pods")
    assert [one["client_id"] for one in finding.numbers["clients"]] == ["payouts-b", "payouts-a"]
    assert (finding.numbers["client_id"], finding.numbers["address"]) == ("payouts-b", "10.1.0.31")
    assert finding.numbers["turns"] == 2
    assert "payouts-a at 10.1.0.30" in finding.sentence


def test_a_hanging_transaction_names_producer_offset_and_readers() -> None:
    finding = found("KAF203", "a transaction hangs")
    assert finding.numbers["client_id"] == "payouts-1"
    assert finding.numbers["last_stable_offsets"] == {"orders-0": 1200}
    assert finding.numbers["records_behind"] == 300
    assert finding.numbers["victims"] == [{"client_id": "ledger-1", "address": "10.1.0.8"}]
    assert "--topic orders --partition 0 --start-offset 1200" in finding.next_step


def test_an_unknown_producer_is_not_made_up() -> None:
    finding = found("KAF203", "who holds it")
    assert finding.numbers["clients"] == []
    assert finding.confidence == "medium"
    assert "find-hanging" in finding.next_step


def test_out_of_sequence_tells_what_had_to_come() -> None:
    finding = found("KAF201", "batches before are missing")
    assert "sequence 10 had to come next, and 50 came" in finding.sentence
    assert finding.numbers["records_lost"] == 30


def test_a_late_end_tells_what_the_right_one_got() -> None:
    finding = found("KAF207", "an EndTxn of before")
    assert "(abort, 1.0 s later) got error 48" in finding.sentence
    assert finding.numbers["records_affected"] == 10


def test_what_stands_twice_is_counted_with_both_offsets() -> None:
    finding = found("KAF208", "not answered, but")
    assert finding.numbers["records_again"] == 10
    assert finding.numbers["offsets"] == [[1010, 1020]]
    assert finding.confidence == "medium"


def test_what_was_unread_of_a_topic_is_lost_when_it_is_made_anew() -> None:
    finding = found("KAF316", "a topic is made anew while")
    assert finding.numbers["records_unread"] == finding.numbers["records_lost"] == 30
    assert finding.numbers["old_topic_id"] == "id-1"
    assert finding.numbers["victims"][0]["client_id"] == "billing-1"


def test_who_deleted_a_topic_and_who_met_it() -> None:
    finding = found("KAF309", "a topic is deleted under")
    assert (finding.numbers["client_id"], finding.numbers["address"]) == ("operator", "10.1.0.50")
    assert [one["client_id"] for one in finding.numbers["victims"]] == ["shop-1"]
    assert "20 records of client shop-1" in finding.sentence
