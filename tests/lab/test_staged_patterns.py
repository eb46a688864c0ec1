"""Patterns of incidents for which no code is known: what they take for named, and what is expected of a report."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lab import net
from tests.lab.incidents import expect, told
from tests.lab.incidents.mongo import __main__ as mongo
from tests.lab.incidents.staged import Staged
from tests.lab.incidents.told import called, saying

# As the judge of a set reads them: (?i) counts for the whole pattern.
SENTENCES = (
    ("Client sink-1 at 10.0.0.7 subscribes 60 times to one FILTER", True),
    ("Client sink-12 subscribes 60 times to one filter", False),
    ("Client sink-1.old subscribes 60 times to one filter", False),
    ("Client sink-1 acknowledges nothing", False),
    ("10.0.0.7 subscribes again to one filter", True),
)
ACCUSED = (
    ("MQT123 Client gauge-7 at 10.0.0.7 repeats itself", True),
    ("MQT123 Application gauge-7 repeats itself", True),
    ("MQT123 Client sink-1 repeats itself; its peer gauge-7 does not", False),
    ("MQT123 Client gauge-77 repeats itself", False),
)


@pytest.mark.parametrize(("sentence", "named"), SENTENCES)
def test_a_pattern_wants_the_culprit_and_what_it_did_in_any_order(sentence: str, named: bool) -> None:
    pattern = saying(called("sink-1", "10.0.0.7"), ["SUBSCRIBE", "again"], "filter")
    assert (re.search(pattern.replace("(?i)", ""), sentence, re.IGNORECASE) is not None) is named


def expected(it: Staged, beside: int = 0) -> dict[str, Any] | None:
    return expect.expected(it.story("made", (0, 1, 2), beside))


def test_what_is_expected_is_what_the_truth_says(tmp_path: Path) -> None:
    it = Staged({"one": net.Host("one", "n0", "10.0.0.7")}, tmp_path, random.Random(1))
    it.healthy("nothing")
    assert expected(it) == {"silent": True}
    it.ask("Q5", "a fault", it.who("one", "sink-1"), ["sink-1"], ["sink-2"])
    assert expected(it) == {"named": ["sink-1"], "not_named": [told.in_sentence("sink-2")]}
    assert (it.truth["question"], it.truth["expected"]) == ("Q5", ())
    it.ask("Q5", "a fault", it.who("one", "sink-1"), ["sink-1"])
    assert expected(it) == {"named": ["sink-1"]}
    it.blame("a fault", it.who("one", "sink-1"), "MQT123")
    it.truth.pop("must_say")
    assert expected(it) is None


def test_nobody_without_a_part_in_it_may_be_accused(tmp_path: Path) -> None:
    it = Staged({"one": net.Host("one", "n0", "10.0.0.7")}, tmp_path, random.Random(1))
    it.clients = [it.who("one", "gauge-7"), it.who("one", "sink-1")]
    it.ask("Q5", "a fault", it.who("one", "sink-1"), ["sink-1"])
    found = expected(it, beside=1)
    assert found is not None
    [forbidden] = found["not_named"]
    for sentence, accused in ACCUSED:
        assert (re.search(forbidden.replace("(?i)", ""), sentence, re.IGNORECASE) is not None) is accused
    it.truth["cluster_wide"] = True
    assert expected(it, beside=1) == {"named": ["sink-1"]}


def test_incidents_by_question_have_names_of_their_own() -> None:
    every = (*mongo.FAULTS, *mongo.BY_QUESTION)
    assert len(mongo.KNOWN) == len(every)
    assert all((fault.__doc__ or "").rstrip().endswith(".") for fault in mongo.BY_QUESTION)
    assert set(mongo.ON_FERRETDB) | set(mongo.SERVER_WORDS) < set(mongo.BY_QUESTION)
