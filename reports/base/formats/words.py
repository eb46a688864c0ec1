"""Numbers in words of a report: counts, sizes, spans, lists of packets and partitions. In: numbers; out: short text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from wirewitness.analyser.base.words import count

_TOPICS_LISTED = 20
_UNITS = (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000))


def rate(per_second: float) -> str:
    """`1,204.5`, `3.1`, and of what is rare `0.011`: never 0 for what happened."""
    return f"{per_second:,.1f}" if per_second >= 0.1 or per_second <= 0 else f"{per_second:.2g}"


def size(number_bytes: int) -> str:
    """Bytes in the largest decimal unit that leaves a whole digit."""
    for unit, scale in _UNITS:
        if number_bytes >= scale:
            return f"{number_bytes / scale:.1f} {unit}"
    return count(number_bytes, "byte")


def span(duration_ns: int) -> str:
    """A duration in at most two units."""
    seconds = duration_ns / 1e9
    if seconds < 60:
        return f"{seconds:.3f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def share(part: int, whole: int) -> str:
    """A percentage without decimals that is 0 or 100 only when it is exactly that."""
    if whole == 0:
        return "none"
    percent = 100 * part / whole
    if 0 < part < whole:
        percent = min(max(percent, 1), 99)
    return f"{percent:.0f} %"


def ranges(numbers: Iterable[int], dash: str = "-", at_least: int = 3) -> list[str]:
    """Numbers with runs of `at_least` or more neighbours written as first-last."""
    parts: list[str] = []
    for _, run in groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0]):
        values = [value for _, value in run]
        if len(values) >= at_least:
            parts.append(f"{values[0]}{dash}{values[-1]}")
        else:
            parts.extend(map(str, values))
    return parts


def partition_list(partitions: Sequence[tuple[str, int]]) -> str:
    """`orders 0-3, 7; payments 2` for (topic, partition) pairs."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts = [f"{topic} {', '.join(ranges(numbers))}" for topic, numbers in by_topic.items()]
    more = [f"{count(len(parts) - _TOPICS_LISTED, 'more topic')}"] if len(parts) > _TOPICS_LISTED else []
    return "; ".join(parts[:_TOPICS_LISTED] + more)


def display_filter(packets: Sequence[int]) -> str:
    """Wireshark display filter for these packets of one file."""
    return f"frame.number in {{{', '.join(ranges(packets, dash='..'))}}}"


# A sentence ends before a capital letter; names with points in them go on in small letters or without a space.
_SENTENCE_END = re.compile(r"(?<=[^\s.])\. (?=[A-Z])")


def first_sentence(text: str, most: int) -> str:
    """The first sentence, cut behind a word where it has more than `most` characters."""
    first = _SENTENCE_END.split(text, maxsplit=1)[0]
    first = first if first.endswith(".") else f"{first}."
    if len(first) <= most:
        return first
    return f"{first[:most].rsplit(' ', 1)[0].rstrip(',;:')} …"
