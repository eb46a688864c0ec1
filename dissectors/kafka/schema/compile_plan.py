"""One version of one message, made ready to be written as code: schema fields in, planned fields with sizes out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from wirewitness.dissectors.kafka.schema.definitions import Api, Direction, Field

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A field that is in the version. `keep`: its value is wanted. `size`: the fewest bytes of it or of an element."""

    name: str
    type: str
    array: bool
    nullable: bool
    tag: int | None
    keep: bool
    fields: tuple[Planned, ...]
    size: int
    secret: bool = False

    @property
    def format(self) -> str:
        """The struct letter of a fixed-size value."""
        return FORMATS[self.type]

    @property
    def fixed(self) -> bool:
        """Whether each element is numbers only, so that all have one size while they carry no tagged fields."""
        return all(one.type in FORMATS and not one.array for one in self.fields if one.tag is None)


def plan(api: Api, version: int, direction: Direction, wanted: frozenset[str] | None) -> tuple[Planned, ...]:
    """The fields of a message in `version`, in wire order; all kept where `wanted` is None."""
    return _planned(api.fields(direction), version, api.is_flexible(version), wanted)


def _planned(
    fields: Sequence[Field], version: int, flexible: bool, wanted: frozenset[str] | None
) -> tuple[Planned, ...]:
    found = []
    for field in fields:
        if field.versions.has(version):
            whole = wanted is None or field.name in wanted
            inner = _planned(field.fields, version, flexible, None if whole else wanted)
            keep = whole or any(one.keep for one in inner)
            nullable, size = field.nullable(version), _size(field.type, inner, flexible)
            found.append(
                Planned(field.name, field.type, field.array, nullable, field.tag, keep, inner, size, field.secret)
            )
    return tuple(found)


def _size(type_: str, inner: Sequence[Planned], flexible: bool) -> int:
    if type_ in FORMATS:
        return struct.calcsize(">" + FORMATS[type_])
    if type_ != "struct":
        return 1 if flexible else 2 if type_ == "string" else 4
    return sum(_size_in_struct(one, flexible) for one in inner if one.tag is None) + flexible


def _size_in_struct(one: Planned, flexible: bool) -> int:
    if one.array:
        return 1 if flexible else 4
    return 1 if one.type == "struct" and one.nullable else one.size
