"""Which topic filters match a topic name.

In: topic filters, each with keys of those who subscribed to it. Out: the (filter, key) pairs that match a topic.
Rules: MQTT 5.0 and 3.1.1, section 4.7: `+` stands for one level, `#` for the level it follows and all below, and
neither at the start matches a topic that begins with `$` [MQTT-4.7.2-1]. Matching costs the levels of the topic times
the nodes that fit so far; nothing recurses, so a topic of 32,767 levels is only slow. A filter of as many levels takes
as many nodes, so their number has a limit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

# Some 200 bytes each.
MAX_NODES = 500_000
_ROOT = 0


class FilterTrie(Generic[Key]):
    """Topic filters in a tree of at most `max_nodes` levels.

    Nodes are numbers, in one table of edges: millions of small objects would be looked at by the garbage collector
    again and again.
    """

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._edges: dict[tuple[int, str], int] = {}
        self._children: dict[int, int] = {_ROOT: 0}  # how many a node has
        self._ends: dict[int, tuple[str, dict[Key, None]]] = {}  # filters that end at a node, with their keys
        self._next = _ROOT + 1
        self._size = 0
        self.visited = 0
        self._max_nodes = max_nodes

    def __len__(self) -> int:
        """Pairs of filter and key."""
        return self._size

    def add(self, topic_filter: str, key: Key) -> bool:
        """The key subscribes to the filter; once more changes nothing. False where the tree has no room left."""
        levels = topic_filter.split("/")
        if len(self._edges) + len(levels) > self._max_nodes:
            return False
        node = _ROOT
        for level in levels:
            child = self._edges.get((node, level))
            if child is None:
                child = self._edges[node, level] = self._next
                self._next += 1
                self._children[node] += 1
                self._children[child] = 0
            node = child
        _, keys = self._ends.setdefault(node, (topic_filter, {}))
        if key not in keys:
            keys[key] = None
            self._size += 1
        return True

    def remove(self, topic_filter: str, key: Key) -> None:
        """The key leaves the filter; nothing happens when it had not subscribed."""
        levels = topic_filter.split("/")
        path = [_ROOT]
        for level in levels:
            child = self._edges.get((path[-1], level))
            if child is None:
                return
            path.append(child)
        _, keys = self._ends.get(path[-1], ("", {}))
        if key not in keys:
            return
        del keys[key]
        self._size -= 1
        if not keys:
            del self._ends[path[-1]]
        for parent, level, node in zip(path[-2::-1], reversed(levels), path[:0:-1], strict=True):
            if self._children[node] or node in self._ends:
                return
            del self._edges[parent, level], self._children[node]
            self._children[parent] -= 1

    def match(self, topic: str) -> Iterator[tuple[str, Key]]:
        """Every (filter, key) whose filter matches the topic. `visited` counts the nodes that are looked at."""
        edges = self._edges
        if not edges:
            return
        levels, nodes = topic.split("/"), [_ROOT]
        special = topic.startswith("$")
        for place, level in enumerate(levels):
            after: list[int] = []
            for node in nodes:
                if (child := edges.get((node, level))) is not None:
                    after.append(child)
                if special and place == 0:
                    continue
                if level != "+" and (child := edges.get((node, "+"))) is not None:
                    after.append(child)
                if (child := edges.get((node, "#"))) is not None:
                    yield from self._ending(child)
            nodes = after
            self.visited += len(nodes)
            if not nodes:
                return
        for node in nodes:
            yield from self._ending(node)
            # The parent level of `#` matches too: sport/# is about sport as well.
            if (child := edges.get((node, "#"))) is not None:
                yield from self._ending(child)

    def _ending(self, node: int) -> Iterator[tuple[str, Key]]:
        """The filter that ends at this node, with each of its keys."""
        if node in self._ends:
            topic_filter, keys = self._ends[node]
            for key in keys:
                yield topic_filter, key
