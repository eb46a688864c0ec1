"""Strings of MQTT: bytes to text, and which rules they break.

In: the bytes of a UTF-8 encoded string. Out: text that can always be shown, and codes of `rules.RULES`. Sources:
MQTT 3.1 section 2.5, MQTT 3.1.1 section 1.5.3, MQTT 5.0 section 1.5.4.
"""

from __future__ import annotations

import re

# U+0001 to U+001F, U+007F to U+009F, and the non-characters: they should not be sent.
_UNWANTED = re.compile("[\x01-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]|[" + "".join(
    chr(plane * 0x10000 + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF)
) + "]")  # fmt: skip
_WILDCARD = re.compile("[+#]")


def string(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, bytes that are no UTF-8 as \\xNN, and the rules it breaks."""
    if raw.isascii():
        text = raw.decode("ascii")
        if text.isprintable():
            return text, ()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), ("invalid_utf8",)
    problems = []
    if "\0" in text:
        problems.append("null_character")
    if _UNWANTED.search(text):
        problems.append("control_character")
    return text, tuple(problems)


def topic_problems(topic: str) -> tuple[str, ...]:
    """Rules that a topic name breaks. An empty one may stand for an alias, so that is the caller's affair."""
    return ("wildcard_in_topic",) if _WILDCARD.search(topic) else ()


def split_filter(topic_filter: str) -> tuple[str | None, str]:
    """(share name, what topics are matched with). The share name is None where the filter is not a shared one.

    Shared subscriptions belong to 5.0 (section 4.8.2); brokers take them from older clients too.
    """
    if not topic_filter.startswith("$share/"):
        return None, topic_filter
    share_name, slash, rest = topic_filter[7:].partition("/")
    return (share_name, rest) if slash else (None, topic_filter)


def filter_problems(topic_filter: str) -> tuple[str, ...]:
    """Rules that a topic filter breaks."""
    if not topic_filter:
        return ("empty_filter",)
    share_name, matching = split_filter(topic_filter)
    problems = []
    if topic_filter.startswith("$share/"):
        if share_name is None or not matching or _WILDCARD.search(share_name):
            problems.append("malformed_share")
        elif not share_name:
            problems.append("empty_share_name")
    levels = matching.split("/")
    if any("#" in level and (level != "#" or place != len(levels) - 1) for place, level in enumerate(levels)):
        problems.append("malformed_hash_filter")
    if any("+" in level and level != "+" for level in levels):
        problems.append("malformed_plus_filter")
    return tuple(problems)
