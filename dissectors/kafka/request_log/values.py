"""Bodies in JSON, as the broker logs them, to the values that decoders give of bytes.

The broker prints a message with the converter that Kafka generates of its definition (KIP-673, MessageDataGenerator's
JsonConverterGenerator): field names in camel case; a uuid as 22 characters of base64 for URLs, bytes in base64; tagged
fields only where they differ from their default; of records their size (`recordsSizeInBytes`), or an empty text. The
names are those of the broker's own version; `OLDER_NAMES` has those that Kafka changed since the log is JSON.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile_plan import Planned, plan
from wirewitness.dissectors.kafka.schema.definitions import MASKED, Direction
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN, Value

Read = Callable[[Any], Any]

# (API key, our field) -> names that it had in brokers whose log is JSON already.
OLDER_NAMES: Mapping[tuple[int, str], tuple[str, ...]] = {
    (8, "generation_id_or_member_epoch"): ("generationId",),
    (24, "v3_and_below_transactional_id"): ("transactionalId",),
    (24, "v3_and_below_producer_id"): ("producerId",),
    (24, "v3_and_below_producer_epoch"): ("producerEpoch",),
    (24, "v3_and_below_topics"): ("topics",),
    (24, "results_by_topic_v3_and_below"): ("results",),
    (24, "results_by_partition"): ("results",),
    (24, "partition_error_code"): ("errorCode",),
    (28, "generation_id_or_member_epoch"): ("generationId",),
    (88, "acceptable_recovery_lag_legacy"): ("acceptableRecoveryLag",),
}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
_UUID_CHARACTERS = 22


@lru_cache(maxsize=1024)
def reader(api_key: int, version: int, direction: Direction) -> Callable[[Any], Value] | None:
    """The function that makes a decoded value of a JSON body; None where no schema covers the version.

    It gives what `schema.compile.decoder` gives of the same message's bytes, but for records: (UNSEEN, size), or None
    where the log does not say their size. It raises DecodeError and nothing else, for any value that JSON can hold.
    """
    api = schema.api(api_key)
    if api is None or not api.versions.has(version):
        return None
    return partial(_struct, "body", _fields(api_key, plan(api, version, direction, None)))


def _fields(api_key: int, planned: Sequence[Planned]) -> tuple[tuple[str, str, Read, bool, tuple[str, ...]], ...]:
    """(name in JSON, our name, reader, may it be missing, further names) of the fields of a struct."""
    return tuple(
        (_json_name(one), one.name, _reader(api_key, one), one.tag is not None, _further_names(api_key, one))
        for one in planned
    )


def _further_names(api_key: int, one: Planned) -> tuple[str, ...]:
    records = (_camel(one.name),) if one.type == "records" else ()
    return (*OLDER_NAMES.get((api_key, one.name), ()), *records)


def _json_name(one: Planned) -> str:
    return _camel(one.name) + ("SizeInBytes" if one.type == "records" else "")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def _reader(api_key: int, one: Planned) -> Read:
    """What reads a field; the closures of a message are made once for each version."""
    if one.type == "struct":
        read: Read = partial(_struct, one.name, _fields(api_key, one.fields))
    elif one.type in _BITS:
        half = 1 << (_BITS[one.type] - 1)
        read = partial(_whole_number, one.name, -half, half - 1)
    elif one.type in _UNSIGNED_BITS:
        read = partial(_whole_number, one.name, 0, (1 << _UNSIGNED_BITS[one.type]) - 1)
    elif one.secret:
        read = partial(_secret, one.name, MASKED[one.type])
    else:
        read = partial(_OF_TYPE[one.type], one.name)
    if one.array:
        read = partial(_array, one.name, read)
    return partial(_nullable, read) if one.nullable or one.type == "records" else read


def _nullable(read: Read, value: Any) -> Any:
    return None if value is None else read(value)


def _struct(name: str, fields: Sequence[tuple[str, str, Read, bool, tuple[str, ...]]], value: Any) -> Value:
    if type(value) is not dict:
        raise _wrong(name, "an object")
    found: Value = {}
    for json_name, own, read, optional, further in fields:
        if json_name in value:
            found[own] = read(value[json_name])
            continue
        other = next((older for older in further if older in value), None)
        if other is not None:
            found[own] = read(value[other])
        elif optional:
            found[own] = None
        else:
            raise DecodeError(f"{own} is missing")
    return found


def _array(name: str, read: Read, value: Any) -> list[Any]:
    if type(value) is not list:
        raise _wrong(name, "an array")
    return [read(element) for element in value]


def _whole_number(name: str, least: int, most: int, value: Any) -> int:
    if type(value) is not int or not least <= value <= most:
        raise _wrong(name, f"a whole number from {least} to {most}")
    return value


def _boolean(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(name, "true or false")
    return value


def _float(name: str, value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    raise _wrong(name, "a number")


def text_of(name: str, value: Any) -> str:
    """A text that can be written as UTF-8: halves of surrogate pairs, which JSON allows, are spelled out."""
    if type(value) is not str:
        raise _wrong(name, "a text")
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _uuid(name: str, value: Any) -> bytes:
    if type(value) is str and len(value) == _UUID_CHARACTERS:
        with suppress(ValueError):  # binascii's errors are such
            return base64.b64decode(f"{value}==", b"-_", validate=True)
    raise _wrong(name, "a uuid")


def _bytes(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(text_of(name, value), validate=True)
    except ValueError:
        raise _wrong(name, "base64") from None


def _records(name: str, value: Any) -> tuple[int, int] | None:
    """Where records would be: their size, or an empty text in its place."""
    return None if type(value) is str else (UNSEEN, _whole_number(name, 0, (1 << 31) - 1, value))


def _secret(name: str, masked: str | bytes, value: Any) -> str | bytes:
    text_of(name, value)
    return masked


_OF_TYPE: Mapping[str, Callable[[str, Any], Any]] = {
    "bool": _boolean,
    "float64": _float,
    "string": text_of,
    "uuid": _uuid,
    "bytes": _bytes,
    "records": _records,
}


def _wrong(name: str, what: str) -> DecodeError:
    """The value itself is not told: it may be anything."""
    return DecodeError(f"{name} is not {what}")
