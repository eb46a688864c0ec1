"""Keys of several columns as numbers, compared with tuples in a dictionary."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from wirewitness.analyser.engine.facts.as_of import NOWHERE
from wirewitness.analyser.engine.facts.keys import Key

NAMES = ("topic", "partition", "client")


def _rows(chance: random.Random, count: int, different: int) -> list[tuple[str, int, str]]:
    """Numbers may be anything that an int64 holds."""
    numbers = [-(2**63), 2**63 - 1, -1, *range(different)]
    return [
        (f"t{chance.randrange(different)}", chance.choice(numbers), f"c{chance.randrange(different)}")
        for _ in range(count)
    ]


def _columns(rows: list[tuple[str, int, str]], coded: bool) -> dict[str, pa.Array]:
    topics, partitions, clients = zip(*rows, strict=True) if rows else ((), (), ())
    clients = pa.array(clients, pa.string())
    return {
        "topic": pa.array(topics, pa.string()),
        "partition": pa.array(partitions, pa.int64()),
        "client": clients.dictionary_encode() if coded else clients,
    }


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_a_number_stands_for_one_key(seed: int, coded: bool) -> None:
    chance = random.Random(seed)
    rows = _rows(chance, chance.randrange(60), 4)
    key = Key(_columns(rows, coded), NAMES)
    in_order = [*dict.fromkeys(rows)]
    assert [in_order[number] for number in key.numbers] == rows
    assert key.count == len(in_order)
    assert [*zip(*(key.columns[name].to_pylist() for name in NAMES), strict=True)] == in_order
    others = _rows(chance, 60, 6)
    found = key.of(_columns(others, not coded)).tolist()
    assert found == [in_order.index(row) if row in in_order else NOWHERE for row in others]


def test_what_a_dictionary_has_besides_is_no_key() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([3, 1]), pa.array(["a", "b", "c", "d", "e"]))
    key = Key({"topic": pa.array([7, 7]), "client": names}, ("topic", "client"))
    others = {"topic": pa.array([7, 7, 8]), "client": pa.array(["e", "d", "b"])}
    assert (key.count, key.of(others).tolist()) == (2, [NOWHERE, 0, NOWHERE])
    alone = Key({"client": names}, ("client",))
    assert (alone.count, alone.numbers.tolist()) == (2, [0, 1])
    assert alone.of({"client": pa.array(["a", "b", "d"])}).tolist() == [NOWHERE, 1, 0]
