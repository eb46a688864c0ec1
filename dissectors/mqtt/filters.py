"""Whether a topic filter matches a topic name.

In: both as text, the filter without a share name. Out: a truth value. Rules: MQTT 5.0 and 3.1.1, section 4.7: `+` is
one level, `#` the level it follows and all below, neither at the start matches a topic that begins with `$`.
"""

from __future__ import annotations


def matches(topic_filter: str, topic: str) -> bool:
    """Does one filter (without a share name) match a topic?"""
    if topic.startswith("$") and topic_filter[:1] in ("+", "#"):
        return False
    levels, wanted = topic.split("/"), topic_filter.split("/")
    for place, part in enumerate(wanted):
        if part == "#":
            return True
        if place >= len(levels) or part not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)
