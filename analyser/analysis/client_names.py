"""Who the clients of findings are. In: findings, and views of tables in which flows know their identities. Out: the
same findings, whose sentences and numbers name process, container, pod or host behind addresses.

Rules know clients by address and client id; who that was is looked up here for all of them, in the time that a
finding is about. Several identities are listed or counted, none is chosen. Ids of findings stay what they are: they are
made of what the packets say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.capture.workloads.workload import Identity, agreed, identity_words
from wirewitness.analyser.engine.rules.requested_codes import protocol_of
from wirewitness.analyser.tables.owners import process_text
from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

if TYPE_CHECKING:
    import duckdb

# Elements of a finding's numbers that are clients; see `analyser/engine/numbers.py`.
_LISTS = ("clients", "committers", "victims")
# So many identities are listed; more are counted.
MOST_IDENTITIES = 3
_IDENTITY = ("pid", "command", "user", "container", "pod", "namespace", "workload", "host")
_PROCESS = "nullif(trim(regexp_replace(client_process, '\\(\\d+\\)$', '')), '')"
_COLUMNS = ", ".join(f"{_PROCESS} AS command" if one == "command" else f"client_{one} AS {one}" for one in _IDENTITY)
# Where clients say who they are: tables of connections with what stands for a client id in them.
_IDS = ("client_id", "app_name")
_NAMES = {
    name: next(column for column in _IDS if column in table.column_names())
    for name, table in TABLES.items()
    if {"client_host", "flow_id"} < {*table.column_names()} and {*_IDS} & {*table.column_names()}
}
# Tables that are asked.
NEEDED = ("flows", *_NAMES)
_ADDRESS = re.compile(r"[0-9a-fA-F:.]{2,45}")


class Client(NamedTuple):
    """A client as findings know it; None is not known. protocol: in which it calls itself by the client id."""

    address: str
    client_id: str | None = None
    port: int | None = None
    protocol: str | None = None


class _Was(NamedTuple):
    """An identity of a client, from its first connection to its last."""

    identity: Identity
    first_ns: int
    last_ns: int


@dataclass
class Identities:
    """Identities of clients: by address, by address and client id in one protocol or in any, and by address and port.

    Those of one client begin with the one that was seen first.
    """

    by_client: dict[Client, list[_Was]] = field(default_factory=dict)

    def of(self, client: Client, first_ns: int | None, last_ns: int | None) -> list[Identity]:
        """All that it had between these times, by what is known of it most closely."""
        for key in _keys(client):
            if (known := self.by_client.get(key)) is not None:
                there = (one.identity for one in known if _meet(one, first_ns, last_ns))
                return list(dict.fromkeys(one for one in there if one.known))
        return []


def _keys(client: Client) -> Iterator[Client]:
    if client.port is not None:
        yield Client(client.address, None, client.port)
        return
    if client.client_id is not None:
        yield Client(client.address, client.client_id, None, client.protocol)
        yield Client(client.address, client.client_id)
    yield Client(client.address)


def _meet(one: _Was, first_ns: int | None, last_ns: int | None) -> bool:
    return (last_ns is None or one.first_ns <= last_ns) and (first_ns is None or one.last_ns >= first_ns)


def named_findings(con: duckdb.DuckDBPyConnection, findings: pa.Table, tables: Iterable[str]) -> pa.Table:
    """The findings table, with identities. tables: names of the views that the connection has."""
    rows = findings.select(["code", "sentence", "numbers"]).to_pylist()
    times = [findings.column(name).cast(pa.int64()).to_pylist() for name in ("ts_first", "ts_last")]
    numbers = [json.loads(row["numbers"]) for row in rows]
    protocols = [protocol_of(RULES[row["code"]]) for row in rows]
    clients = [_clients(one, protocol) for one, protocol in zip(numbers, protocols, strict=True)]
    identities = identities_of(
        con, {client for found in clients for client in found}, _endpoints_of(rows, numbers), set(tables)
    )
    if not identities.by_client:
        return findings
    told: dict[str, list[str]] = {"sentence": [], "numbers": []}
    for row, protocol, measured, found, first, last in zip(rows, protocols, numbers, clients, *times, strict=True):
        told["sentence"].append(named_sentence(row["sentence"], found, measured, identities, first, last))
        _add_to(measured, protocol, identities, first, last)
        told["numbers"].append(json.dumps(measured, ensure_ascii=False, allow_nan=False))
    schema = arrow_schema("findings")
    for name, values in told.items():
        place = schema.get_field_index(name)
        findings = findings.set_column(place, schema.field(name), pa.array(values, schema.field(name).type))
    return findings


def _endpoints_of(rows: Iterable[Mapping[str, Any]], numbers: Iterable[Any]) -> set[tuple[str, int]]:
    """Addresses with ports that sentences and numbers name."""
    found = {(address, port) for row in rows for address, port, _, _ in _endpoints(row["sentence"]) if port is not None}
    for element in (element for one in numbers for element in _elements(one)):
        client, port = _client(element), element.get("port")
        if client is not None and isinstance(port, int):
            found.add((client.address, port))
    return found


def identities_of(
    con: duckdb.DuckDBPyConnection, clients: set[Client], endpoints: set[tuple[str, int]], tables: set[str]
) -> Identities:
    """The identities of these clients."""
    found = Identities()
    addresses = sorted({client.address for client in clients})
    if not addresses:
        return found
    chosen = f"list_contains({literal(addresses)}, client_address)"
    known = f"SELECT client_address, {_COLUMNS}, min(ts_first), max(ts_last) FROM flows WHERE {chosen} GROUP BY ALL"
    for address, *values in con.execute(_in_ns(known)).fetchall():
        found.by_client.setdefault(Client(address), []).append(_was(values))
    found.by_client = {one: was for one, was in found.by_client.items() if any(each.identity.known for each in was)}
    several = sorted(client.address for client, was in found.by_client.items() if len(was) > 1)
    if several:
        _add_by_id(con, several, tables, found)
    ports = sorted({port for address, port in endpoints if Client(address) in found.by_client})
    if ports:
        query = (
            f"SELECT client_address, client_port, {_COLUMNS}, min(ts_first), max(ts_last) FROM flows "
            f"WHERE {chosen} AND client_port IN ({', '.join(map(str, ports))}) GROUP BY ALL"
        )
        for address, port, *values in con.execute(_in_ns(query)).fetchall():
            found.by_client.setdefault(Client(address, None, port), []).append(_was(values))
    for was in found.by_client.values():
        was.sort(key=_when_seen)
    return found


def _when_seen(one: _Was) -> tuple[int, int, str]:
    """What sorts identities alike in each run, which groups of a query do not."""
    return one.first_ns, one.last_ns, repr(one.identity)


def _add_by_id(con: duckdb.DuckDBPyConnection, addresses: Sequence[str], tables: set[str], found: Identities) -> None:
    for table, column in _NAMES.items():
        if table not in tables:
            continue
        chosen = f"list_contains({literal(addresses)}, client_address)"
        said = (
            f"SELECT DISTINCT flow_id, {column} AS client_id FROM {quoted(table)} "
            f"WHERE {chosen} AND {column} IS NOT NULL"
        )
        query = (
            f"SELECT client_address, client_id, protocol, {_COLUMNS}, min(ts_first), max(ts_last) "
            f"FROM flows JOIN ({said}) USING (flow_id) GROUP BY ALL"
        )
        for address, client_id, protocol, *values in con.execute(_in_ns(query)).fetchall():
            for one in {protocol, None}:
                found.by_client.setdefault(Client(address, client_id, None, one), []).append(_was(values))


def _in_ns(query: str) -> str:
    return query.replace("min(ts_first)", "epoch_ns(min(ts_first))").replace("max(ts_last)", "epoch_ns(max(ts_last))")


def _was(values: Sequence[Any]) -> _Was:
    *identity, first_ns, last_ns = values
    return _Was(Identity(*identity), first_ns, last_ns)


def several_words(identities: Sequence[Identity]) -> str:
    """`pod payments-7d4f, java pid 4711`; up to three are listed with `or`, more counted behind what they shard."""
    if len(identities) == 1:
        return identity_words(identities[0])
    each = list(dict.fromkeys(words for one in identities if (words := identity_words(one))))
    if len(each) <= MOST_IDENTITIES:
        return " or ".join(each)
    shared = identity_words(agreed(identities))
    return ", ".join(part for part in (shared, f"one of {count(len(each), 'process', 'processes')}") if part)


def named_sentence(
    sentence: str,
    clients: Iterable[Client],
    numbers: Mapping[str, Any],
    identities: Identities,
    first_ns: int | None,
    last_ns: int | None,
) -> str:
    """The sentence with identities behind the addresses of its clients, each where it is named first.

    Only addresses that the numbers have are looked for, and not inside of names: a client may call itself like another
    one's address.
    """
    by_address: dict[str, list[Client]] = {}
    for client in clients:
        by_address.setdefault(client.address, []).append(client)
    hidden = [*_hidden(sentence, numbers, by_address)]
    parts: list[str] = []
    done: set[tuple[str, str | None]] = set()
    at = 0
    for address, port, start, end in _endpoints(sentence):
        if address not in by_address or any(first < end and start < last for first, last in hidden):
            continue
        before = sentence[:start]
        own = [one for one in by_address[address] if one.client_id and before.endswith(f"{_short(one.client_id)} at ")]
        chosen = own or by_address[address]
        key = address, own[0].client_id if own else None
        found = list(
            dict.fromkeys(
                one
                for client in chosen
                for one in identities.of(client._replace(port=port) if port else client, first_ns, last_ns)
            )
        )
        if found and key not in done and (words := several_words(found)):
            parts += [sentence[at:end], f" ({words})"]
            at = end
            done.add(key)
    return "".join([*parts, sentence[at:]])


def _short(name: str) -> str:
    """The end of a name as sentences have it, however long they let it be."""
    return printable(name)[-40:]


def _hidden(sentence: str, numbers: Any, addresses: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where names stand that contain an address."""
    for text in _texts(numbers):
        inside = [one for one in addresses if one in text and len(text) > len(one)]
        if not inside or _endpoint(text) is not None:
            continue
        shown = printable(text)
        start = sentence.find(shown)
        while start >= 0:
            yield start, start + len(shown)
            start = sentence.find(shown, start + 1)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _endpoints(sentence: str) -> Iterator[tuple[str, int | None, int, int]]:
    """Addresses in a sentence: address, port, where it begins and where what belongs to it ends."""
    for match in _ADDRESS.finditer(sentence):
        start, end = match.span()
        text = match.group().rstrip(".:")
        end = start + len(text)
        if (start and (sentence[start - 1].isalnum() or sentence[start - 1] in "-_./@")) or (
            end < len(sentence) and (sentence[end].isalnum() or sentence[end] in "-_/@")
        ):
            continue
        found = _endpoint(text)
        if found is None:
            continue
        address, port = found
        if start and sentence[start - 1] == "[" and sentence[end : end + 1] == "]":
            after = re.match(r"\](?::(\d{1,5}))?", sentence[end:])
            if after:
                port = int(after.group(1)) if after.group(1) else None
                end += after.end()
        yield address, port, start, end


