"""A share of the tests that prove the same for many cases. CI runs another share for each commit: it ends in time, and
all of them run within a few commits.

In: the tests that pytest found, and the share, `WIREWITNESS_SHARE=K/N` (`make test-all SHARE=K/N`). Out: the tests
without the other shares' cases.
"""

from __future__ import annotations

import os
from zlib import crc32

import pytest

VARIABLE = "WIREWITNESS_SHARE"
# What these marks say is in pyproject.toml.
_MARKS = ("exhaustive", "cases")


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases of other shares; without the variable all stay. Raises UsageError for what is no share."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    number, count = share(text)
    others = [item for item in items if _is_case(item) and crc32(item.nodeid.encode()) % count != number - 1]
    if others:
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


def share(text: str) -> tuple[int, int]:
    """`2/3` as (2, 3): the second of three. Raises UsageError."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"{VARIABLE} is K/N, K from 1 to N, as in 2/3; it is {text!r}")
    return int(number), int(count)


def _is_case(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in _MARKS)
