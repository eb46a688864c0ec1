"""Why messages on a topic reached a client or not: given rows of a capture to words and causes.

Facts are made of the rows as for a capture; each kind of cause stands beside near misses that look alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.analyser.mqtt.facts.test_stage import MS, START, Capture
from tests.conftest import KNOWN_INCIDENTS
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.mqtt.facts.stage import add_deliveries
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.model import Chain, NoSubject
from wirewitness.reports.report.why.subjects import answer
from wirewitness.reports.report.why.tables import WHY_TABLES

LASTING = {"clean_start": False, "version": "3.1.1"}
PUBLISHER = "1"


class Story(Capture):
    """A publisher p (flow 1) and a subscriber s; times are ms after START."""

    def __init__(self) -> None:
        super().__init__()
        self.connects(PUBLISHER, 0, client_id="p")

    def connects(self, flow: str, at: int, until: int | None = None, **more: Any) -> None:
        known = {"client_messages": 3, "server_messages": 3, "client_id": "s"} | LASTING | more
        self.connect(flow, at, closed=None if until is None else "client", **known)
        ends = {"closed_by": None if until is None else "client"}
        ends |= {"ts_closed": None if until is None else START + until * MS, "observed_until": START + 100_000 * MS}
        self.rows["mqtt_connections"][-1] |= ends
        self.rows["flows"][-1] |= ends

    def sends(self, at: int, topic: str = "t", crc: int = 7, to: str | None = None, **more: Any) -> None:
        self.publish(PUBLISHER, at, topic, crc, **{"client_id": "p"} | more)
        if to is not None:
            self.publish(to, at + 1, topic, crc, to_client=True, client_id="s", handshake="complete")

    def why(self, *words: str) -> Chain:
        source = RowsAnalysis(self.rows)
        add_deliveries(source._connection)
        (chain,) = answer(Asking(source), words)
        return chain


def ends(chain: Chain) -> list[str]:
    """What the links behind the first one say, and where they end."""
    told: list[str] = []
    steps = list(chain.steps)
    while steps:
        step = steps.pop(0)
        told += [step.link.what, step.end]
        steps += step.causes
    return [one for one in told[1:] if one]


def subscribed(topic_filter: str = "t", **more: Any) -> Story:
    """s is subscribed from 10 ms on, over flow 2."""
    story = Story()
    story.connects("2", 5)
    story.subscribe("2", 10, topic_filter, client_id="s", **more)
    return story


def test_all_that_reached_it_is_nothing_wrong() -> None:
    story = subscribed()
    for at in (20, 30):
        story.sends(at, crc=at, to="2")
    chain = story.why("s", "t")
    assert chain.healthy
    assert chain.verdict == (
        "nothing is wrong: 2 messages on t reached s@10.0.0.2, 1 ms later in the median and 1 ms at most"
    )
    assert any("both directions without gaps; 1 matching subscription" in one for one in chain.remarks)


def test_a_gap_takes_the_certainty() -> None:
    story = subscribed()
    story.sends(20, to="2")
    story.rows["mqtt_connections"][-1]["gap_bytes"] = 5
    chain = story.why("s", "t")
    assert not chain.healthy
    assert chain.verdict.startswith("no fault was seen, but the capture is not complete: 1 message on t reached ")
    assert any("bytes of 1 are missing" in one for one in chain.remarks)


@pytest.mark.parametrize(
    ("topic_filter", "topic"), [("t/#", "t"), ("t/+", "t/a"), ("+/a", "t/a"), ("#", "t"), ("$SYS/#", "$SYS/a")]
)
def test_filters_match_before_they_are_blamed(topic_filter: str, topic: str) -> None:
    story = subscribed(topic_filter)
    story.sends(20, topic)
    assert "not matched" not in story.why("s", topic).verdict


@pytest.mark.parametrize(("topic_filter", "topic"), [("t/+", "t"), ("t", "t/a"), ("T", "t"), ("#", "$SYS/a")])
def test_filters_that_do_not_match_are_named(topic_filter: str, topic: str) -> None:
    story = subscribed(topic_filter)
    story.sends(20, topic)
    chain = story.why("s", topic)
    assert f"not matched by what it subscribed to ({topic_filter}" in chain.verdict
    assert not chain.healthy


def away(qos: int, granted: int = 1, **more: Any) -> Story:
    """s is away from 50 to 90 ms; a message comes at 60."""
    story = Story()
    story.connects("2", 5, 50)
    story.subscribe("2", 10, "t", client_id="s", granted_qos=granted)
    story.sends(60, qos=qos, **more)
    story.connects("3", 90, session_present=True)
    return story


@pytest.mark.parametrize(
    ("qos", "granted", "words"),
    [
        (0, 1, "it was published with QoS 0 while it was away"),
        (1, 0, "it was published while it was away, and its subscription has QoS 0"),
    ],
)
def test_qos_0_while_away_is_told(qos: int, granted: int, words: str) -> None:
    chain = away(qos, granted).why("s", "t")
    assert words in chain.verdict
    assert not chain.healthy
    assert any("closed the connection without DISCONNECT" in one for one in ends(chain))


def test_qos_0_that_a_server_kept_was_delivered() -> None:
    story = away(0, crc=9)
    story.publish("3", 95, "t", 9, to_client=True, client_id="s", qos=0)
    assert story.why("s", "t").healthy


def test_qos_1_while_away_waits_in_the_session_until_it_is_back() -> None:
    story = away(1, crc=9)
    story.publish("3", 95, "t", 9, to_client=True, client_id="s", handshake="complete")
    chain = story.why("s", "t")
    assert chain.healthy
    assert "1 of them waited in its session while it was away" in chain.verdict


def test_qos_1_for_a_client_that_is_not_back_yet_is_no_loss() -> None:
    story = away(1)
    del story.rows["mqtt_connections"][-1], story.rows["flows"][-1]
    chain = story.why("s", "t")
    assert "it was waiting in its session when the capture ends" in chain.verdict


def test_the_commonest_failure_is_explained_first() -> None:
    story = away(0)
    for at in (61, 62, 63):
        story.sends(at, crc=at, qos=0)
    story.sends(95, crc=95, qos=1)
    chain = story.why("s", "t")
    assert chain.verdict.startswith("s@10.0.0.3 did not get any of 5 messages on t: 4 were published with QoS 0")


@pytest.mark.parametrize(
    ("at", "words"),
    [(7, "published before it subscribed, at"), (2, "published while it was not connected and had no session")],
)
def test_messages_before_its_subscription_are_not_owed(at: int, words: str) -> None:
    story = subscribed()
    story.sends(at)
    assert words in story.why("s", "t").verdict


def test_the_retained_message_counts_for_one_that_came_too_early() -> None:
    story = subscribed()
    story.sends(2, retain=True)
    story.publish("2", 11, "t", 7, to_client=True, retain=True, client_id="s")
    chain = story.why("s", "t")
    assert chain.healthy
    assert "got the retained message at" in chain.verdict


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"retain_handling": 2}, "it asked for none (Retain Handling 2"),
        ({"share_name": "g", "topic_filter": "$share/g/t", "matching_filter": "t"}, "shared subscriptions get none"),
        ({}, "and sent none"),
    ],
)
def test_a_retained_message_that_did_not_come_is_told(more: dict[str, Any], words: str) -> None:
    story = subscribed(**more)
    story.sends(2, retain=True)
    assert any(
        "the server kept a retained message on it" in one and words in one for one in story.why("s", "t").remarks
    )


def test_a_cleared_retained_message_is_not_missed() -> None:
    story = subscribed()
    story.sends(2, retain=True)
    story.sends(3, retain=True, payload_bytes=0)
    assert not any("kept a retained" in one for one in story.why("s", "t").remarks)


def test_the_flag_of_live_messages_is_explained() -> None:
    story = subscribed()
    story.sends(20, to="2", retain=True)
    chain = story.why("s", "t")
    assert chain.healthy
    assert any("RETAIN 1 came with RETAIN 0, as specified" in one for one in chain.remarks)


def test_another_member_of_a_shared_subscription_got_it() -> None:
    story = subscribed(share_name="g", topic_filter="$share/g/t", matching_filter="t")
    story.connects("3", 6, client_id="other")
    story.subscribe("3", 11, "$share/g/t", client_id="other", share_name="g", matching_filter="t", granted_qos=1)
    story.sends(20, to="3")
    assert "sent to another member of its shared subscription (other)" in story.why("s", "t").verdict


def test_a_refused_subscription_is_the_cause() -> None:
    story = subscribed(granted_qos=None, error_code=0x87, error_name="Not authorized")
    story.sends(20)
    assert "published after the server refused (Not authorized) its SUBSCRIBE to t" in story.why("s", "t").verdict


def test_its_own_messages_are_left_out_where_it_asked_for_that() -> None:
    story = subscribed(no_local=True)
    story.publish("2", 20, "t", 7, client_id="s")
    assert "its own, which its subscription leaves out (no local)" in story.why("s", "t").verdict


@pytest.mark.parametrize(("alike", "words"), [(False, ", it on 2 connections"), (True, "not acknowledged")])
def test_one_message_on_several_connections_is_told_where_its_content_is_its_own(alike: bool, words: str) -> None:
    story = Story()
    story.connects("2", 5, 30)
    story.subscribe("2", 10, "t", client_id="s")
    for at in (20, 21) if alike else (20,):
        story.sends(at)
        story.publish("2", at + 1, "t", 7, to_client=True, client_id="s", handshake="no_puback")
    story.connects("3", 40, session_present=True)
    story.publish("3", 41, "t", 7, to_client=True, client_id="s", handshake="no_puback", dup=True)
    chain = story.why("s", "t")
    assert chain.verdict.endswith(words)
    assert any("closed the connection without DISCONNECT" in one for one in ends(chain))


def test_nothing_explains_it_names_what_was_tested() -> None:
    story = subscribed()
    story.sends(20)
    chain = story.why("s", "t")
    assert chain.verdict == "s@10.0.0.2 did not get the message on t: it was not sent by the server"
    assert ends(chain)[-1].startswith("not the cause, as these packets show: size limits, message expiry")


def test_a_refused_client_got_nothing() -> None:
    story = Story()
    story.connects("2", 5, 6, error_code=5, error_name="Not authorized")
    story.sends(20)
    assert story.why("s", "t").verdict == "the server refused 1 CONNECT of s@10.0.0.2: Not authorized"


def test_a_topic_that_nobody_published_on() -> None:
    story = subscribed()
    story.sends(20, "T")
    assert story.why("s", "t").verdict == (
        "nobody in this capture published on t; T is published on and differs by upper and lower case; "
        "s@10.0.0.2 subscribed to it"
    )


def test_the_client_may_come_last() -> None:
    story = subscribed()
    story.sends(20, to="2")
    chain = story.why("t", "s")
    assert chain.healthy
    assert "Read as client s and topic t: the client comes first." in chain.remarks


def test_who_is_not_there_is_refused() -> None:
    with pytest.raises(NoSubject):
        subscribed().why("nobody", "t")
    with pytest.raises(NoSubject):
        subscribed().why("s", "u")


@pytest.mark.skipif(not KNOWN_INCIDENTS.exists(), reason="captures of others are not here")
@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        (
            "r10_qos0_while_away.pcapng.zst",
            ("panel-7", "cmd/light"),
            "got 1 of 6 messages on cmd/light: 5 were published",
        ),
        ("hm_qos0_lasting.pcap.zst", ("fridge-1", "cmd/fridge-1"), "and its subscription has QoS 0"),
        ("r11_healthy_retain_flag.pcapng.zst", ("hass", "home/door/state"), "nothing is wrong: 3 messages"),
    ],
)
def test_captures_of_others(name: str, words: tuple[str, str], said: str) -> None:
    analysis = wirewitness.read(str(Path(KNOWN_INCIDENTS / name)), tables=WHY_TABLES)
    (chain,) = answer(Asking(analysis), words)
    assert said in chain.verdict
