"""Items made ahead: the same ones, one while another is used, and nothing is lost of what goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from wirewitness.analyser.analysis.decoded_rows import ahead


def test_items_come_in_their_order_and_end() -> None:
    assert list(ahead(iter(range(100)))) == list(range(100))
    assert list(ahead(iter([]))) == []
    assert list(ahead(iter([None, None]))) == [None, None]


def test_one_is_made_while_the_one_before_is_used() -> None:
    begun = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        begun.set()
        yield 2

    made = ahead(items())
    assert next(made) == 1
    assert begun.wait(60)
    assert list(made) == [2]


def test_no_more_than_one_is_made_in_advance() -> None:
    count = 0

    def items() -> Iterator[int]:
        nonlocal count
        for number in range(10):
            count += 1
            yield number

    made = ahead(items())
    next(made)
    made.close()  # type: ignore[attr-defined]
    assert count == 2


def test_what_is_raised_is_raised_in_its_turn() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("the second")

    made = ahead(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="the second"):
        next(made)


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    made = ahead(iter(range(5)))
    next(made)
    made.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
