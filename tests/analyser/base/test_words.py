"""Numbers and names in words."""

from __future__ import annotations

import pytest

from wirewitness.analyser.base.words import count, printable, sentence_start, times


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(count(1, "packet"), "1 packet", id="one"),
        pytest.param(count(2500, "packet"), "2,500 packets", id="many"),
        pytest.param(count(0, "flow"), "0 flows", id="none"),
        pytest.param(count(2, "query", "queries"), "2 queries", id="irregular plural"),
        pytest.param(times(1), "once", id="once"),
        pytest.param(times(2), "twice", id="twice"),
        pytest.param(times(1200), "1,200 times", id="many times"),
        pytest.param(sentence_start("client iPad at ?"), "Client iPad at ?", id="only the first letter changes"),
        pytest.param(printable("a\x1b[2J"), "a\\x1b[2J", id="escape"),
        pytest.param(printable("abcdef", 4), "abc…", id="cut"),
        pytest.param(printable("abcd", 4), "abcd", id="just fits"),
    ],
)
def test_words(shown: str, expected: str) -> None:
    assert shown == expected
