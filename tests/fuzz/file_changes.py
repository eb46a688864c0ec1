"""Files of a folder, changed as somebody might who knows what they hold. In: bytes of a file. Out: others."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutate import broken


def changed_file(held: bytes, dice: Random) -> bytes:
    """Parquet with other columns, JSON with other values, or any bytes damaged."""
    if dice.random() < 0.2:
        return broken(held, dice)
    if held[:4] == b"PAR1":
        try:
            return _changed_parquet(held, dice)
        except (OSError, pa.ArrowException, ValueError):
            return broken(held, dice)
    try:
        return changed_json(json.loads(held), dice)
    except (ValueError, RecursionError):
        return broken(held, dice)


_NUMBERS = (0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**400, 1e300, 0.5)
_TEXTS = ("", "/", "../x", "a/../../b", "\x00", "\ud800", "\x1b[2J\u202e", "1e999", "kafka", "messages", "x" * 5000)
_OTHERS = ("null", "true", "[]", "{}", "[[]]", '{"a": 1}')


def _value(dice: Random) -> Any:
    match dice.randrange(3):
        case 0:
            return dice.choice(_NUMBERS)
        case 1:
            return dice.choice(_TEXTS)
        case _:
            return json.loads(dice.choice(_OTHERS))


def changed_json(document: Any, dice: Random) -> bytes:
    """One to three values of another kind, gone, twice or of another name; or nested deeper than anybody reads."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        document = _changed_value(document, dice, 0)
    text = json.dumps(document)
    if dice.random() < 0.1:
        text = text.replace(dice.choice(["1", "0", "null", '""', "[]"]), dice.choice(["1e999", "NaN", "-Infinity"]), 1)
    if dice.random() < 0.05:
        deep = dice.choice([1000, 100_000])
        text = text.replace("[", "[" * deep, 1)
    return text.encode("utf-8", "surrogatepass")


def _changed_value(value: Any, dice: Random, depth: int) -> Any:
    if dice.random() < 0.1 + 0.15 * depth or not isinstance(value, list | dict) or not value:
        return _value(dice)
    if isinstance(value, list):
        at = dice.randrange(len(value))
        match dice.randrange(6):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, value[at]]
            case _:
                return [*value[:at], _changed_value(value[at], dice, depth + 1), *value[at + 1 :]]
    key = dice.choice(sorted(value))
    match dice.randrange(8):
        case 0:
            return {name: held for name, held in value.items() if name != key}
        case 1:
            return {dice.choice(_TEXTS) if name == key else name: held for name, held in value.items()}
        case 2:
            return {**value, key: value[dice.choice(sorted(value))]}
        case _:
            return {**value, key: _changed_value(value[key], dice, depth + 1)}


_TYPES = (
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.int8(),
    pa.int64(),
    pa.uint64(),
    pa.float64(),
    pa.decimal128(38, 0),
    pa.bool_(),
    pa.null(),
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("ns", tz="UTC"),
    pa.list_(pa.int64()),
    pa.list_(pa.string()),
    pa.struct([("a", pa.int64())]),
    pa.dictionary(pa.int32(), pa.string()),
)


def _changed_parquet(held: bytes, dice: Random) -> bytes:
    table = pq.read_table(io.BytesIO(held)).slice(0, 200)
    for _ in range(dice.choice([1, 1, 2])):
        table = _changed_table(table, dice)
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _changed_table(table: pa.Table, dice: Random) -> pa.Table:
    if not table.num_columns:
        return table
    at = dice.randrange(table.num_columns)
    name, rows = table.column_names[at], table.num_rows
    match dice.randrange(8):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.rename_columns(
                [dice.choice(_TEXTS[:4]) if n == at else one for n, one in enumerate(table.column_names)]
            )
        case 2:
            return table.slice(0, 0)
        case 3:
            return table.append_column(
                dice.choice(["filename", "file_row_number", "b", name.upper()]), table.column(at)
            )
        case 4 | 5:
            kind = table.schema.field(at).type
        case _:
            kind = dice.choice(_TYPES)
    return table.set_column(at, pa.field(name, kind), _column(kind, table.column(at), rows, dice))


def _column(kind: pa.DataType, before: pa.ChunkedArray, rows: int, dice: Random) -> pa.Array:
    """A column of that kind: what was there where it can be, else values of the kind, some at its ends."""
    if dice.random() < 0.3:
        try:
            return before.cast(kind)
        except (pa.ArrowException, ValueError):
            pass
    values: list[Any] = []
    for _ in range(rows):
        value = _value(dice)
        try:
            pa.array([value], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError):
            value = None
        values.append(value)
    return pa.array(values, kind)
