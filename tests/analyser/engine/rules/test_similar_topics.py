"""Topics that somebody meant to be one."""

from __future__ import annotations

import pytest

from wirewitness.analyser.mqtt.rules.mqt118_no_messages import level_difference, plain_difference


@pytest.mark.parametrize(
    ("topic_filter", "topic", "difference"),
    [
        ("Plant/+/Temp", "plant/7/temp", "upper and lower case"),
        ("/plant/7", "plant/7", "a slash"),
        ("plant/7/", "plant/7", "a slash"),
        ("plant//7", "plant/7", "a slash"),
        ("plant/7 ", "plant/7", "a slash"),
        ("Plant/7/", "plant/7", "a slash and case"),
        ("plant/+", "plant/7", None),
        ("plant/8", "plant/7", None),
        ("$sys/load", "$SYS/load", None),
    ],
)
def test_differences_that_nobody_means(topic_filter: str, topic: str, difference: str | None) -> None:
    assert plain_difference(topic_filter, topic) == difference


@pytest.mark.parametrize(
    ("topic_filter", "topic", "found"),
    [
        ("plant/+", "plant/7/temp", True),
        ("site/plant/temp", "plant/temp", True),
        ("plant/temprature", "plant/temperature", True),
        ("cmd/device-7", "cmd/device-8", False),
        ("plant/heat", "plant/meat", False),
        ("plant/state", "plant/alarm", False),
        ("plant/7", "plant/7/a/b", False),
        ("#", "plant", False),
    ],
)
def test_differences_of_one_level(topic_filter: str, topic: str, found: bool) -> None:
    assert (level_difference(topic_filter, topic) is not None) == found


def test_long_names_are_compared_in_bounded_time() -> None:
    assert level_difference("a/" + "b" * 60_000, "a/" + "c" * 60_000) is None
    assert level_difference("/".join("a" * 30_000), "/".join("b" * 30_001)) is None