def _endpoint(text: str) -> tuple[str, int | None] | None:
    """`10.0.0.1`, `10.0.0.1:9092`, `fd00::9`; None for anything else."""
    host, colon, port = text.rpartition(":")
    if colon and "." in host and ":" not in host and port.isdecimal():
        text, known = host, int(port)
    else:
        known = None
    try:
        return str(ip_address(text)), known
    except ValueError:
        return None


def _clients(numbers: Any, protocol: str | None) -> list[Client]:
    """The clients that a finding's numbers have. protocol: that the finding is about."""
    return [client for one in _elements(numbers) if (client := _client(one, protocol)) is not None]


def _elements(numbers: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(numbers, dict):
        return
    yield numbers
    for name in _LISTS:
        listed = numbers.get(name)
        yield from (one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, dict))


def _client(element: Mapping[str, Any], protocol: str | None = None) -> Client | None:
    address, client_id = element.get("address"), element.get("client_id")
    if not isinstance(address, str):
        return None
    return Client(address, client_id if isinstance(client_id, str) else None, None, protocol)


def _add_to(
    numbers: Any, protocol: str | None, identities: Identities, first_ns: int | None, last_ns: int | None
) -> None:
    """`process`, `pod` and `host` of clients with one identity."""
    for element in _elements(numbers):
        client = _client(element, protocol)
        if client is None:
            continue
        port = element.get("port")
        found = identities.of(client._replace(port=port) if isinstance(port, int) else client, first_ns, last_ns)
        if not found:
            continue
        one = agreed(found)
        known = {"process": process_text(one), "pod": one.pod, "host": one.host}
        element.update({name: value for name, value in known.items() if value is not None and name not in element})
