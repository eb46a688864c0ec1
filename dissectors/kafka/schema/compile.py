"""Fast decoders: a schema in, one generated Python function for each (API, version, direction) out.

A function is written on first use and kept. It differs from a hand-written one only in that nobody has to write it:
adjacent fixed-size fields, the length of the string behind them and the count of tagged fields share one struct call;
positions that are known when the code is written are constants in it; strings are cut out in place.

Bounds: reading moves forward only and slices never fail, so one comparison at the end of a message finds every read
that went beyond its end. Counts and long lengths are compared with the bytes left before anything is made from them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile_plan import plan
from wirewitness.dissectors.kafka.schema.compile_source import FunctionSource
from wirewitness.dissectors.kafka.schema.definitions import Direction
from wirewitness.dissectors.kafka.schema.primitives import continue_uvarint, skip_tags, tag_head

Decoder = Callable[[bytes, int, int], tuple[dict[str, Any], int]]


@lru_cache(maxsize=4096)
def decoder(api_key: int, version: int, direction: Direction, fields: frozenset[str] | None = None) -> Decoder | None:
    """The function `decode(buf, pos, end) -> (value, position behind it)`, or None where no schema covers the version.

    The value is a dict by field name with the fields of that version: numbers, str, bool, 16 bytes for a uuid, bytes,
    lists and dicts; `records` as (start, length) in `buf`; None for null and for a tagged field that is not there. A
    secret is MASKED, never its own value; its length is still checked.
    Tagged fields without a schema are skipped. Bytes between the position and `end` are the caller's to judge.
    `fields` names what is wanted (projection): a struct named keeps all inside, one not named is kept for what is
    wanted inside it; the rest is skipped, with its lengths still checked. decode raises DecodeError and nothing else
    for any bytes, as long as 0 <= pos <= end.
    """
    return _build(_Wanted(api_key, version, direction, fields), "")


class _Wanted(NamedTuple):
    api_key: int
    version: int
    direction: Direction
    fields: frozenset[str] | None


@lru_cache(maxsize=4096)
def _build(wanted: _Wanted, errors: str) -> Decoder | None:
    source = decoder_source(*wanted, errors=errors)
    if source is None:
        return None
    name = f"<kafka {wanted.direction} {wanted.api_key} v{wanted.version}>"
    return _function(*source, name, partial(_decode_lenient, wanted))


def record_decoder(record: schema.Api, version: int, direction: Direction) -> Decoder:
    """As `decoder`, for the key (`request`) or value (`response`) of a record type. Keep it; each call makes one."""
    fields = plan(record, version, direction, None)
    flexible = record.is_flexible(version)

    def lenient(buf: bytes, pos: int, end: int) -> tuple[dict[str, Any], int]:
        writer = FunctionSource(flexible, '"utf-8", "backslashreplace"')
        return _function(writer.function(fields), writer.constants, f"{name}, any text", _refuse)(buf, pos, end)

    name = f"<kafka record {record.name} v{version}>"
    writer = FunctionSource(flexible, "")
    return _function(writer.function(fields), writer.constants, name, lenient)


def _function(code: str, constants: dict[str, Any], name: str, lenient: Decoder) -> Decoder:
    scope: dict[str, Any] = {
        **constants,
        "DecodeError": DecodeError,
        "StructError": struct.error,
        "long": continue_uvarint,
        "null": _null,
        "skip_tags": skip_tags,
        "tag_head": tag_head,
        "unpack_from": struct.unpack_from,
        "lenient": lenient,
    }
    exec(compile(code, name, "exec"), scope)
    return cast(Decoder, scope["decode"])


def _refuse(buf: bytes, pos: int, end: int) -> tuple[dict[str, Any], int]:
    raise DecodeError("text that cannot be read")


def decoder_source(
    api_key: int, version: int, direction: Direction, fields: frozenset[str] | None = None, *, errors: str = ""
) -> tuple[str, dict[str, Any]] | None:
    """The generated text and the struct functions it uses; None as for `decoder`. `errors` goes to str.decode."""
    api = schema.api(api_key)
    if api is None or not api.versions.has(version):
        return None
    writer = FunctionSource(api.is_flexible(version), errors)
    return writer.function(plan(api, version, direction, fields)), writer.constants


def _decode_lenient(wanted: _Wanted, buf: bytes, pos: int, end: int) -> tuple[dict[str, Any], int]:
    """Decode a message with text that is not UTF-8: as Kafka's own readers do, it is kept, not refused."""
    decode = _build(wanted, '"utf-8", "backslashreplace"')
    if decode is None:
        raise DecodeError("no schema")
    return decode(buf, pos, end)


def _null(name: str) -> DecodeError:
    return DecodeError(f"{name} is null where it may not be")
