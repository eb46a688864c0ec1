"""Frozen or cut off: rules that tell of a silent member say what TCP tells, in real captures of both."""

from __future__ import annotations

from functools import cache

import pytest

import wirewitness
from tests.conftest import SAMPLES

INCIDENTS = SAMPLES / "incidents"


@cache
def told(name: str) -> dict[str, tuple[str, str]]:
    """The sentence and the next step of each rule."""
    with wirewitness.read(INCIDENTS / name / "capture.pcapng.zst") as analysis:
        found = analysis.findings()
    return {
        row.code: (row.sentence, row.next_step) for row in found.itertuples() if "client=report_cfa8" not in row.subject
    }


@pytest.mark.parametrize("code", ["KAF127", "KAF126", "KAF111"])
def test_a_client_whose_network_was_gone(code: str) -> None:
    sentence, step = told("link_down-2")[code]
    assert "cut off from the network" in sentence
    assert "garbage collection" not in step
    assert "link, switch" in step


@pytest.mark.parametrize("code", ["KAF127", "KAF111"])
def test_a_client_whose_process_was_frozen(code: str) -> None:
    sentence, step = told("member_frozen-6")[code]
    assert "process stood still, not the network" in sentence
    assert "garbage collection" in step
    assert "switch" not in step


def test_the_time_without_a_word_is_that_before_it_came_back() -> None:
    assert "after 13.9 s without a request to its group" in told("link_down-2")["KAF127"][0]
