"""What a finding is about, as values that two findings may have in common. In: a row of findings; out: `Facts`.

The keys are those of `numbers.py`, and those that rules from before them use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirewitness.analyser.base.times import NS_PER_MS, ns_of

Row = Mapping[str, Any]
Shared = tuple[str, Any]

# Error codes that whoever meets it gets, where the rule does not say so.
_MEETS = {"KAF316": [3, 100]}
_CHANGE = "KAF309"
# A finding about thousands of clients does not have all of them in common with others.
_MOST_VALUES = 200
# Kinds of values whose names say the same thing in one or in many.
_PLAIN = {
    "group": ("group", "groups"),
    "transactional_id": ("transactional_id", "transactional_ids"),
    "producer_id": ("producer_id", "producer_ids"),
    "flow": ("flow_id", "flows"),
    "server": ("server", "servers"),
    "replicas": ("waits_for_replicas",),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """cluster: None where it is not known. shared: (kind, value) pairs; `target` is where connections are to go,
    `host` the address of a server in trouble, `replicas` the cluster in which requests wait for a replica, `named` an
    address whose client id is known, `kept_in` the topic in which brokers keep what groups have stored, and each topic
    that a request changed, `capture` is in all.
    first_ns, last_ns: when it was the case, Unix time; None is unknown. culprits: the clients it names as those to look
    at; committers: member ids too."""

    cluster: str | None
    shared: frozenset[Shared]
    first_ns: int | None
    last_ns: int | None
    culprits: tuple[Shared, ...] = ()
    committers: frozenset[tuple[Any, ...]] = field(default_factory=frozenset)

    def of_kind(self, kind: str) -> frozenset[Any]:
        """Its values of one kind."""
        return frozenset(value for name, value in self.shared if name == kind)


def numbers_of(row: Row) -> Mapping[str, Any]:
    """The numbers of a row; none where its JSON is broken."""
    try:
        numbers = json.loads(row["numbers"] or "{}")
    except (TypeError, ValueError):
        return {}
    return numbers if isinstance(numbers, Mapping) else {}


def facts_of(row: Row, numbers: Mapping[str, Any]) -> Facts:
    """What this finding is about. row: times as Unix ns or None."""
    clients = list(_clients(numbers))
    victims = list(_listed(numbers, "victims"))
    own = [(name, client) for name, client in map(_client, clients) if client is not None]
    others = [(name, client) for name, client in map(_client, victims) if client is not None]
    shared = {*own, *others, *_addresses((*clients, *victims)), *_plain(numbers), *_places(numbers)}
    shared |= {("target", target) for target in _texts((numbers.get("advertised") or numbers.get("server"),))}
    shared |= {("flow", flow) for who in clients for flow in _texts((who.get("flow_id"), who.get("flows")))}
    shared |= {("host", server.rpartition(":")[0]) for server in _troubled(numbers)}
    shared |= {("error", code) for code in _texts((numbers.get("error_code"), _MEETS.get(str(row["code"]))))}
    named = (one for one in (*clients, *victims) if one.get("address") and one.get("client_id"))
    shared |= {("named", str(one["address"])) for one in named}
    if row["code"] == _CHANGE:
        shared |= {("kept_in", topic) for kind, topic in shared if kind == "topic"}
    elif any(kind == "group" for kind, _ in shared):
        shared.add(("kept_in", "__consumer_offsets"))
    shared.add(("capture", True))
    since, until = _time(numbers.get("since")), _time(numbers.get("until"))
    firsts = [ns for ns in (row["ts_first"], since) if ns is not None]
    lasts = [ns for ns in (row["ts_last"], until) if ns is not None]
    committers = _listed(numbers, "committers")
    return Facts(
        cluster=numbers.get("cluster"),
        shared=frozenset(shared),
        first_ns=min(firsts, default=None),
        last_ns=max(lasts, default=None),
        culprits=tuple(dict.fromkeys(own)),
        committers=frozenset((c.get("address"), c.get("client_id"), c.get("member_id")) for c in committers),
    )


def _clients(numbers: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The clients to look at: the one it is about first."""
    client_id = numbers.get("client_id", numbers.get("client"))
    if numbers.get("address") is not None or client_id is not None:
        yield {"address": numbers.get("address"), "client_id": client_id}
    yield from _listed(numbers, "committers")
    yield from _listed(numbers, "clients")


def _listed(numbers: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = numbers.get(name)
    return [one for one in found[:_MOST_VALUES] if isinstance(one, Mapping)] if isinstance(found, list) else []


def _client(who: Mapping[str, Any]) -> tuple[str, Any]:
    """("client", (address, client id)), or None for the pair where neither is known."""
    pair = (who.get("address"), who.get("client_id"))
    return "client", None if pair == (None, None) else pair


def _addresses(who: Iterable[Mapping[str, Any]]) -> Iterator[Shared]:
    return (("address", str(one["address"])) for one in who if one.get("address") is not None)


def _plain(numbers: Mapping[str, Any]) -> Iterator[Shared]:
    for kind, names in _PLAIN.items():
        for value in _texts(numbers.get(name) for name in names):
            yield kind, value


def _troubled(numbers: Mapping[str, Any]) -> Iterator[str]:
    """The servers that have the trouble: those that are gone, where others say so."""
    names = ("missing_servers",) if "missing_servers" in numbers else _PLAIN["server"]
    return _texts(numbers.get(name) for name in names)


def _texts(found: Iterable[Any]) -> Iterator[str]:
    """Plain values as text, those in lists too."""
    for value in found:
        for one in value[:_MOST_VALUES] if isinstance(value, list) else (value,):
            if one is not None and not isinstance(one, Mapping | list | bool):
                yield str(one)


def _places(numbers: Mapping[str, Any]) -> Iterator[Shared]:
    """Topics and partitions."""
    topic, partition = numbers.get("topic"), numbers.get("partition")
    for one in _texts((topic, numbers.get("topics"))):
        yield "topic", one
    if topic is not None and isinstance(partition, int):
        yield "partition", f"{topic}-{partition}"
    for name in _texts((numbers.get("partitions"),)):
        of_topic, _, number = name.rpartition("-")
        if of_topic and number.isdecimal():
            yield "partition", name
            yield "topic", of_topic


def _time(value: Any) -> int | None:
    """ISO 8601 or Unix ms as Unix ns."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value * NS_PER_MS)
    try:
        return ns_of(str(value)) if value else None
    except ValueError:
        return None
