"""Topics as a tree: levels add up, branches without a fork are one row, wide and deep trees stay small."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.protocols.mqtt.questions.topics import (
    MOST_OPEN,
    MOST_ROWS,
    Level,
    below,
    publish_before,
    publishes,
    topic_tree,
    topics,
)

SECOND_NS = 1_000_000_000
START_NS = 1_790_000_000_000_000_000


def publish(number: int, topic: str | None, **more: object) -> dict[str, object]:
    return {
        "message_id": f"m{number:06}", "topic": topic, "ts": START_NS + number * SECOND_NS, "packet": number,
        "direction": "client_to_server", "client_id": "c", "flow_id": "f", "file": "a", "qos": 0, "retain": False,
        "payload_bytes": 10, "payload_crc32": number,
    } | more  # fmt: skip


def source(named: Sequence[str | None]) -> RowsAnalysis:
    return RowsAnalysis({"mqtt_publishes": [publish(number, topic) for number, topic in enumerate(named)]})


def labels(level: Level) -> list[tuple[str, str, bool]]:
    return [(row.label, row.branch, row.deeper) for row in level.rows]


def test_branches_without_a_fork_are_one_row() -> None:
    named = ["house/kitchen/hum", "house/kitchen/temp", "house/kitchen/temp", "garden", "a/b/c/d"]
    tree = topic_tree(source(named), ["house/kitchen/"], SECOND_NS, order="segment")
    assert labels(tree[""]) == [
        ("a/b/c/d", "a/b/c/d/", False), ("garden", "garden/", False), ("house/kitchen", "house/kitchen/", True)
    ]  # fmt: skip
    assert labels(tree["house/kitchen/"]) == [
        ("hum", "house/kitchen/hum/", False),
        ("temp", "house/kitchen/temp/", False),
    ]
    assert [row.facts["published"] for row in tree["house/kitchen/"].rows] == [1, 2]
    assert tree[""].rows[2].facts["topics"] == 2


def test_a_topic_in_the_place_of_a_branch_and_empty_levels_have_rows() -> None:
    named = ["house", "house/a", "/x", "/y", "b//1", "b//2", "b/"]
    tree = topic_tree(source(named), ["house/", "/", "b//", "b/"], SECOND_NS, order="segment")
    assert labels(tree[""]) == [("", "/", True), ("b/", "b//", True), ("house", "house/", True)]
    assert labels(tree["/"]) == [("x", "/x/", False), ("y", "/y/", False)]
    assert labels(tree["b//"]) == [("1", "b//1/", False), ("2", "b//2/", False)]
    assert labels(tree["house/"]) == [("a", "house/a/", False)]
    inside = source(named).sql(publishes("house/")).column("topic").to_pylist()
    assert sorted(inside) == ["house", "house/a"]


@given(st.lists(st.text(alphabet="ab/é", min_size=0, max_size=7), min_size=1, max_size=30))
def test_every_topic_lies_on_one_way_from_the_top(named: list[str]) -> None:
    """Opening branch after branch finds each topic once, in its own place; figures of a branch are those below it."""
    told = source(named)
    found: list[str] = []
    waiting = [""]
    while waiting:
        branch = waiting.pop()
        level = topic_tree(told, [branch], SECOND_NS)[branch]
        assert level.total == len(level.rows)
        for row in level.rows:
            assert row.branch == f"{branch}{row.label}/"
            below_it = [one for one in set(named) if one == row.branch[:-1] or one.startswith(row.branch)]
            assert row.facts["topics"] == len(below_it)
            assert row.deeper == any(one.startswith(row.branch) for one in below_it)
            found += [one for one in below_it if one == row.branch[:-1]]
            if row.deeper:
                waiting.append(row.branch)
    assert sorted(found) == sorted(set(named))


def test_a_wide_tree_tells_the_first_rows_and_how_many_there_are() -> None:
    tree = topic_tree(source([f"n{number}/x" for number in range(500)]), [], SECOND_NS)
    assert (len(tree[""].rows), tree[""].total) == (MOST_ROWS, 500)
    found = topic_tree(source([f"n{number}/x" for number in range(500)]), [], SECOND_NS, containing="N499")
    assert labels(found[""]) == [("n499/x", "n499/x/", False)]


def test_a_deep_tree_is_one_row_until_it_forks() -> None:
    deep = "/".join("x" * 1_000)
    tree = topic_tree(source([f"{deep}/1", f"{deep}/2"]), [], SECOND_NS)
    assert labels(tree[""]) == [(deep, f"{deep}/", True)]
    assert len(topic_tree(source([deep]), [f"{number}/" for number in range(10 * MOST_OPEN)], SECOND_NS)) == 1


def test_topics_are_listed_with_the_same_figures() -> None:
    listed = source(["a/b", "a/b", "a/c", "d"]).sql(topics("a/", 2 * SECOND_NS)).to_pylist()
    assert {row["topic"]: (row["published"], row["per_second"], row["branch"]) for row in listed} == {
        "a/b": (2, 1.0, "a/b/"), "a/c": (1, 0.5, "a/c/"),
    }  # fmt: skip
    assert (below(""), below("a"), below("a/"), below("/")) == ("", "a/", "a/", "/")


def test_the_message_before_is_of_the_same_topic_and_way() -> None:
    to_client = {"direction": "server_to_client"}
    told = RowsAnalysis({
        "mqtt_publishes": [
            publish(1, "t"), publish(2, "t", first_message_id="m000001"), publish(3, "other"), publish(4, "t"),
            publish(5, "t", flow_id="x", **to_client), publish(6, "t", flow_id="y", **to_client),
            publish(7, "t", flow_id="x", payload_crc32=5, **to_client), publish(8, None), publish(9, None),
        ]
    })  # fmt: skip
    before = publish_before(told, "m000004")
    assert before is not None
    assert (before["message_id"], before["same"], before["apart_ns"]) == ("m000001", False, 3 * SECOND_NS)
    before = publish_before(told, "m000007")
    assert before is not None
    assert (before["message_id"], before["same"]) == ("m000005", True)
    assert [publish_before(told, one) for one in ("m000001", "m000006", "m000009", "' or 1=1 --")] == [None] * 4
