"""What a raw row holds: each field once, with its name, kind and meaning. Columns and types of tables come from it.

A field with a meaning becomes a column of the same name, unless rows say otherwise; one without is only there so that
other columns can be made of it. What no dissector can know (flows, files, clusters) the registry adds
(`analyser/tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

# `time`: Unix ns in raw rows.
Kind = Literal["string", "int64", "float64", "bool", "time", "int64_list", "bytes"]
# How the column gets its value: as it stands in the row; computed from it; from it and from other rows.
FieldSource = Literal["row", "derived", "context"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field. raw: its kind in raw rows, where that is another one than its column's.

    unit: empty for names and codes. secret: masked where it is decoded. json: its text is JSON. content: its text is
    what one message holds, and is kept whole; other texts are names, which stand in many rows and have a limit.
    """

    name: str
    kind: Kind = "int64"
    meaning: str = ""
    unit: str = ""
    nullable: bool = True
    secret: bool = False
    json: bool = False
    content: bool = False
    source: FieldSource = "row"
    raw: Kind | None = None

    @property
    def raw_kind(self) -> Kind:
        """The kind of its values in raw rows."""
        return self.raw or self.kind

    @property
    def is_name(self) -> bool:
        """It may stand in many rows of one message."""
        return self.raw_kind == "string" and not (self.json or self.content)

    @property
    def helps(self) -> bool:
        """It has no column; others are made of it."""
        return not self.meaning


class Fields:
    """The fields of one table's raw rows, in the order of the rows. ValueError for a name that stands twice or is none.

    row: makes a row by the names of its fields; what is not given is null, and a name that is no field a TypeError.
    """

    __slots__ = ("all", "names", "row")

    def __init__(self, *fields: Field) -> None:
        self.all = fields
        self.names = tuple(field.name for field in fields)
        if len(set(self.names)) < len(self.names) or not all(map(str.isidentifier, self.names)):
            raise ValueError(f"a field stands twice or has no proper name: {', '.join(self.names)}")
        self.row = _maker(self.names)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __reduce__(self) -> tuple[type[Fields], tuple[Field, ...]]:
        return Fields, self.all


def _maker(names: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    """A function of keywords only. Python itself puts them in order: a fifth of the time that looking them up takes."""
    keywords = ", ".join(f"{name}=None" for name in names)
    made: Callable[..., tuple[Any, ...]] = eval(f"lambda *, {keywords}: ({', '.join(names)},)")
    return made


def packet(name: str, meaning: str) -> Field:
    """A packet number; its upper bits are the capture file, see `packet_of`."""
    return Field(name, "int64", f"{meaning}: number in its file, from 1 as Wireshark counts", source="derived")


def ts(meaning: str) -> Field:
    """The time of a row, never null."""
    return Field("ts", "time", meaning, unit="UTC", nullable=False)
