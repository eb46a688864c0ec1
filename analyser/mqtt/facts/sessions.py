"""What is known of clients at an MQTT server: subscriptions of open connections, and of those that may come back.

In: what was granted and given up. Out: which subscriptions of one connection match a topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.mqtt.facts.topics import FilterTrie

_REMEMBERED_TOPICS = 1000


@dataclass(slots=True)
class Subscription:
    """A filter that was granted, with its options."""

    topic_filter: str
    share_name: str | None
    no_local: bool
    retain_as_published: bool
    qos: int = 0


class Matching(NamedTuple):
    """By which of its filters a connection gets a topic.

    targets: who is waited for, see `pending_publishes.py`. retain_as_published: does any of them ask for that?
    """

    targets: list[int | tuple[str, str]]
    retain_as_published: bool


NO_SUBSCRIPTION = Matching([], False)


@dataclass(slots=True)
class OpenFlow:
    """An open connection: its client, the server's port, and its subscriptions by (filter, share name)."""

    flow: int
    client: str | None
    port: int
    subscriptions: dict[tuple[str, str | None], Subscription] = field(default_factory=dict)
    by_topic: dict[str, Matching] = field(default_factory=dict)
    filters: FilterTrie[tuple[str, str | None]] = field(default_factory=FilterTrie)

    def matching(self, topic: str) -> Matching:
        """Its subscriptions whose filter matches the topic."""
        found = self.by_topic.get(topic)
        if found is None:
            if len(self.by_topic) >= _REMEMBERED_TOPICS:
                self.by_topic.clear()
            some = [self.subscriptions[key] for _, key in self.filters.match(topic)]
            found = self.by_topic[topic] = Matching(
                [self.flow if one.share_name is None else (one.share_name, one.topic_filter) for one in some],
                any(one.retain_as_published for one in some),
            )
        return found

    def add(self, subscription: Subscription) -> None:
        """One more, or the same filter with other options."""
        key = subscription.topic_filter, subscription.share_name
        self.subscriptions[key] = subscription
        self.filters.add(subscription.topic_filter, key)
        self.by_topic.clear()

    def drop(self, key: tuple[str, str | None]) -> bool:
        """It is given up; False where there was none."""
        self.filters.remove(key[0], key)
        self.by_topic.clear()
        return self.subscriptions.pop(key, None) is not None


class Away(NamedTuple):
    """A client without a connection: its last flow, since when, and what it was subscribed to."""

    flow: int
    since_ns: int
    subscriptions: dict[tuple[str, str | None], Subscription]
