"""Captures of others with known truth: who is named, and what is never said. They lie beside the repository."""

from __future__ import annotations

import pytest

import wirewitness
from tests.conftest import KNOWN_INCIDENTS

NOTHING = ""


@pytest.mark.parametrize(
    ("name", "code", "said", "never"),
    [
        ("hm_h_mochi_resume", NOTHING, NOTHING, "MQT115"),
        ("hm_dead_path", "MQT115", "21 messages on tank/1 did not reach client scada-2", "access rules"),
        ("hm_lost18of20", "MQT115", "left 1 message unacknowledged for 6.0 s", "in the median"),
        ("hm_expiry_short", "MQT119", "3 messages of QoS 1 or 2 on order/truck-5 expired", "truck-6"),
        ("hm_qos0_lasting", "MQT119", "fridge-1", "fridge-2"),
        ("r10_qos0_while_away", "MQT119", "5 messages of QoS 0 on cmd/light", "cmd/door"),
        ("r14_session_queue_lost_short", "MQT115", "8 messages on tele/m1 did not reach client app-gw-2", "MQT119"),
        ("hm_redeliver_conns", "MQT124", "to client parser-1 at 10.88.47.12:41372 on 10 connections", "MQT115"),
        ("hm_http_answers", "TLS106", "responds in HTTP", "malformed"),
        ("r11_healthy_retain_flag", NOTHING, NOTHING, "MQT115"),
    ],
)
def test_who_is_named_and_what_is_never_said(name: str, code: str, said: str, never: str) -> None:
    path = next(KNOWN_INCIDENTS.glob(f"{name}.pcap*"), None)
    if path is None:
        pytest.skip("the captures of others are not here")
    told = wirewitness.read(path).findings().to_dict("records")
    assert not any(never in f"{one['code']} {one['sentence']} {one['next_step']}" for one in told)
    assert not code or [one for one in told if one["code"] == code and said in one["sentence"]]
