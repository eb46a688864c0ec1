"""Topic filters: the examples of the specification, and the tree against matching one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.mqtt.facts.topics import FilterTrie
from wirewitness.dissectors.mqtt.filters import matches

# (filter, topic, does it match) of MQTT 5.0 section 4.7 and what follows from its rules.
CASES = [
    pytest.param("sport/tennis/player1/#", "sport/tennis/player1", True, id="multi level: the parent"),
    pytest.param("sport/tennis/player1/#", "sport/tennis/player1/ranking", True, id="multi level: a child"),
    pytest.param("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True, id="multi level: deeper"),
    pytest.param("sport/#", "sport", True, id="multi level: sport itself"),
    pytest.param("#", "sport/tennis", True, id="multi level alone"),
    pytest.param("sport/tennis/+", "sport/tennis/player1", True, id="single level"),
    pytest.param("sport/tennis/+", "sport/tennis/player1/ranking", False, id="single level: not deeper"),
    pytest.param("sport/+", "sport", False, id="single level: not the parent"),
    pytest.param("sport/+", "sport/", True, id="single level: an empty level"),
    pytest.param("+/+", "/finance", True, id="empty first level"),
    pytest.param("/+", "/finance", True, id="leading slash"),
    pytest.param("+", "/finance", False, id="one level is not two"),
    pytest.param("+/tennis/#", "sport/tennis", True, id="both wildcards"),
    pytest.param("#", "$SYS/uptime", False, id="$: not by a leading #"),
    pytest.param("+/monitor/Clients", "$SYS/monitor/Clients", False, id="$: not by a leading +"),
    pytest.param("$SYS/#", "$SYS/uptime", True, id="$: by name"),
    pytest.param("$SYS/monitor/+", "$SYS/monitor/Clients", True, id="$: wildcard behind the name"),
    pytest.param("$SYS/#", "$SYS", True, id="$: the parent"),
    pytest.param("ACCOUNTS", "Accounts", False, id="case counts"),
    pytest.param("a b/c", "a b/c", True, id="spaces"),
]


@pytest.mark.parametrize(("topic_filter", "topic", "expected"), CASES)
def test_matching(topic_filter: str, topic: str, expected: bool) -> None:
    trie: FilterTrie[int] = FilterTrie()
    trie.add(topic_filter, 1)
    assert matches(topic_filter, topic) is expected
    assert list(trie.match(topic)) == ([(topic_filter, 1)] if expected else [])


_LEVELS = st.sampled_from(["", "a", "b", "$SYS", "$x"])
_TOPICS = st.lists(_LEVELS, min_size=1, max_size=4).map("/".join)
_FILTERS = st.tuples(
    st.lists(st.sampled_from(["", "a", "b", "$SYS", "+"]), max_size=3), st.sampled_from(["a", "+", "#", "$x"])
).map(lambda parts: "/".join([*parts[0], parts[1]]))


@given(st.lists(st.tuples(_FILTERS, st.integers(0, 3))), st.lists(st.tuples(_FILTERS, st.integers(0, 3))), _TOPICS)
def test_tree_equals_one_by_one(added: list[tuple[str, int]], removed: list[tuple[str, int]], topic: str) -> None:
    trie: FilterTrie[int] = FilterTrie()
    held = dict.fromkeys(added)
    for pair in added:
        trie.add(*pair)
    for pair in removed:
        trie.remove(*pair)
        held.pop(pair, None)
    assert len(trie) == len(held)
    assert sorted(trie.match(topic)) == sorted(pair for pair in held if matches(pair[0], topic))


def test_what_is_removed_takes_no_memory() -> None:
    trie: FilterTrie[int] = FilterTrie()
    for number in range(100):
        trie.add(f"a/{number}/+/#", number)
        trie.remove(f"a/{number}/+/#", number)
    assert (trie._edges, trie._children, trie._ends) == ({}, {0: 0}, {})


def test_a_full_tree_takes_no_more_and_goes_on() -> None:
    trie: FilterTrie[int] = FilterTrie(max_nodes=10)
    assert trie.add("a/b/c", 1)
    assert not trie.add("/" * 20, 2)
    assert trie.add("a/b/d", 3)
    assert [key for _, key in trie.match("a/b/c")] == [1]


def test_a_topic_of_many_levels() -> None:
    trie: FilterTrie[int] = FilterTrie()
    trie.add("/" * 30_000 + "#", 1)
    trie.add("+/#", 2)
    assert {key for _, key in trie.match("/" * 32_000)} == {1, 2}
