"""Chains of MQTT and MongoDB say what the clients and brokers of a sample did."""

from __future__ import annotations

import pytest

from tests.conftest import SAMPLES
from tests.reports.base.why.chains import chains, check, kinds, link, opened, sample_facts
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.analysis.evidence.index import open_index
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.reports.base.questions.causes import findings
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.model import NoSubject
from wirewitness.reports.base.why.packets import around
from wirewitness.reports.protocols.mqtt.why.causes import deliveries_of
from wirewitness.reports.report.why.subjects import answer


def test_a_message_above_what_its_subscriber_takes_is_dropped_without_a_word() -> None:
    (told,) = sample_facts("mqtt_faults")["undelivered"]
    (chain,) = chains("mqtt_faults", told["subscriber"], told["topic"])
    assert kinds(chain) == [["topic", "too_large"]]
    assert "larger than it takes" in chain.verdict
    assert "100 bytes at most" in link(chain, "too_large").what
    assert not chain.healthy
    check(opened("mqtt_faults"), chain)


def test_the_same_by_the_id_of_the_message() -> None:
    rows = opened("mqtt_faults").sql("select message_id from mqtt_deliveries where status = 'missing'").to_pylist()
    told = chains("mqtt_faults", rows[0]["message_id"])
    assert [kinds(chain)[0][0] for chain in told] == ["delivery", "exchange"]


def test_of_many_subscribers_of_one_message_always_the_same_are_shown() -> None:
    names = ["g", "c", "a", "f", "e", "b", "d"]
    row = {"message_id": "m", "ts": 1, "status": "missing"}
    source = RowsAnalysis({"mqtt_deliveries": [{**row, "subscriber": name} for name in names]})
    found = deliveries_of(Asking(source), "m")
    assert [one["subscriber"] for one in found] == ["a", "b", "c", "d", "e"]


def test_a_topic_that_no_filter_matches_says_what_was_subscribed_to() -> None:
    (chain,) = chains("mqtt_faults", "viewer", "page/doctor")
    assert kinds(chain) == [["topic"]]
    assert chain.verdict.startswith("viewer@10.77.0.12 did not get the message on page/doctor: ")
    assert chain.verdict.endswith("it was not matched by what it subscribed to (wills/#)")
    check(opened("mqtt_faults"), chain)


def test_delivered_messages_are_nothing_wrong() -> None:
    told = next(one for one in sample_facts("mqtt_healthy")["delivered"] if one["topic"] == "house/paho/power")
    (chain,) = chains("mqtt_healthy", told["client_id"], told["topic"])
    assert chain.healthy
    assert chain.verdict.startswith("nothing is wrong: 9 messages on house/paho/power reached ")


def test_a_take_over_leads_to_whoever_came_with_the_same_client_id() -> None:
    found = next(one for one in findings(opened("mqtt_takeover_loop")) if one.code == "MQT102")
    (chain,) = chains("mqtt_takeover_loop", found.finding_id)
    assert kinds(chain) == [["finding", "subscriber_away", "taken_over"]]
    taken = link(chain, "taken_over")
    named = {one["client_id"] for one in found.who}
    assert any(taken.what.startswith(f"{name}@10.77.0.1") for name in named)
    check(opened("mqtt_takeover_loop"), chain)


def test_a_missed_keep_alive_is_a_silence_longer_than_it() -> None:
    missed = sample_facts("mqtt_faults")["keep_alive_missed"]
    found = next(one for one in findings(opened("mqtt_faults")) if one.code == "MQT103")
    (chain,) = chains("mqtt_faults", found.finding_id)
    assert kinds(chain) == [["finding", "subscriber_away", "keep_alive"]]
    assert any(f"{name}@" in link(chain, "keep_alive").what for name in missed)


