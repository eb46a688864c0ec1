"""Scenarios of what producers write to a topic: keys, kinds of values, partitions of keys, time to fill a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.kafka_producers import OLD, produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def writer(number: int, kinds: Sequence[tuple[str, int]], *, start: float = 1.0, address: int | None = None,
           **more: Any) -> list[Row]:  # fmt: skip
    """shop-N writes so many batches of these kinds one behind the other, ten a second, each with a key of its own."""
    who = {"client_id": f"shop-{number}", "client_address": f"10.1.0.{60 + (address or number)}"}
    each = [kind for kind, times in kinds for _ in range(times)]
    return [
        produced(start + n / 10, n, flow=f"shop-{who['client_address']}", base_offset=10 * n, first_value_kind=kind,
                 **{"first_key_bytes": 4, "first_key_crc": 1000 * number + n, **OLD, **who, **more})
        for n, kind in enumerate(each)
    ]  # fmt: skip


def keyed(first: int, then: int) -> list[Row]:
    """shop-1 writes JSON with keys, then without."""
    rows = writer(1, [("json", first + then)])
    return [*rows[:first], *({**row, "first_key_bytes": -1, "first_key_crc": None} for row in rows[first:])]


def placed(number: int, partition: Callable[[int], int], *, keys: int = 20, times: int = 3, start: float = 1.0
           ) -> list[Row]:  # fmt: skip
    """shop-N writes these keys in turn, each to the partition of its number."""
    return [
        row | {"first_key_crc": 100 + n % keys, "partition": partition(n % keys)}
        for n, row in enumerate(writer(number, [("json", keys * times)], start=start))
    ]


def filled(number: int, fill_s: float, every: float, *, count: int = 10, batch_bytes: int = 2000) -> list[Row]:
    """shop-N sends a batch of ten records so often; the records of one were made over so many seconds."""
    who = {"client_id": f"shop-{number}", "client_address": f"10.1.0.{60 + number}"}
    return [
        produced(1 + n * every, n, flow=f"shop-{number}", base_offset=10 * n, batch_bytes=batch_bytes,
                 base_timestamp=at(1 + n * every - fill_s) // 1_000_000, max_timestamp=at(1 + n * every) // 1_000_000,
                 **{**OLD, **who})
        for n in range(count)
    ]  # fmt: skip


FRAMED = [*writer(2, [("schema_id", 60)]), *writer(3, [("schema_id", 60)])]
_GROWN = placed(1, lambda key: key % 4) + placed(1, lambda key: key % 6, start=10.0)
_MOVED = placed(1, lambda key: key % 4) + placed(1, lambda key: (key + 1) % 4, start=10.0)


def coded(
    now: str = "none", *, kind: str = "json", size: int = 7000, address: int | None = None, **more: Any
) -> list[Row]:
    """shop-1 writes thirty batches with a codec, and then thirty of so many bytes without."""
    rest = writer(1, [(kind, 30)], start=4.0, address=address, codec=now, batch_bytes=size, **more)
    return zstd(1.0) + rest


def zstd(start: float, count: int = 30) -> list[Row]:
    """So many batches of shop-1 with a codec."""
    return [row | {"codec": "zstd", "first_value_kind": None} for row in writer(1, [("json", count)], start=start)]


CONTENT_FIRES: list[Scenario] = [
    fires("KAF222", "warning", "partitions were added", kafka_produce_batches=_GROWN),
    fires("KAF222", "warning", "another partitioner of the same number of partitions", kafka_produce_batches=_MOVED),
    fires("KAF221", "warning", "no codec since a deployment", kafka_produce_batches=coded()),
    fires("KAF221", "warning", "no codec at the client id's next address", kafka_produce_batches=coded(address=9)),
    fires("KAF221", "info", "values that may not get smaller", kafka_produce_batches=coded(kind="binary")),
    fires(
        "KAF216", "warning", "JSON among records with a schema's id since a deployment",
        kafka_produce_batches=[*FRAMED, *writer(1, [("schema_id", 30), ("json", 30)])],
    ),
    fires("KAF216", "warning", "nulls for all keys", kafka_produce_batches=writer(1, [("json", 30), ("null", 30)])),
    fires("KAF216", "warning", "keys are gone", kafka_produce_batches=keyed(30, 30)),
    fires(
        "KAF216", "warning", "the new address of a client id writes something else",
        kafka_produce_batches=[*writer(1, [("json", 30)]), *writer(1, [("text", 30)], start=5.0, address=9)],
    ),
    fires(
        "KAF216", "warning", "one of three has no schema's id",
        kafka_produce_batches=[*FRAMED, *writer(1, [("json", 60)])],
    ),
    fires(
        "KAF217", "warning", "two partitioners",
        kafka_produce_batches=placed(1, lambda key: key % 4) + placed(2, lambda key: key * 7 // 4 % 4),
    ),
    fires(
        "KAF218", "warning", "five seconds of records, the other sends at once",
        kafka_produce_batches=filled(1, 5.0, 5.5) + filled(2, 0.01, 0.5),
    ),
    fires("KAF218", "info", "nobody else writes", kafka_produce_batches=filled(1, 5.0, 5.5)),
]  # fmt: skip

CONTENT_NEAR_MISSES: list[Scenario] = [
    silent("KAF222", "nine keys move", kafka_produce_batches=placed(1, lambda key: key % 4, keys=9) + placed(
        1, lambda key: (key + 1) % 4, keys=9, start=10.0)),
    silent("KAF222", "four keys of twenty move", kafka_produce_batches=placed(1, lambda key: key % 4) + placed(
        1, lambda key: (key + (key > 15)) % 4, start=10.0)),
    silent("KAF222", "keys that go to any partition", kafka_produce_batches=[
        row | {"partition": n * 7 % 5} for n, row in enumerate(_MOVED)]),
    silent("KAF222", "keys move one after the other", kafka_produce_batches=[
        row for turn in range(20) for row in placed(1, lambda key, t=turn: (key + (key < t)) % 4, times=1,
                                                    start=1.0 + 3 * turn)]),
    silent("KAF221", "another codec", kafka_produce_batches=coded("gzip")),
    silent("KAF221", "batches that do not get smaller are sent as they are", kafka_produce_batches=coded(size=900)),
    silent("KAF221", "single records, for which a codec is no use",
           kafka_produce_batches=coded(size=1500, records_count=1)),
    silent("KAF221", "with and without in turn", kafka_produce_batches=[
        *coded(), *zstd(8.0)]),
    silent("KAF221", "it begins to compress", kafka_produce_batches=[
        *writer(1, [("json", 30)], batch_bytes=7000), *zstd(4.0)]),
    silent("KAF221", "nine batches", kafka_produce_batches=coded()[:39]),
    silent("KAF221", "two with one client id at the same time, one without", kafka_produce_batches=[
        *zstd(1.0, 60), *writer(1, [("json", 30)], start=4.0, address=9, batch_bytes=7000)]),
    silent("KAF216", "a few tombstones in the end", kafka_produce_batches=writer(1, [("json", 30), ("null", 10)])),
    silent("KAF216", "tombstones now and then", kafka_produce_batches=writer(1, [("json", 25), ("null", 25)] * 2)),
    silent("KAF216", "records with and without keys",
           kafka_produce_batches=[*keyed(30, 30), *writer(1, [("json", 30)], start=9.0)]),
    silent("KAF216", "one writes text, one JSON, as always",
           kafka_produce_batches=[*writer(1, [("json", 60)]), *writer(2, [("text", 60)])]),
    silent("KAF216", "two have a schema's id, two have none",
           kafka_produce_batches=[*FRAMED, *writer(1, [("json", 60)]), *writer(4, [("json", 60)])]),
    silent("KAF216", "compressed batches tell nothing", kafka_produce_batches=[
        row | {"first_value_kind": None, "first_key_bytes": None, "first_key_crc": None} for row in keyed(30, 30)]),
    silent("KAF217", "two writers with one partitioner",
           kafka_produce_batches=placed(1, lambda key: key % 4) + placed(2, lambda key: key % 4)),
    silent("KAF217", "partitions were added, keys move", ("KAF222", "warning"),
           kafka_produce_batches=_MOVED + placed(2, lambda key: (key + 1) % 4, start=10.0)),
    silent("KAF217", "one after the other",
           kafka_produce_batches=placed(1, lambda key: key % 4) + placed(2, lambda key: (key + 1) % 4, start=60.0)),
    silent("KAF217", "each has a partition of its own",
           kafka_produce_batches=placed(1, lambda key: 0) + placed(2, lambda key: 1)),
    silent("KAF218", "batches that are full", kafka_produce_batches=filled(1, 5.0, 5.5, batch_bytes=16_300 * 4)),
    silent("KAF218", "an import: records of half a minute in each batch", kafka_produce_batches=filled(1, 30.0, 0.5)),
    silent("KAF218", "half a second", kafka_produce_batches=filled(1, 0.5, 0.6) + filled(2, 0.01, 0.5)),
]  # fmt: skip
