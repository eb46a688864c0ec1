"""What a raw row holds: each field once, with its name, kind and meaning. Columns and types of tables come from it.

A field with a meaning becomes a column of the same name, unless rows say otherwise; one without is only there so that
other columns can be made of it. What no dissector can know (flows, files, clusters) the registry adds
(`analyser/registry`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

# `time`: Unix ns in raw rows.
Kind = Literal["string", "int64", "float64", "bool", "time", "int64_list", "bytes"]
# How the column gets its value: as it stands in the row; computed from it; from it and from other rows.
FieldSource = Literal["row", "derived", "context"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field. raw: its kind in raw rows, where that is another one than its column's.

    unit: empty for names and codes. secret: masked where it is decoded. json: its text is JSON.
    """

    name: str
    kind: Kind = "int64"
    meaning: str = ""
    unit: str = ""
    nullable: bool = True
    secret: bool = False
    json: bool = False
    source: FieldSource = "row"
    raw: Kind | None = None

    @property
    def raw_kind(self) -> Kind:
        """The kind of its values in raw rows."""
        return self.raw or self.kind

    @property
    def helps(self) -> bool:
        """It has no column; others are made of it."""
        return not self.meaning


class Fields:
    """The fields of one table's raw rows, in the order of the rows. ValueError for a name that stands twice."""

    __slots__ = ("_known", "all", "names")

    def __init__(self, *fields: Field) -> None:
        self.all = fields
        self.names = tuple(field.name for field in fields)
        self._known = frozenset(self.names)
        if len(self._known) < len(self.names):
            raise ValueError(f"a field stands twice: {', '.join(self.names)}")

    def __iter__(self) -> Iterator[Field]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def row(self, **values: Any) -> tuple[Any, ...]:
        """A row by the names of its fields; what is not given is null. TypeError for a name that is no field."""
        if not values.keys() <= self._known:
            raise TypeError(f"no such field: {', '.join(sorted(values.keys() - self._known))}")
        return tuple(map(values.get, self.names))


def packet(name: str, meaning: str) -> Field:
    """A packet number; its upper bits are the capture file, see `packet_of`."""
    return Field(name, "int64", f"{meaning}: number in its file, from 1 as Wireshark counts", source="derived")


def ts(meaning: str) -> Field:
    """The time of a row, never null."""
    return Field("ts", "time", meaning, unit="UTC", nullable=False)
