"""Arrow's functions on columns, under the names and with the arguments that they have in `pyarrow.compute`.

In: columns and single values. Out: columns and single values. `pyarrow.compute` makes a documented Python function of
each of 290 when it is imported, which takes a tenth of the time of a small table; here are those that reading captures
and writing their tables needs. Methods of columns such as `cast`, `filter` and `take` import it as well, so that
modules on this way call them by name here; who loads it anyway, DuckDB's users for example, need not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow._compute import (
    AssumeTimezoneOptions,
    CastOptions,
    IndexOptions,
    JoinOptions,
    MatchSubstringOptions,
    PadOptions,
    ReplaceSubstringOptions,
    RoundOptions,
    ScalarAggregateOptions,
    SetLookupOptions,
    SortOptions,
    call_function,
)


def _named(name: str) -> Callable[..., Any]:
    """The function that takes no more than its values."""

    def called(*values: Any) -> Any:
        return call_function(name, values)

    return called


abs = _named("abs")
and_ = _named("and")
and_not = _named("and_not")
any = _named("any")
binary_join = _named("binary_join")
bit_wise_and = _named("bit_wise_and")
coalesce = _named("coalesce")
dictionary_encode = _named("dictionary_encode")
divide = _named("divide")
drop_null = _named("drop_null")
equal = _named("equal")
filter = _named("filter")
greater = _named("greater")
if_else = _named("if_else")
invert = _named("invert")
is_finite = _named("is_finite")
is_null = _named("is_null")
is_valid = _named("is_valid")
less = _named("less")
list_flatten = _named("list_flatten")
list_parent_indices = _named("list_parent_indices")
list_value_length = _named("list_value_length")
max = _named("max")
max_element_wise = _named("max_element_wise")
multiply = _named("multiply")
or_ = _named("or")
replace_with_mask = _named("replace_with_mask")
shift_right = _named("shift_right")
subtract = _named("subtract")
take = _named("take")
unique = _named("unique")
utf8_length = _named("utf8_length")
utf8_rtrim_whitespace = _named("utf8_rtrim_whitespace")


def all(values: Any, min_count: int = 1) -> Any:
    """Are all true? Null for fewer values than `min_count`."""
    return call_function("all", [values], ScalarAggregateOptions(min_count=min_count))


def assume_timezone(values: Any, timezone: str) -> Any:
    """Times of day as times in that zone."""
    return call_function("assume_timezone", [values], AssumeTimezoneOptions(timezone))


def binary_join_element_wise(*texts: Any, null_handling: str = "emit_null", null_replacement: str = "") -> Any:
    """Texts of each row together; the last argument stands between them."""
    return call_function("binary_join_element_wise", texts, JoinOptions(null_handling, null_replacement))


def cast(values: Any, kind: pa.DataType, *, safe: bool = True) -> Any:
    """Values of another type. safe: ArrowInvalid for those that it cannot hold."""
    return call_function("cast", [values], CastOptions.safe(kind) if safe else CastOptions.unsafe(kind))


def fill_null(values: Any, value: Any) -> Any:
    """A value instead of each null."""
    return coalesce(values, pa.scalar(value, values.type))


def index(values: Any, value: int | str) -> Any:
    """Where a value stands first, -1 if nowhere."""
    return call_function("index", [values], IndexOptions(pa.scalar(value, values.type)))


def index_in(values: Any, value_set: pa.Array) -> Any:
    """Where each stands in a set; null for those that do not."""
    return call_function("index_in", [values], SetLookupOptions(value_set))


def is_in(values: Any, value_set: pa.Array) -> Any:
    """Does each stand in a set?"""
    return call_function("is_in", [values], SetLookupOptions(value_set))


def match_substring_regex(texts: Any, pattern: str) -> Any:
    """Does a regular expression (RE2) match inside each?"""
    return call_function("match_substring_regex", [texts], MatchSubstringOptions(pattern))


def replace_substring(texts: Any, pattern: str, replacement: str, max_replacements: int | None = None) -> Any:
    """Texts with other parts; pattern: as it stands, no regular expression."""
    options = ReplaceSubstringOptions(pattern, replacement, max_replacements=max_replacements)
    return call_function("replace_substring", [texts], options)


def round(values: Any, ndigits: int = 0) -> Any:
    """Half to even."""
    return call_function("round", [values], RoundOptions(ndigits))


def sort_indices(rows: Any, sort_keys: Sequence[tuple[str, str]]) -> Any:
    """Places of rows in a stable order of these columns, each "ascending" or "descending", null last."""
    return call_function("sort_indices", [rows], SortOptions(sort_keys))


def utf8_lpad(texts: Any, width: int, padding: str) -> Any:
    """Texts flush right in so many characters."""
    return call_function("utf8_lpad", [texts], PadOptions(width, padding))


def utf8_rpad(texts: Any, width: int, padding: str) -> Any:
    """Texts flush left in so many characters."""
    return call_function("utf8_rpad", [texts], PadOptions(width, padding))