def test_a_slow_command_is_the_servers_time() -> None:
    """The sample's one slow report; client and server are on one host, so nothing of it is the way."""
    (slow,) = sample_facts("mongo_shapes_and_errors")["slow"]
    analysis = opened("mongo_shapes_and_errors")
    path = SAMPLES / "mongo_shapes_and_errors.pcapng"
    with open_index(list(open_captures([str(path)])), ReadOptions(), use_cache=False) as index:
        ask = Asking(analysis, packets=lambda row: around(index, row))
        (chain,) = answer(ask, ["mongo", f"pymongo-{slow['client']}", slow["command"]])
    asked = analysis.sql(
        "select exchange_id, latency_ms from mongo_commands "
        f"where request_id = {slow['request_id']} and command = '{slow['command']}'"
    ).to_pylist()
    assert chain.subject == f"exchange {asked[0]['exchange_id']}"
    parts = {part.name: part.ns for part in chain.steps[0].link.parts}
    assert sum(parts.values()) == round(asked[0]["latency_ms"] * 1e6)
    assert parts["server"] > 0.95 * sum(parts.values())
    assert "captured near both" in " ".join(chain.remarks)
    check(analysis, chain)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("mongo_healthy", ("mongo", "nobody", "find"), "no command with a reply is called 'nobody find'"),
        ("mqtt_faults", ("pagr", "page/doctor"), "near it: pager page/doctor"),
        ("mqtt_faults", ("ffffffffffffffff-c-1",), "there is no exchange ffffffffffffffff-c-1 here"),
    ],
)
def test_what_is_not_there_is_refused(name: str, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(NoSubject, match=said):
        chains(name, *words)


@pytest.mark.parametrize("name", ["mqtt_faults", "mongo_shapes_and_errors", "kafka_sasl", "mqtt_no_answer"])
def test_every_finding_and_some_exchanges_have_a_chain(name: str) -> None:
    analysis = opened(name)
    ids = [one.finding_id for one in findings(analysis)]
    rows = analysis.sql(
        "select exchange_id from exchanges qualify row_number() over (partition by operation, status order by ts) = 1"
    ).to_pylist()
    for one in [*ids, *(row["exchange_id"] for row in rows[:12])]:
        for chain in chains(name, one):
            check(analysis, chain)


MISTAKES = [
    {
        "exchange_id": f"aa-c-{number}", "flow_id": "aa", "ts": number * 1_000_000_000, "command": "find",
        "ts_response": number * 1_000_000_000 + 5_000_000, "latency_ms": 5.0, "status": "error" if code else "ok",
        "error_code": code, "error_name": {50: "MaxTimeMSExpired", 13: "Unauthorized"}.get(code or 0),
        "app_name": "shop", "client_address": "10.0.0.1", "database": "shop", "collection": "orders",
    }
    for number, code in enumerate([None, 50, 13, 50, None, 13, 50, 13, 13], 1)
]  # fmt: skip


@pytest.mark.parametrize("words", [("mongo", "shop", "find"), ("mongo", "find", "shop"), ("find", "shop", "mongo")])
def test_the_commonest_failure_of_a_command_is_told_before_the_slowest(words: tuple[str, ...]) -> None:
    of_exchange = (
        "exchange_id",
        "flow_id",
        "ts",
        "ts_response",
        "latency_ms",
        "status",
        "error_name",
        "client_address",
    )
    exchanges = [
        {name: one[name] for name in of_exchange}
        | {
            "protocol": "mongo",
            "operation": "find",
            "request_message_id": one["exchange_id"],
            "client_id": "shop",
            "client_address": "10.0.0.1",
        }
        for one in MISTAKES
    ]
    told = answer(Asking(RowsAnalysis({"mongo_commands": MISTAKES, "exchanges": exchanges})), words)
    assert told[0].subject == "exchange aa-c-3"
    assert "4 of 9 commands ended with Unauthorized; this is the first of them" in told[0].remarks
    assert len(told) == 2
    assert (words[:2] == ("mongo", "shop")) is not any(one.startswith("read as") for one in told[0].remarks)


def test_a_command_that_never_failed_has_one_answer() -> None:
    fine = [{**one, "status": "ok", "error_code": None, "error_name": None} for one in MISTAKES]
    exchanges = [
        {"exchange_id": one["exchange_id"], "flow_id": "aa", "ts": one["ts"], "ts_response": one["ts_response"],
         "status": "ok", "operation": "find", "protocol": "mongo", "latency_ms": 5.0}
        for one in fine
    ]  # fmt: skip
    (chain,) = answer(Asking(RowsAnalysis({"mongo_commands": fine, "exchanges": exchanges})), ("mongo", "shop", "find"))
    assert any("the slowest of 9 commands" in one for one in chain.remarks)
