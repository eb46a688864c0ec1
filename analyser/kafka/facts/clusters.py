"""Which Kafka cluster a flow belongs to.

In: rows of `flows` and `kafka_brokers`. Out: flow id -> cluster id. Two clusters in one capture must never shard groups
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

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from ipaddress import ip_address
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc

Endpoint = tuple[str, int]
OF_FLOWS = ("protocol", "flow_id", "client_address", "server_address", "server_port")
_OF_FLOW, _OF_SERVER = OF_FLOWS[1:], ("flow_id", "server_address", "server_port")
_OF_ROUTE = ("client_address", "server_address", "server_port")
_OF_TOLD = ("wire_cluster_id", "host", "port", "client_address", "server_address", "server_port")
_OF_ANSWER = ("flow_id", "wire_cluster_id", "host", "server_address")
_AT_ONCE = 8192
_MOST_NUMBERS = 1 << 62  # of different rows, so that each has one of its own


class _Told(NamedTuple):
    """One broker that clients of an address were told of."""

    wire_cluster_id: str | None
    broker: Endpoint
    client: str | None
    answered_by: Endpoint


class _Route(NamedTuple):
    """Where flows of a client's address go."""

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

    brokers: the columns of NAMED_BY; rows may stand in it more than once. Of many short connections only the different
    ends and answers are Python objects, all at once.
    """
    of_kafka = pc.filter(flows.select(_OF_FLOW), pc.equal(flows.column("protocol"), "kafka"))
    of_kafka = pc.filter(of_kafka, pc.is_valid(of_kafka.column("server_address")))
    routes = [_Route(client, (server, port)) for client, server, port in _different(of_kafka, _OF_ROUTE)]
    told = [
        _Told(cluster or None, (host, port), client, (server, server_port))
        for cluster, host, port, client, server, server_port in _different(brokers, _OF_TOLD)
        if host and server is not None
    ]
    ids_of_endpoint = _ids((one.answered_by, one.wire_cluster_id) for one in told)
    sets = _joined(routes, told, ids_of_endpoint)
    _join_by_port(routes, told, sets)
    names = {root: _name(members, ids_of_endpoint) for root, members in sets.members().items()}
    own_ids = _ids(
        (flow, cluster or None)
        for flow, cluster, host, server in _different(brokers, _OF_ANSWER)
        if host and server is not None
    )
    return {
        flow: _single(own_ids.get(flow)) or names[sets.find((server, port))]
        for some in of_kafka.select(_OF_SERVER).to_batches(max_chunksize=_AT_ONCE)
        for flow, server, port in _rows(some, _OF_SERVER)
    }


def _different(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The different rows of these columns."""
    number, different = np.zeros(table.num_rows, np.int64), 1
    for name in columns:
        column = table.column(name).combine_chunks()
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        null = len(coded.dictionary)
        codes = pc.fill_null(coded.indices, null).to_numpy()
        if different * (null + 1) > _MOST_NUMBERS:
            number, different = np.unique(number, return_inverse=True)[1], table.num_rows
        number, different = number * (null + 1) + codes, different * (null + 1)
    first = np.unique(number, return_index=True)[1]
    return _rows(pc.take(table.select(columns), pa.array(first)), columns)


def _rows(table: pa.Table | pa.RecordBatch, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def _ids(pairs: Iterable[tuple[object, str | None]]) -> dict[object, set[str]]:
    found: dict[object, set[str]] = {}
    for key, cluster in pairs:
        if cluster is not None:
            found.setdefault(key, set()).add(cluster)
    return found


def _single(ids: set[str] | None) -> str | None:
    return next(iter(ids)) if ids and len(ids) == 1 else None


def _joined(routes: Iterable[_Route], told: list[_Told], ids: dict[object, set[str]]) -> _Sets:
    """Endpoints joined by the answers that name them together."""
    sets = _Sets()
    for route in routes:
        sets.find(route.server)
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


def _join_by_port(routes: Iterable[_Route], told: list[_Told], sets: _Sets) -> None:
    """Rule 3: the client was told this port by exactly one cluster."""
    advertised = {item.broker for item in told}
    answering = {item.answered_by for item in told}
    by_client: dict[tuple[str | None, int], set[Endpoint]] = {}
    for item in (item for item in told if not _is_address(item.broker[0])):
        by_client.setdefault((item.client, item.broker[1]), set()).add(item.answered_by)
    for route in sorted(routes, key=_in_order):
        if route.server in advertised or route.server in answering:
            continue
        roots = {sets.find(endpoint) for endpoint in by_client.get((route.client, route.server[1]), ())}
        if len(roots) == 1:
            sets.join(route.server, roots.pop())


def _in_order(route: _Route) -> tuple[str, Endpoint]:
    return route.client or "", route.server


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
