"""The judge reads which side a sentence blames: what the rules say, and what a wrong side is worth."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios import FIRES
from tests.conftest import ROOT
from tests.lab.incidents.judge import truths_of_two
from tests.lab.incidents.sides import BLAMES, blamed, guilty, wrong_side
from tests.lab.incidents.verdict import Said, verdict
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.running import run

CLIENT = {"client_id": "shop", "address": "10.3.0.1"}
SERVER = {"server": "10.3.0.9:27017"}
FROZEN = "10.3.0.9:27017 stood still for 3.0 s: it replied to nobody. Those who waited: shop at 10.3.0.1."
DROPPED = "The connection of shop at 10.3.0.1 to 10.3.0.9:27017 was dropped in between while idle."


def truth_of(culprit: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "fault": "something",
        "healthy": False,
        "culprit": culprit,
        "expected": ["MON116", "NET101"],
        "allowed": ["MON101"],
        "affected": {"clients": [CLIENT], "groups": []},
        "member_ids": {},
        "facts": {"broker": {"clients": ["shop@10.3.0.1"]}},
        **changes,
    }


def said(sentence: str, code: str = "MON116", severity: str = "warning") -> Said:
    return Said(code, severity, sentence, sentence)


# Rules whose words stand in no one place of their source.
PUT_TOGETHER = ("TCP102", "TCP106", "MQT104")


BLAMED = [
    pytest.param(FROZEN, {"server"}, id="the server"),
    pytest.param(DROPPED, {"network"}, id="the network"),
    pytest.param("All connections were taken: requests wait in the application for a free connection.", {"client"},
                 id="the client"),
    pytest.param("It hung. The server's TCP never ACKed them: they were lost on the way, or the host was gone.",
                 {"network", "server"}, id="either"),
    pytest.param("The client of the connection between a and b advertised a zero window for 4 ms.", {"client"},
                 id="the side is said"),
    pytest.param("The server of the connection between a and b advertised a zero window for 4 ms.", {"server"},
                 id="the other side is said"),
    pytest.param("It answered nothing: no request followed: its process stood still, not the network.", {"client"},
                 id="not the network"),
    pytest.param("At 10.3.0.9:27017, find on shop.orders took longer than 100 ms once.", set(), id="nobody"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "sides"), BLAMED)
def test_a_sentence_blames_sides(sentence: str, sides: set[str]) -> None:
    assert blamed(sentence) == sides


def test_truths_say_whose_side_it_is() -> None:
    assert guilty(truth_of(CLIENT)) == {"client"}
    assert guilty(truth_of({"any": [CLIENT]})) == {"client"}
    assert guilty(truth_of(SERVER)) == {"server"}
    assert guilty(truth_of(CLIENT, sides=["network"])) == {"network"}
    assert guilty(truth_of({"topic": "a", "partition": 1})) == set()


JUDGED = [
    pytest.param(truth_of(SERVER), [said(FROZEN)], "named first", 0, id="right"),
    pytest.param(truth_of(CLIENT), [said(FROZEN)], "misled", 1, id="the client did it"),
    pytest.param(truth_of(CLIENT, sides=["network"]), [said(FROZEN)], "misled", 1, id="the network did it"),
    pytest.param(truth_of(CLIENT), [said(DROPPED, "NET101")], "misled", 1, id="the network did not"),
    pytest.param(truth_of(CLIENT, sides=["network"]), [said(DROPPED, "NET101")], "named first", 0, id="it did"),
    pytest.param(truth_of(CLIENT), [said("shop is slow"), said(FROZEN)], "named first", 0, id="only what is first"),
    pytest.param(truth_of(CLIENT), [said(FROZEN, "CAP101"), said("shop is slow")], "named first", 0, id="the capture"),
    pytest.param(truth_of(CLIENT), [said(FROZEN, severity="info")], "named first", 0, id="info accuses nobody"),
    pytest.param(truth_of({"topic": "a", "partition": None}), [said(FROZEN)], "named first", 0, id="not known whose"),
]


@pytest.mark.parametrize(("truth", "findings", "result", "wrong"), JUDGED)
def test_the_wrong_side_is_a_wrong_accusation(
    truth: dict[str, Any], findings: list[Said], result: str, wrong: int
) -> None:
    found = verdict("x", truth, findings)
    assert (found.result, len(found.wrong)) == (result, wrong)
    loud = [one for one in findings if one.severity != "info" and not one.code.startswith("CAP")]
    assert len(found.right) == len(loud) - wrong


def test_a_wrong_side_is_counted_for_the_rule() -> None:
    (reason,) = verdict("x", truth_of(CLIENT), [said(FROZEN)]).wrong
    assert reason == f"MON116 blames the server, not the client: {FROZEN}"
    assert wrong_side({**truth_of(CLIENT), "healthy": True}, FROZEN) is None


def test_of_two_incidents_in_one_capture_each_side_is_right() -> None:
    both = {**truth_of(CLIENT, sides=["network"]), "second": truth_of(SERVER), "variant": "two"}
    findings = [said(FROZEN), said(DROPPED, "NET101")]
    assert [verdict("x", one, findings).wrong for one in truths_of_two(both)] == [[], []]
    assert verdict("x", both, findings).wrong != []


def texts_of(source: str) -> Iterator[str]:
    """The texts in a source, `{}` for what is filled in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """What rules say, and what stands in their sources, their pages left out."""
    scenarios = [one for one in FIRES if one.code in PUT_TOGETHER]
    told = [found.sentence for one in scenarios for found in run(connected(one), [RULES[one.code]])]
    sources = [path.read_text() for path in (ROOT / "analyser").rglob("*.py")]
    return [*told, *(text for source in sources for text in texts_of(source) if "How it decides" not in text)]


@pytest.mark.parametrize("words", [words for words, _ in BLAMES], ids=lambda words: words.pattern[:40])
def test_rules_still_say_these_words(words: re.Pattern[str], sentences: list[str]) -> None:
    assert any(map(words.search, sentences))
