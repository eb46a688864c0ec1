"""Files that name addresses over rows that lie in files. In: the SQL of a table's rows. Out: SQL of the same rows, with
identities where the files name their addresses; what the rows know themselves counts first.

Nothing is written: names hold for one who reads with them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from wirewitness.analyser.capture.workloads.address_names import LAST_NS, AddressNames, Found
from wirewitness.analyser.capture.workloads.workload import Identity
from wirewitness.analyser.tables.owners import FIELDS, SIDES
from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.analyser.tables.tables import ALL_TABLES

NAMES = "wirewitness_address_names"
_NAMED = "wirewitness_named"


def names_table(names: AddressNames) -> pa.Table:
    """Who has which address from when until before when (ns); of one address these spans do not overlap."""
    addresses: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    identities: list[Identity] = []
    for address in names.addresses:
        timeline = names.timeline(address)
        if timeline is None:
            continue
        spans = zip(timeline.starts, [*timeline.starts[1:], LAST_NS], timeline.answers, strict=True)
        for begin, end, (one, _) in spans:
            if one is not None:
                addresses.append(address)
                begins.append(begin)
                ends.append(end)
                identities.append(one)
    columns = {name: pa.array([value(one) for one in identities], kind) for name, kind, value in FIELDS}
    return pa.table(
        {
            "address": pa.array(addresses, pa.string()),
            "from_ns": pa.array(begins, pa.int64()),
            "until_ns": pa.array(ends, pa.int64()),
            **columns,
        }
    )


def changing(names: AddressNames) -> list[str]:
    """Addresses that have one identity after the other."""
    return sorted(
        address
        for address in names.addresses
        if (timeline := names.timeline(address)) is not None
        and len({one for one, found in timeline.answers if found is Found.NAMED}) > 1
    )


def has_identities(table: str) -> bool:
    """Does the table have columns about identities?"""
    return "client_host" in ALL_TABLES[table].column_names()


def with_names(table: str, rows: str, flows: str | None, elsewhen: Iterable[str]) -> str:
    """What stands behind FROM: the rows of `table` with identities. rows: what stands there without them. flows: the
    same of the flows, None for the table `flows` itself. elsewhen: addresses that change hands, for which the time
    counts at which a connection began; for all others any time of it tells the same.
    """
    columns = set(ALL_TABLES[table].column_names())
    sides = [side for side in SIDES if f"{side}_host" in columns]
    begin = "t.ts_first" if flows is None else "t.ts"
    joins = []
    changed = sorted(elsewhen)
    if flows is not None and changed:
        own = f"SELECT flow_id, ts_first FROM {flows} WHERE list_contains({literal(changed)}, client_address)"
        joins.append(f"LEFT JOIN ({own}) AS b ON b.flow_id = t.flow_id")
        begin = "coalesce(b.ts_first, t.ts)"
    replaced = []
    for side in sides:
        name = quoted(f"{_NAMED}_{side}")
        joins.append(
            f"LEFT JOIN {NAMES} AS {name} ON {name}.address = t.{side}_address AND "
            f"epoch_ns({begin}) >= {name}.from_ns AND epoch_ns({begin}) < {name}.until_ns"
        )
        other = f"t.{side}_pod IS NOT NULL AND {name}.pod IS NOT NULL AND t.{side}_pod <> {name}.pod"
        for field, _, _ in FIELDS:
            own = f"t.{side}_{field}"
            if f"{side}_{field}" in columns:
                replaced.append(f"if({other}, {own}, coalesce({own}, {name}.{field})) AS {side}_{field}")
    return f"(SELECT t.* REPLACE ({', '.join(replaced)}) FROM {rows} AS t {' '.join(joins)})"


def spans_of(rows: Iterable[tuple[str, int, int]], names: AddressNames) -> Iterable[tuple[str, Identity | None, Found]]:
    """What became of addresses that were seen between two times (ns): each answer that held meanwhile."""
    for address, first_ns, last_ns in rows:
        timeline = names.timeline(address)
        if timeline is None:
            yield address, None, Found.UNKNOWN
            continue
        starts = np.array(timeline.starts, np.int64)
        first, last = (int(np.searchsorted(starts, at, side="right")) - 1 for at in (first_ns, last_ns))
        for one, found in timeline.answers[max(first, 0) : last + 1]:
            yield address, one, found
