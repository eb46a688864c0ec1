"""The manifest of a dataset: which inputs were read and which Parquet parts count.

In: the text of `wirewitness.json`. Out: a `Manifest`, or a `DatasetError` that says in one line what is wrong with it.
Times are Unix ns inside and ISO 8601 in the file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from analyser.archive.dataset.part import Part, Place
from analyser.archive.dataset.place import MANIFEST, DatasetError
from analyser.registry.tables import SCHEMA_VERSION
from analyser.strange_files import text_of

FORMAT = "wirewitness dataset"
InputStatus = Literal["read", "set_aside"]


# What helps where the state of a dataset cannot be gone on from.
ANEW = "make the dataset anew from its captures (archive --rebuild)"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A capture that was taken in, or set aside with a reason.

    key: digest of its size and of samples of its content. first_ns, last_ns: Unix time of its first and last packet.
    run: who took it in.
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


class Run(NamedTuple):
    """One completed run. ended_ns: Unix time at which it was committed."""

    name: str
    ended_ns: int


@dataclass(frozen=True)
class Manifest:
    """What a dataset holds.

    inputs: in the order in which they were read; the number of a file in packed packets is its place among those with
        status `read`. settings: what a run must find again, such as the number of shares. state: folder of the state
        of open flows, relative to the dataset; None where nothing is kept. hidden: parts that no reader looks at.
    """

    schema_version: int = SCHEMA_VERSION
    inputs: tuple[InputFile, ...] = ()
    parts: tuple[Part, ...] = ()
    runs: tuple[Run, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    state: str | None = None
    hidden: tuple[Part, ...] = ()

    @cached_property
    def by_table(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each table that has any, by path."""
        found: defaultdict[str, list[Part]] = defaultdict(list)
        for part in sorted(self.parts, key=lambda part: part.path):
            found[part.table].append(part)
        return {table: tuple(parts) for table, parts in found.items()}

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return sum(part.rows for part in self.by_table.get(table, ()))

    def text(self) -> str:
        """The manifest as JSON. `tables` repeats for people what the parts say."""
        tables = {
            name: {"rows": sum(p.rows for p in parts), "bytes": sum(p.bytes for p in parts), "parts": len(parts)}
            for name, parts in sorted(self.by_table.items())
        }
        document = {
            "format": FORMAT,
            "schema_version": self.schema_version,
            "tables": tables,
            "runs": [{"name": run.name, "ended_ns": run.ended_ns} for run in self.runs],
            "inputs": [asdict(one) for one in self.inputs],
            "settings": dict(self.settings),
            "state": self.state,
        }
        head = json.dumps(document, indent=1, ensure_ascii=False)
        return head.removesuffix("\n}") + _lines("hidden", self.hidden) + _lines("parts", self.parts) + "\n}\n"


def _lines(key: str, parts: tuple[Part, ...]) -> str:
    """One line for each part keeps the file readable without making it much larger."""
    lines = [json.dumps(part._asdict(), ensure_ascii=False) for part in sorted(parts, key=lambda p: p.path)]
    return f',\n "{key}": [\n  ' + ",\n  ".join(lines) + "\n ]"


def read_manifest(root: Path, *, any_version: bool = False) -> Manifest:
    """The manifest of the dataset in that folder. Raises DatasetError.

    any_version: do not mind the version, for one who is about to replace everything.
    """
    try:
        document = json.loads(text_of(root / MANIFEST))
    except FileNotFoundError:
        raise DatasetError(f"{root} is no dataset: it holds no {MANIFEST}.") from None
    except OSError as error:
        raise DatasetError(f"{root / MANIFEST} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{root / MANIFEST} is damaged ({error}); {REBUILD}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DatasetError(f"{root / MANIFEST} is not the manifest of a dataset; {REBUILD}")
    if document.get("schema_version") != SCHEMA_VERSION and not any_version:
        found = document.get("schema_version")
        raise DatasetError(
            f"{root} is a dataset of version {found}, and this program reads version {SCHEMA_VERSION}; {REBUILD}"
        )
    try:
        return _manifest(document)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DatasetError(f"{root / MANIFEST} is damaged ({type(error).__name__}: {error}); {REBUILD}") from error


REBUILD = "make it anew from its captures with `wirewitness archive --rebuild`."


def _manifest(document: Mapping[str, Any]) -> Manifest:
    found = (_listed(document["parts"]), _listed(document.get("hidden", [])))
    parts, hidden = (tuple(Part(**_typed(one, _PART)) for one in some) for some in found)
    for part in (*parts, *hidden):
        if not is_inside(part.path):
            raise ValueError(f"part {part.path!r}")
        Place.of(part)
    state = document["state"]
    if state is not None and not (isinstance(state, str) and is_inside(state)):
        raise ValueError(f"state {state!r}")
    return Manifest(
        document["schema_version"],
        tuple(InputFile(**_typed(one, _INPUT)) for one in _listed(document["inputs"])),
        parts,
        tuple(Run(_run_name(run["name"]), int(run["ended_ns"])) for run in document["runs"]),
        MappingProxyType(_typed(document["settings"], _SETTINGS)),
        state,
        hidden,
    )


def _run_name(name: Any) -> str:
    number = int(name)
    if not 0 <= number < _MOST_RUNS:
        raise ValueError(f"run {name!r:.40}")
    return str(number).zfill(6)


_MOST_RUNS = 10**12  # names of parts have room for twelve digits

# Types of the values of a part, of an input and of the settings.
_TEXT, _NUMBER, _FLAG, _NOTHING, _LIST, _OBJECT = "str", "int", "bool", "NoneType", "list", "dict"
_PART = {"table": {_TEXT}, "path": {_TEXT}, "rows": {_NUMBER}, "bytes": {_NUMBER}, "provisional": {_FLAG}}
_INPUT = {
    **{name: {_TEXT} for name in ("path", "key", "status", "run")},
    **{name: {_NUMBER} for name in ("bytes", "packets")},
    **{name: {_NUMBER, _NOTHING} for name in ("first_ns", "last_ns")},
    "reason": {_TEXT, _NOTHING},
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
    for name, allowed in types.items():
        if name in value and type(value[name]).__name__ not in allowed:
            raise TypeError(f"{name}: {value[name]!r:.40}")
    return value


def is_inside(path: str) -> bool:
    """Does a path of the manifest or journal stay in the dataset? Somebody else may have written it."""
    pieces = path.split("/")
    return not path.startswith("/") and ".." not in pieces and "" not in pieces
