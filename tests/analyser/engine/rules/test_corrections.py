"""What rules once said wrongly, on real captures: samples `mqtt_no_answer` and `mqtt_enhanced_auth`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pandas as pd
import pytest

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.reports.base.questions.quality import quality

NO_ANSWER, ENHANCED_AUTH = "mqtt_no_answer", "mqtt_enhanced_auth"


@cache
def table(sample: str, name: str) -> pd.DataFrame:
    with wirewitness.read(SAMPLES / f"{sample}.pcapng") as analysis:
        return analysis.table(name)


def findings(code: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table(NO_ANSWER, "findings").to_dict("records")
    return [row for row in rows if row["code"] == code]


def test_a_message_that_is_sent_nine_times_in_45_s_is_stuck() -> None:
    publishes = table(NO_ANSWER, "mqtt_publishes")
    sends = publishes[publishes["qos"] == 1]
    assert (len(sends), list(sends["dup"])) == (9, [False] + [True] * 8)
    [told] = findings("MQT105")
    numbers = json.loads(told["numbers"])
    assert (numbers["stuck_messages"], numbers["sends_most"], numbers["owed_by"]) == (1, 9, "server")
    assert numbers["waited_ms"] > 40_000, "from the first time on; the last one was 5 s old"


def test_a_connection_that_is_answered_by_a_reset_was_captured_both_ways() -> None:
    flows = table(NO_ANSWER, "flows")
    [flow] = flows[flows["bytes_to_client"] == 0].to_dict("records")
    assert (flow["handshake_seen"], flow["reset_by"], flow["protocol"]) == (False, "server", "mqtt")
    assert findings("CAP102") == []
    with wirewitness.read(SAMPLES / f"{NO_ANSWER}.pcapng") as analysis:
        assert sum(one.one_sided for one in quality(analysis).flows) == 0


def test_a_full_window_names_no_longest_exchange_where_no_time_is_known() -> None:
    [told] = findings("TCP106")
    numbers = json.loads(told["numbers"])
    under_way = table(NO_ANSWER, "exchanges").set_index("exchange_id").loc[numbers["exchanges"]]
    assert under_way["latency_ms"].isna().all()
    assert numbers["exchanges_count"] > len(under_way) / 2 > 0
    assert "exchanges went on meanwhile." in told["sentence"]


def test_a_full_window_is_not_taken_for_a_delayed_acknowledgement() -> None:
    waits = table(NO_ANSWER, "tcp_waits")
    assert (waits["kind"] == "delayed_ack").sum() >= 5
    assert findings("TCP105") == []


@pytest.mark.parametrize("operation", ["CONNECT", "AUTH"])
def test_one_connack_answers_connect_and_auth(operation: str) -> None:
    exchanges, messages = table(ENHANCED_AUTH, "exchanges"), table(ENHANCED_AUTH, "messages")
    [asked] = exchanges[(exchanges["operation"] == operation) & (exchanges["client_id"] == "safe")].to_dict("records")
    answer = messages[messages["message_id"] == asked["response_message_id"]]
    assert list(answer["operation"]) == ["CONNACK"]
