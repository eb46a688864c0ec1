"""Which topic filters match a topic name.

In: topic filters, each with keys of those who subscribed to it. Out: the (filter, key) pairs that match a topic.
Rules: MQTT 5.0 and 3.1.1, section 4.7: `+` stands for one level, `#` for the level it follows and all below, and
neither at the start matches a topic that begins with `$` [MQTT-4.7.2-1]. Matching costs the levels of the topic times
the nodes that fit so far; nothing recurses, so a topic of 32,767 levels is only slow. A filter of as many levels takes
as many nodes, so their number has a limit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

# Some 250 bytes each.
MAX_NODES = 500_000


@dataclass(slots=True)
class _Node(Generic[Key]):
    """A level: its children by text, and the keys whose filter ends here. `filter` is set where there are keys."""

    children: dict[str, _Node[Key]] = field(default_factory=dict)
    keys: dict[Key, None] = field(default_factory=dict)
    filter: str = ""


class FilterTrie(Generic[Key]):
    """Topic filters in a tree of at most `max_nodes` levels."""

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._root: _Node[Key] = _Node()
        self._size = 0
        self._nodes = 0
        self._max_nodes = max_nodes

    def __len__(self) -> int:
        """Pairs of filter and key."""
        return self._size

    def add(self, topic_filter: str, key: Key) -> bool:
        """The key subscribes to the filter; once more changes nothing. False where the tree has no room left."""
        levels = topic_filter.split("/")
        if self._nodes + len(levels) > self._max_nodes:
            return False
        node = self._root
        for level in levels:
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
                self._nodes += 1
            node = child
        if key not in node.keys:
            node.keys[key] = None
            node.filter = topic_filter
            self._size += 1
        return True

    def remove(self, topic_filter: str, key: Key) -> None:
        """The key leaves the filter; nothing happens when it had not subscribed."""
        levels = topic_filter.split("/")
        path = [self._root]
        for level in levels:
            child = path[-1].children.get(level)
            if child is None:
                return
            path.append(child)
        if key not in path[-1].keys:
            return
        del path[-1].keys[key]
        self._size -= 1
        for parent, level, node in zip(path[-2::-1], reversed(levels), path[:0:-1], strict=True):
            if node.children or node.keys:
                return
            del parent.children[level]
            self._nodes -= 1

    def match(self, topic: str) -> Iterator[tuple[str, Key]]:
        """Every (filter, key) whose filter matches the topic."""
        levels = topic.split("/")
        nodes = [self._root]
        special = topic.startswith("$")
        for place, level in enumerate(levels):
            after: list[_Node[Key]] = []
            for node in nodes:
                children = node.children
                if (child := children.get(level)) is not None:
                    after.append(child)
                if special and place == 0:
                    continue
                if (child := children.get("+")) is not None and level != "+":
                    after.append(child)
                if (child := children.get("#")) is not None:
                    for key in child.keys:
                        yield child.filter, key
            nodes = after
            if not nodes:
                return
        for node in nodes:
            for key in node.keys:
                yield node.filter, key
            # The parent level of `#` matches too: sport/# is about sport as well.
            if (child := node.children.get("#")) is not None:
                for key in child.keys:
                    yield child.filter, key
