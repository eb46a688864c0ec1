"""Topics that somebody meant to be one: which topic filter would match a topic but for case, a slash or one level.

In: a topic filter and a topic name. Out: words for the difference, or None.
"""

from __future__ import annotations

from wirewitness.dissectors.mqtt.filters import matches

# Shorter names of a level differ by two letters without being meant to be the same.
_LONG_LEVEL = 5
_MOST_LETTERS = 2
_MOST_LEVEL_CHARS = 64
# Nobody counts more levels by hand, and comparing them takes their square.
_MOST_LEVELS = 32


def plain_difference(topic_filter: str, topic: str) -> str | None:
    """What nobody does on purpose: other case, a slash too many or too few, blanks."""
    if topic.startswith("$") or matches(topic_filter, topic):
        return None
    if matches(topic_filter.casefold(), topic.casefold()):
        return "upper and lower case"
    levels, wanted = _without_empty(topic), _without_empty(topic_filter)
    if matches(wanted, levels):
        return "a slash"
    if matches(wanted.casefold(), levels.casefold()):
        return "a slash and case"
    return None


def level_difference(topic_filter: str, topic: str) -> str | None:
    """One level more or less, or one spelled in another way; ids of devices are no other way to spell."""
    if topic.startswith("$") or matches(topic_filter, topic):
        return None
    wanted, levels = topic_filter.split("/", _MOST_LEVELS), topic.split("/", _MOST_LEVELS)
    if max(len(wanted), len(levels)) > _MOST_LEVELS:
        return None
    if len(wanted) == len(levels):
        apart = [(w, t) for w, t in zip(wanted, levels, strict=True) if w not in ("+", t)]
        if len(apart) == 1 and "#" not in wanted and _misspelled(*apart[0]):
            return f"one level ({apart[0][0]} and {apart[0][1]})"
        return None
    if 1 < len(wanted) == len(levels) - 1 and any(matches(topic_filter, shorter) for shorter in _shorter(levels)):
        return "one level more in the topic"
    if 1 < len(levels) == len(wanted) - 1 and any(matches(shorter, topic) for shorter in _shorter(wanted)):
        return "one level more in the filter"
    return None


def _shorter(levels: list[str]) -> list[str]:
    """The name without one of its levels, each in turn; `#` is no level."""
    return ["/".join(levels[:n] + levels[n + 1 :]) for n in range(len(levels)) if levels[n] != "#"]


def _without_empty(name: str) -> str:
    return "/".join(level.strip() for level in name.split("/") if level.strip())


def _misspelled(one: str, other: str) -> bool:
    if min(len(one), len(other)) < _LONG_LEVEL or max(len(one), len(other)) > _MOST_LEVEL_CHARS:
        return False
    if any(letter.isdigit() for letter in one + other):
        return False
    return _distance(one.casefold(), other.casefold()) <= _MOST_LETTERS


def _distance(one: str, other: str) -> int:
    """Letters to insert, delete or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        corner, row[0] = row[0], number
        for place, against in enumerate(other, 1):
            corner, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, corner + (letter != against))
    return row[-1]
