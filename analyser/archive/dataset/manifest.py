"""The manifest of a dataset: which inputs were read and which version of each table counts.

In: the text of `wirewitness.json`. Out: a `Manifest`, or a `DatasetError` that says in one line what is wrong with it.
Times are Unix ns inside and ISO 8601 in the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from wirewitness.analyser.archive.dataset.bounds import MANIFEST as BOUND
from wirewitness.analyser.archive.dataset.bounds import json_at, within
from wirewitness.analyser.archive.dataset.part import is_inside
from wirewitness.analyser.archive.dataset.place import MANIFEST, REBUILD, DatasetError
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.capture.sources import InputKind
from wirewitness.analyser.tables.tables import ALL_TABLES, SCHEMA_VERSION

FORMAT = "wirewitness dataset"
# How tables lie in the dataset; other numbers, and none, are those of other versions.
LAYOUT = 2
InputStatus = Literal["read", "set_aside"]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A capture that was taken in, or set aside with a reason.

    key: digest of its size and of samples of its content. first_ns, last_ns: Unix time of its first and last packet, or
    of what a request log tells. run: who took it in. kind: what it has. tag: what its store knew an object by
    when it was taken in. begins: what a request log is known by, whatever it is called later (Source.begins).
    """

    path: str
    key: str
    bytes: int
    packets: int
    first_ns: int | None
    last_ns: int | None
    status: InputStatus
    reason: str | None
    run: str
    kind: InputKind = "packets"
    tag: str = ""
    begins: str = ""


class Run(NamedTuple):
    """One completed run. ended_ns: Unix time at which it was committed."""

    name: str
    ended_ns: int


class Pinned(NamedTuple):
    """Which version of a table counts. rows, bytes, parts: how much it holds."""

    version: int
    rows: int
    bytes: int
    parts: int


@dataclass(frozen=True)
class Manifest:
    """What a dataset holds.

    inputs: in the order in which they were read; the number of a file in packed packets is its place among those with
        status `read`. settings: what a run must find again, such as the number of shards. state: folder of the state
        of open flows, relative to the dataset; None where nothing is kept. tables: those that have rows. hidden: the
        same for rows that no reader looks at. remarks: on the dataset as a whole, for people.
    """

    schema_version: int = SCHEMA_VERSION
    inputs: tuple[InputFile, ...] = ()
    tables: Mapping[str, Pinned] = field(default_factory=lambda: MappingProxyType({}))
    runs: tuple[Run, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    state: str | None = None
    hidden: Mapping[str, Pinned] = field(default_factory=lambda: MappingProxyType({}))
    remarks: tuple[str, ...] = ()

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return self.tables[table].rows if table in self.tables else 0

    def text(self) -> str:
        """The manifest as JSON. DatasetError where it would be too much to be read again."""
        pinned = ({name: one._asdict() for name, one in sorted(some.items())} for some in (self.tables, self.hidden))
        tables, hidden = pinned
        document = {
            "format": FORMAT,
            "layout": LAYOUT,
            "schema_version": self.schema_version,
            "tables": tables,
            "hidden": hidden,
            "runs": [{"name": run.name, "ended_ns": run.ended_ns} for run in self.runs],
            "inputs": [asdict(one) for one in self.inputs],
            "settings": dict(self.settings),
            "state": self.state,
            "remarks": list(self.remarks),
        }
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        try:
            within(text.encode(errors="replace"), BOUND)
        except ValueError as error:
            raise DatasetError(f"the manifest would be too large ({error}): begin another dataset.") from error
        return text


def read_manifest(root: FolderPath, *, any_version: bool = False) -> Manifest:
    """The manifest of the dataset in that folder. Raises DatasetError.

    any_version: do not mind the version, for one who is about to replace everything.
    """
    try:
        document = json_at(root / MANIFEST, BOUND)
    except FileNotFoundError:
        raise DatasetError(f"{root} is no dataset: it holds no {MANIFEST}.") from None
    except OSError as error:
        raise DatasetError(f"{root / MANIFEST} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{root / MANIFEST} is damaged ({error}); {REBUILD}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DatasetError(f"{root / MANIFEST} is not the manifest of a dataset; {REBUILD}")
    if document.get("layout") != LAYOUT and not any_version:
        raise DatasetError(f"{root} is a dataset of another layout than this program's; {REBUILD}")
    if document.get("schema_version") != SCHEMA_VERSION and not any_version:
        found = document.get("schema_version")
        raise DatasetError(
            f"{root} is a dataset of version {found}, and this program reads version {SCHEMA_VERSION}; {REBUILD}"
        )
    try:
        return _manifest(document)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DatasetError(f"{root / MANIFEST} is damaged ({type(error).__name__}: {error}); {REBUILD}") from error


def _manifest(document: Mapping[str, Any]) -> Manifest:
    state = document["state"]
    if state is not None and not (isinstance(state, str) and is_inside(state)):
        raise ValueError(f"state {state!r}")
    return Manifest(
        document["schema_version"],
        tuple(InputFile(**_typed(one, _INPUT)) for one in _listed(document["inputs"])),
        _pinned(document["tables"]),
        tuple(Run(_run_name(run["name"]), int(run["ended_ns"])) for run in document["runs"]),
        MappingProxyType(_typed(document["settings"], _SETTINGS)),
        state,
        _pinned(document["hidden"]),
        tuple(map(str, _listed(document.get("remarks", [])))),
    )


def _pinned(tables: Mapping[str, Any]) -> Mapping[str, Pinned]:
    """Only tables that this program knows: their names are folders."""
    for name, one in tables.items():
        pinned = Pinned(**_typed(one, _PINNED))
        if name not in ALL_TABLES or min(pinned) < 0 or max(pinned) >= _MOST:
            raise ValueError(f"table {name!r:.60}")
    return MappingProxyType({name: Pinned(**one) for name, one in tables.items()})


def _run_name(name: Any) -> str:
    number = int(name)
    if not 0 <= number < _MOST_RUNS:
        raise ValueError(f"run {name!r:.40}")
    return str(number).zfill(6)


_MOST = 1 << 63
_MOST_RUNS = 10**12  # names of parts have room for twelve digits

# Types of the values of a table's version, of an input and of the settings.
_TEXT, _NUMBER, _NOTHING, _LIST, _OBJECT = "str", "int", "NoneType", "list", "dict"
_PINNED = {name: {_NUMBER} for name in Pinned._fields}
_INPUT = {
    **{name: {_TEXT} for name in ("path", "key", "status", "run")},
    **{name: {_NUMBER} for name in ("bytes", "packets")},
    **{name: {_NUMBER, _NOTHING} for name in ("first_ns", "last_ns")},
    "reason": {_TEXT, _NOTHING},
    "kind": {_TEXT},
    "tag": {_TEXT},
    "begins": {_TEXT},
}
_SETTINGS = {"tables": {_LIST, _NOTHING}, "shares": {_NUMBER}, "topic_ids": {_OBJECT}}


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"no list: {value!r:.40}")
    return value


def _typed(value: Any, types: Mapping[str, set[str]]) -> dict[str, Any]:
    """The object, if its values have these types."""
    if not isinstance(value, dict):
        raise TypeError(f"no object: {value!r:.40}")
    if "\0" in str(value.get("path")):
        raise ValueError("a path with a null character")
    for name, allowed in types.items():
        if name in value and type(value[name]).__name__ not in allowed:
            raise TypeError(f"{name}: {value[name]!r:.40}")
    return value
