"""Arrow's functions by name are those of `pyarrow.compute`, with the same arguments."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from wirewitness.analyser.base import compute

NUMBERS = pa.array([5, None, -3, 5, 0])
OTHERS = pa.array([5, 2, None, -5, 7])
FLOATS = pa.array([0.125, None, float("nan"), float("inf"), -2.5])
FLAGS = pa.array([True, None, False, True, False])
RIGHTS = pa.array([False, None, None, True, True])
TEXTS = pa.array(["a.b", None, "", "äöü ", "a.b.b"])
LISTS = pa.array([[1, 2], None, [], [3]])
ROWS = pa.table({"number": NUMBERS, "text": TEXTS})
TIMES = pa.array([0, None, 1_700_000_000_000_000_000], pa.timestamp("ns"))

CASES: dict[str, list[tuple[Any, ...]]] = {
    "abs": [(NUMBERS,)],
    "all": [(FLAGS,), (pa.array([], pa.bool_()), {"min_count": 0}), (pa.array([], pa.bool_()),)],
    "and_": [(FLAGS, RIGHTS)],
    "and_not": [(FLAGS, RIGHTS)],
    "any": [(FLAGS,), (pa.array([], pa.bool_()),)],
    "assume_timezone": [(TIMES, "UTC")],
    "binary_join": [(pa.array([["a", "b"], []]), ",")],
    "binary_join_element_wise": [
        (TEXTS, "x", "-"),
        (TEXTS, TEXTS, ",", {"null_handling": "replace", "null_replacement": "?"}),
    ],
    "bit_wise_and": [(NUMBERS, OTHERS), (NUMBERS, 1)],
    "cast": [(NUMBERS, pa.string()), (NUMBERS, pa.float64()), (FLOATS, pa.int64(), {"safe": False})],
    "coalesce": [(NUMBERS, OTHERS)],
    "dictionary_encode": [(TEXTS,), (pa.chunked_array([TEXTS, TEXTS]),)],
    "divide": [(NUMBERS, 2)],
    "drop_null": [(TEXTS,)],
    "equal": [(NUMBERS, OTHERS), (TEXTS, "")],
    "fill_null": [(NUMBERS, 0), (FLAGS, False), (TEXTS, "?")],
    "filter": [(TEXTS, FLAGS), (ROWS, FLAGS)],
    "greater": [(NUMBERS, OTHERS), (NUMBERS, 0)],
    "if_else": [(FLAGS, NUMBERS, None), (FLAGS, "a", "b")],
    "index": [(NUMBERS, 5), (NUMBERS, 9)],
    "index_in": [(NUMBERS, OTHERS)],
    "invert": [(FLAGS,)],
    "is_finite": [(FLOATS,)],
    "is_in": [(NUMBERS, OTHERS), (TEXTS, pa.array(["", "a.b"]))],
    "is_null": [(FLOATS,)],
    "is_valid": [(FLOATS,)],
    "less": [(NUMBERS, OTHERS)],
    "list_flatten": [(LISTS,)],
    "list_parent_indices": [(LISTS,)],
    "list_value_length": [(LISTS,)],
    "match_substring_regex": [(TEXTS, r"^a\.b$")],
    "max": [(NUMBERS,), (TEXTS,)],
    "max_element_wise": [(NUMBERS, OTHERS)],
    "multiply": [(NUMBERS, OTHERS)],
    "or_": [(FLAGS, RIGHTS)],
    "replace_substring": [(TEXTS, ".", "-"), (TEXTS, ".", "-", {"max_replacements": 1})],
    "replace_with_mask": [(NUMBERS, pa.array([True, False, False, True, False]), pa.array([1, 2]))],
    "round": [(FLOATS,), (FLOATS, 2)],
    "shift_right": [(OTHERS, 1)],
    "sort_indices": [(ROWS, {"sort_keys": [("number", "ascending"), ("text", "descending")]})],
    "subtract": [(NUMBERS, OTHERS)],
    "take": [(TEXTS, pa.array([4, None, 0])), (ROWS, pa.array([1, 1]))],
    "unique": [(NUMBERS,), (TEXTS,)],
    "utf8_length": [(TEXTS,)],
    "utf8_lpad": [(TEXTS, 6, "·")],
    "utf8_rpad": [(TEXTS, 6, "·")],
    "utf8_rtrim_whitespace": [(TEXTS,)],
}  # fmt: skip


def functions() -> set[str]:
    return {
        name for name, value in vars(compute).items() if callable(value) and hasattr(pc, name) and name[0].islower()
    }


def test_every_function_has_a_case() -> None:
    assert functions() - {"call_function"} == {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_function_gives_what_that_of_pyarrow_gives(name: str) -> None:
    for case in CASES[name]:
        values, settings = (case[:-1], case[-1]) if isinstance(case[-1], dict) else (case, {})
        found = getattr(compute, name)(*values, **settings)
        expected = getattr(pc, name)(*values, **settings)
        assert type(found) is type(expected)
        assert str(found) == str(expected)


def test_a_value_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        compute.cast(pa.array(["x"]), pa.int64())
    assert compute.cast(FLOATS.slice(0, 1), pa.int64(), safe=False).to_pylist() == [0]
