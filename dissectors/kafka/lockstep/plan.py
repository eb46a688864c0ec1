"""What is read together of one message version: schema fields in, steps out.

Fixed-size fields that stand one behind the other, with the length or count of what follows them, are one step: one
gather. The steps are those of the generated decoder (schema/compile_source.py), written for many messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import SLACK
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile_plan import FORMATS, Planned, plan
from wirewitness.dissectors.kafka.schema.definitions import Direction

_KINDS = {letter: "u1" if letter == "?" else f">{letter}" for letter in FORMATS.values()} | {"16s": "V16"}
# The field of a step's type that holds the length, count or number of tagged fields behind it.
TAIL = "#"
# The name of an array's elements that are no structs.
ELEMENT = "."


@dataclass(frozen=True, slots=True)
class Fixed:
    """Fields of fixed size. kind: their structured type; tail: does it end with a TAIL?"""

    kind: np.dtype[Any]
    names: tuple[str, ...]
    truths: frozenset[str]
    tail: bool


@dataclass(frozen=True, slots=True)
class Sized:
    """A string, or bytes, of which a TAIL said the length."""

    name: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class Elements:
    """An array of which a TAIL said the count. least_bytes: of an element."""

    name: str
    nullable: bool
    each: Plan
    least_bytes: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """The tagged fields of which a TAIL said the number. names: those that the schema knows."""

    names: tuple[str, ...]


Step = Fixed | Sized | Elements | Tagged


@dataclass(frozen=True, slots=True)
class Plan:
    """A struct. size: its bytes where all are numbers, else 0. flexible: lengths are varints, one too high."""

    steps: tuple[Step, ...]
    size: int
    flexible: bool


class _Unfit(Exception):
    """The message has something that is read one by one only."""


@lru_cache(maxsize=1024)
def body_plan(api_key: int, version: int, direction: Direction) -> Plan | None:
    """The steps of a body; None where there is no schema, or where it has structs that may be null, or secrets."""
    api = schema.api(api_key)
    if api is None or not api.versions.has(version):
        return None
    try:
        return _struct(plan(api, version, direction, None), api.is_flexible(version))
    except _Unfit:
        return None


class _Writer:
    """Collects steps; fixed-size fields wait until something of another kind follows."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.steps: list[Step] = []
        self._waiting: list[tuple[str, str]] = []

    def fixed(self, name: str, letter: str) -> None:
        self._waiting.append((name, letter))

    def length(self, letter: str) -> None:
        """The length or count of what follows."""
        self._flush("B" if self.flexible else letter)

    def end(self) -> None:
        """Nothing follows."""
        if self._waiting:
            self._flush("")

    def _flush(self, tail: str) -> None:
        fields = [*self._waiting, *([(TAIL, tail)] if tail else [])]
        kind = np.dtype([(name, _KINDS.get(letter, "u1")) for name, letter in fields])
        if kind.itemsize > SLACK:
            raise _Unfit
        names = tuple(name for name, _ in self._waiting)
        truths = frozenset(name for name, letter in self._waiting if letter == "?")
        self.steps.append(Fixed(kind, names, truths, bool(tail)))
        self._waiting.clear()


def _struct(fields: Sequence[Planned], flexible: bool) -> Plan:
    writer = _Writer(flexible)
    for field in fields:
        if field.tag is None:
            _field(writer, field)
    if flexible:
        writer.length("B")
        writer.steps.append(Tagged(tuple(field.name for field in fields if field.tag is not None)))
    writer.end()
    only_numbers = len(writer.steps) == 1 and isinstance(writer.steps[0], Fixed)
    return Plan(tuple(writer.steps), sum(field.size for field in fields) if only_numbers else 0, flexible)


def _field(writer: _Writer, field: Planned) -> None:
    if field.secret or (field.type == "struct" and not field.array):
        raise _Unfit
    if field.array:
        writer.length("i")
        writer.steps.append(Elements(field.name, field.nullable, _each(field, writer.flexible), max(1, field.size)))
    elif field.type in FORMATS:
        writer.fixed(field.name, field.format)
    else:
        _sized(writer, field.name, field.type, field.nullable)


def _sized(writer: _Writer, name: str, kind: str, nullable: bool) -> None:
    writer.length("h" if kind == "string" else "i")
    writer.steps.append(Sized(name, nullable))


def _each(field: Planned, flexible: bool) -> Plan:
    """One element of an array."""
    if field.type == "struct":
        return _struct(field.fields, flexible)
    writer = _Writer(flexible)
    if field.type in FORMATS:
        writer.fixed(ELEMENT, field.format)
    else:
        _sized(writer, ELEMENT, field.type, False)
    writer.end()
    return Plan(tuple(writer.steps), field.size if field.type in FORMATS else 0, flexible)
