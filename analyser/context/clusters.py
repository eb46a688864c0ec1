"""Which Kafka cluster a flow belongs to.

In: rows of `flows` and `kafka_brokers`. Out: flow id -> cluster id. Two clusters in one capture must never share groups
or offsets, so an endpoint joins a cluster only by what clients were told:

1. A cluster id in a Metadata answer names the cluster of its flow, and of the flow's server endpoint when all answers
   from there say the same id.
2. All brokers of one answer are one cluster: they and the answering endpoint are joined. A broker that two cluster ids
   claim (`localhost:9092`, a name that resolves differently per network) joins nothing.
3. Brokers are often told of by name, and names are not in the packets. A flow to an endpoint that nobody advertised
   belongs to the one cluster that advertised names with its port to this client; with two such clusters it stays alone.

A component without any id is called `component:` and a digest of its endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from ipaddress import ip_address
from typing import Any, NamedTuple

import pyarrow as pa

from analyser.context.named_by import BROKERS, NAMED_BY

Endpoint = tuple[str, int]
OF_FLOWS = ("protocol", "flow_id", "client_address", "server_address", "server_port")


class _Told(NamedTuple):
    """One broker that a client was told of."""

    flow_id: str
    wire_cluster_id: str | None
    broker: Endpoint
    client: str | None
    answered_by: Endpoint


class _Flow(NamedTuple):
    flow_id: str
    client: str | None
    server: Endpoint


class _Sets:
    """Disjoint sets of endpoints (union by the smaller name, so that the result does not depend on the order)."""

    def __init__(self) -> None:
        self._parent: dict[Endpoint, Endpoint] = {}

    def find(self, item: Endpoint) -> Endpoint:
        path = []
        while (parent := self._parent.setdefault(item, item)) != item:
            path.append(item)
            item = parent
        for passed in path:
            self._parent[passed] = item
        return item

    def join(self, a: Endpoint, b: Endpoint) -> None:
        low, high = sorted((self.find(a), self.find(b)))
        self._parent[high] = low

    def members(self) -> dict[Endpoint, list[Endpoint]]:
        found: dict[Endpoint, list[Endpoint]] = {}
        for item in sorted(self._parent):
            found.setdefault(self.find(item), []).append(item)
        return found


def cluster_of_flows(flows: pa.Table, brokers: pa.Table) -> dict[str, str]:
    """Flow id -> cluster id, for every Kafka flow.

    brokers: the columns of NAMED_BY; rows may stand in it more than once.
    """
    return _clusters(
        [
            _Flow(flow, client, (server, port))
            for protocol, flow, client, server, port in _rows(flows, OF_FLOWS)
            if protocol == "kafka" and server is not None
        ],
        [
            _Told(flow, cluster or None, (host, port), client, (server, server_port))
            for flow, cluster, host, port, client, server, server_port in {*_rows(brokers, NAMED_BY[BROKERS])}
            if host and server is not None
        ],
    )


def _rows(table: pa.Table, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def _clusters(flows: list[_Flow], told: list[_Told]) -> dict[str, str]:
    ids_of_endpoint = _ids((t.answered_by, t.wire_cluster_id) for t in told)
    sets = _joined(flows, told, ids_of_endpoint)
    _join_by_port(flows, told, sets)
    names = {root: _name(members, ids_of_endpoint) for root, members in sets.members().items()}
    own_ids = _ids((t.flow_id, t.wire_cluster_id) for t in told)
    return {flow.flow_id: _single(own_ids.get(flow.flow_id)) or names[sets.find(flow.server)] for flow in flows}


def _ids(pairs: Iterable[tuple[object, str | None]]) -> dict[object, set[str]]:
    found: dict[object, set[str]] = {}
    for key, cluster in pairs:
        if cluster is not None:
            found.setdefault(key, set()).add(cluster)
    return found


def _single(ids: set[str] | None) -> str | None:
    return next(iter(ids)) if ids and len(ids) == 1 else None


def _joined(flows: Iterable[_Flow], told: list[_Told], ids: dict[object, set[str]]) -> _Sets:
    """Endpoints joined by the answers that name them together."""
    sets = _Sets()
    for flow in flows:
        sets.find(flow.server)
    claims: dict[Endpoint, set[str]] = {}
    for item in told:
        cluster = item.wire_cluster_id or _single(ids.get(item.answered_by))
        if cluster is not None:
            claims.setdefault(item.broker, set()).add(cluster)
    for item in told:
        sets.find(item.answered_by)
        claimed = claims.get(item.broker, set()) | ids.get(item.broker, set())
        if len(claimed) <= 1 and len(ids.get(item.answered_by, ())) <= 1:
            sets.join(item.answered_by, item.broker)
    return sets


def _join_by_port(flows: Iterable[_Flow], told: list[_Told], sets: _Sets) -> None:
    """Rule 3: the client was told this port by exactly one cluster."""
    advertised = {item.broker for item in told}
    answering = {item.answered_by for item in told}
    by_client: dict[tuple[str | None, int], set[Endpoint]] = {}
    for item in (item for item in told if not _is_address(item.broker[0])):
        by_client.setdefault((item.client, item.broker[1]), set()).add(item.answered_by)
    for flow in flows:
        if flow.server in advertised or flow.server in answering:
            continue
        roots = {sets.find(endpoint) for endpoint in by_client.get((flow.client, flow.server[1]), ())}
        if len(roots) == 1:
            sets.join(flow.server, roots.pop())


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _name(members: list[Endpoint], ids: dict[object, set[str]]) -> str:
    clusters = set().union(*(ids.get(endpoint, set()) for endpoint in members))
    if len(clusters) == 1:
        return clusters.pop()
    text = "\n".join(f"{host}:{port}" for host, port in members)
    return "component:" + blake2b(text.encode(), digest_size=6).hexdigest()
