"""The filters of all clients of an MQTT server, within what memory has room for.

In: what was granted and given up. Out: the subscriptions that match a topic, the members of shared ones.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.memory import Memory, filter_bytes
from wirewitness.analyser.mqtt.facts.topics import FilterTrie

_REMEMBERED_TOPICS = 1000
_REMEMBERED_MATCHES = 100  # of one topic; more are looked for each time, so memory stays small

# A flow and, of a shared subscription, its name.
Key = tuple[int, str | None]
# The name of a shared subscription and its filter.
Group = tuple[str, str]


class Filters:
    """Subscriptions by filter.

    lacks: some are missing, so that it is not known how many should get a message. lacks_members: so are members of a
    group, so that nobody is waited for. members: flows of each group.
    count: how many there are.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._trie: FilterTrie[Key] = FilterTrie()
        self._matching: dict[str, list[tuple[str, Key]]] = {}  # by topic, until the trie changes
        self.members: dict[Group, dict[int, None]] = {}
        self.lacks = self.lacks_members = False
        self.count = 0

    def match(self, topic: str) -> tuple[list[tuple[str, Key]], int]:
        """Filters that match the topic, with their subscriptions, and the steps of work that it took."""
        found = self._matching.get(topic)
        if found is not None:
            return found, 0
        visited = self._trie.visited
        found = list(self._trie.match(topic))
        steps = self._trie.visited - visited + len(found)
        if len(self._matching) >= _REMEMBERED_TOPICS:
            self._matching.clear()
        if len(found) <= _REMEMBERED_MATCHES:
            self._matching[topic] = found
        return found, steps

    def forget_matches(self) -> None:
        """They are looked for anew."""
        self._matching.clear()

    def add(self, flow: int, topic_filter: str, share_name: str | None, again: bool) -> bool:
        """A connection's filter; again: it is known. False where there is no room for it."""
        if not again and not self._has_room(topic_filter, (flow, share_name)):
            self.lacks = True
            self.lacks_members |= share_name is not None
            return False
        self._matching.clear()
        if share_name is not None:
            self.members.setdefault((share_name, topic_filter), {})[flow] = None
        return True

    def remove(self, flow: int, topic_filter: str, share_name: str | None) -> bool:
        """It is given up. True where nobody is left for whom a message can wait by it."""
        self._trie.remove(topic_filter, (flow, share_name))
        self.count = len(self._trie)
        self._memory.take_lasting(-filter_bytes(topic_filter))
        self._matching.clear()
        if share_name is None:
            return True
        group = (share_name, topic_filter)
        members = self.members.get(group, {})
        members.pop(flow, None)
        if not members:
            self.members.pop(group, None)
        return not members

    def _has_room(self, topic_filter: str, key: Key) -> bool:
        """Put this filter into the tree; False where there is no room for it."""
        held = filter_bytes(topic_filter)
        if not self._memory.take_lasting(held):
            return False
        if self._trie.add(topic_filter, key):
            self.count = len(self._trie)
            return True
        self._memory.take_lasting(-held)
        return False
