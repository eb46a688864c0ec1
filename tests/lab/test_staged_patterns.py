"""Patterns of incidents for which no code is known: what they take for named, and what is expected of a report."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.lab import net
from tests.lab.incidents.mongo import __main__ as mongo
from tests.lab.incidents.patterns import expected_of
from tests.lab.incidents.staged import Staged, name, saying

# As the judge of a set reads them: (?i) counts for the whole pattern.
SENTENCES = (
    ("Client sink-1 at 10.0.0.7 subscribes 60 times to one FILTER", True),
    ("Client sink-12 subscribes 60 times to one filter", False),
    ("Client sink-1.old subscribes 60 times to one filter", False),
    ("Client sink-1 acknowledges nothing", False),
    ("10.0.0.7 subscribes again to one filter", True),
)


@pytest.mark.parametrize(("sentence", "named"), SENTENCES)
def test_a_pattern_wants_the_culprit_and_what_it_did_in_any_order(sentence: str, named: bool) -> None:
    pattern = saying(name("sink-1", "10.0.0.7"), ["SUBSCRIBE", "again"], "filter")
    assert (re.search(pattern.replace("(?i)", ""), sentence, re.IGNORECASE) is not None) is named


def test_what_is_expected_is_what_the_truth_says(tmp_path: Path) -> None:
    it = Staged({"one": net.Host("one", "n0", "10.0.0.7")}, tmp_path, random.Random(1))
    it.healthy("nothing")
    assert expected_of(it.truth) == {"silent": True}
    it.ask("Q5", "a fault", it.who("one", "sink-1"), ["sink-1"], ["sink-2"])
    assert expected_of(it.truth) == {"named": ["sink-1"], "not_named": ["sink-2"]}
    assert (it.truth["question"], it.truth["expected"]) == ("Q5", ())
    it.ask("Q5", "a fault", it.who("one", "sink-1"), ["sink-1"])
    assert expected_of(it.truth) == {"named": ["sink-1"]}
    codes = Staged(it.hosts, tmp_path, random.Random(1))
    codes.blame("a fault", codes.who("one", "sink-1"), "MQT123")
    assert expected_of(codes.truth) is None


def test_incidents_by_question_have_names_of_their_own() -> None:
    every = (*mongo.FAULTS, *mongo.BY_QUESTION)
    assert len(mongo.KNOWN) == len(every)
    assert all((fault.__doc__ or "").rstrip().endswith(".") for fault in mongo.BY_QUESTION)
    assert set(mongo.ON_FERRETDB) | set(mongo.SERVER_WORDS) < set(mongo.BY_QUESTION)
