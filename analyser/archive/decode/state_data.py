"""What is known of open flows as data: a table of values, each with its kind, and nothing that could run.

In: objects of the kinds below. Out: an Arrow table, a row for each object, and from such a table the same objects
again, shared ones shared. A class is taken only from the rooms whose objects are kept, functions only from a list, and
none is called to make an object. So a state that somebody else wrote can be wrong, but does nothing.
"""

from __future__ import annotations

import copyreg
import json
import math
import re
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.archive.dataset.arrow_sizes import held_bytes
from wirewitness.analyser.archive.dataset.bounds import state_values
from wirewitness.dissectors.core.carrier import Carrier
from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.core.protocol import Dissector
from wirewitness.dissectors.registry import CARRIERS, dissector_of

SCHEMA = pa.schema([("value", pa.string()), ("bytes", pa.binary())])
_ROOMS = ("wirewitness.dissectors.", "wirewitness.analyser.tcp.", "wirewitness.analyser.decoding.")
_MODULES = frozenset(
    {
        "wirewitness.analyser.capture.endpoints",
        "wirewitness.analyser.decoding.run.flow_records",
        "wirewitness.analyser.decoding.run.log_losses",
        "wirewitness.analyser.decoding.run.logs",
        "wsproto.frame_protocol",
    }
)
# Functions that objects hold: where a frame may begin, as the framing of protocols has it, and a placeholder.
_FUNCTIONS = re.compile(
    r"wirewitness\.(?:analyser\.tcp\.flow_table:_nobody|dissectors\.\w+\.framing:(?:_?candidates|_zero_bytes))"
)
_LISTED: Mapping[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "frozenset": frozenset}
_MAPPINGS: Mapping[str, type[dict[Any, Any]]] = {one.__name__: one for one in (dict, Counter, OrderedDict)}
_DTYPES = frozenset("?bBhHiIlLqQfd")


class StateError(ValueError):
    """A table that is no state of ours."""


def to_table(value: Any) -> pa.Table:
    """The value and all that belongs to it; itself in the last row. TypeError for what has no kind."""
    writer = _Writer()
    writer.rows.append((json.dumps(writer.reference(value)), None))
    values, data = zip(*writer.rows, strict=True)
    return pa.table([pa.array(values, pa.string()), pa.array(data, pa.binary())], schema=SCHEMA)


def from_table(table: pa.Table) -> Any:
    """The value again. Raises StateError."""
    if not table.schema.equals(SCHEMA) or not table.num_rows:
        raise StateError("it has other columns")
    values = table.column("value")
    most = state_values(values.nbytes)
    if sum(pc.sum(pc.count_substring(values, one)).as_py() or 0 for one in ",[{") > most:
        raise StateError(f"it holds more than {most:,} values")
    try:
        reader = _Reader(table)
        return reader.value(reader.rows[-1])
    except StateError:
        raise
    except (ArithmeticError, AttributeError, ImportError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StateError(f"it cannot be read: {type(error).__name__}") from error


class _Writer:
    def __init__(self) -> None:
        self.rows: list[tuple[str, bytes | None]] = []
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []  # an id is another's once an object is gone

    def reference(self, value: Any) -> Any:
        """The value itself where JSON has it, else a list with the number of its row."""
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        known = self._numbers.get(id(value))
        if known is None:
            known = self._numbers[id(value)] = len(self.rows)
            self._held.append(value)
            self.rows.append(("", None))
            told, data = self._told(value)
            self.rows[known] = (json.dumps(told), data)
        return [known]

    def _all(self, values: Any) -> list[Any]:
        return [self.reference(value) for value in values]

    def _told(self, value: Any) -> tuple[list[Any], bytes | None]:
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            return [kind.__name__, *self._all(value)], None
        if kind in _MAPPINGS.values():
            return [kind.__name__, *self._all(part for item in value.items() for part in item)], None
        if kind is deque:
            return ["deque", value.maxlen, *self._all(value)], None
        if kind in (bytes, bytearray):
            return [kind.__name__], bytes(value)
        if kind is float:
            return ["float", repr(value)], None
        if kind is array:
            return ["numbers", value.typecode], value.tobytes()
        if isinstance(value, np.ndarray | np.generic):
            packed = np.ascontiguousarray(value)
            name = "array" if isinstance(value, np.ndarray) else "scalar"
            return [name, packed.dtype.char, list(np.shape(value))], packed.tobytes()
        if kind is pa.RecordBatch:
            with pa.BufferOutputStream() as stream:
                with pa.ipc.new_stream(stream, value.schema) as writer:
                    writer.write_batch(value)
                return ["batch"], stream.getvalue().to_pybytes()
        if kind is FunctionType:
            return ["function", _checked_function(f"{value.__module__}:{value.__qualname__}")], None
        if kind in (Dissector, Carrier):
            return [kind.__name__, value.name], None
        if kind is Fields:
            return ["Fields", *self._all(value.__reduce__()[1])], None
        if isinstance(value, Enum):
            return ["member", f"{kind.__module__}:{kind.__qualname__}", value.value], None
        return self._object(value), None

    def _object(self, value: Any) -> list[Any]:
        made = value.__reduce_ex__(4)
        if made[0] is not copyreg.__newobj__ or any(part is not None for part in made[3:]):  # type: ignore[attr-defined]
            raise TypeError(f"{type(value).__qualname__} has no form as data")
        cls, *arguments = made[1]
        name = f"{cls.__module__}:{cls.__qualname__}"
        if _class_of(name) is not cls:
            raise TypeError(f"{name} is another class")
        state = made[2] if len(made) > 2 else None
        return ["object", name, self.reference(arguments), self.reference(state)]


class _Reader:
    def __init__(self, table: pa.Table) -> None:
        self.rows = [json.loads(text) for text in table.column("value").to_pylist()]
        self._bytes = table.column("bytes")
        self._made: dict[int, Any] = {}
        self._begun: set[int] = set()

    def value(self, told: Any) -> Any:
        """What a reference stands for."""
        if not isinstance(told, list):
            return told
        (number,) = told
        if type(number) is not int or not 0 <= number < len(self.rows) - 1:
            raise StateError("it names a row that is not there")
        if number not in self._made:
            if number in self._begun:
                raise StateError("it holds itself")
            self._begun.add(number)
            self._make(number, *self.rows[number])
        return self._made[number]

    def _all(self, told: tuple[Any, ...]) -> list[Any]:
        return [self.value(one) for one in told]

    def _make(self, number: int, kind: str, *told: Any) -> None:
        """What may hold itself is known before its parts are made."""
        if kind == "list":
            self._made[number] = made = []
            made += self._all(told)
        elif kind in _MAPPINGS:
            self._made[number] = mapping = _MAPPINGS[kind]()
            parts = self._all(told)
            for key, value in zip(parts[::2], parts[1::2], strict=True):
                mapping[key] = value
        elif kind == "set":
            self._made[number] = members = set()
            members.update(self._all(told))
        elif kind == "deque":
            self._made[number] = queue = deque[Any](maxlen=told[0])
            queue.extend(self._all(told[1:]))
        elif kind == "object":
            self._object(number, *told)
        elif kind in _LISTED:
            self._made[number] = _LISTED[kind](self._all(told))
        else:
            self._made[number] = self._plain(number, kind, told)

    def _plain(self, number: int, kind: str, told: tuple[Any, ...]) -> Any:
        data = self._bytes[number].as_py()
        if kind == "bytes":
            return bytes(data)
        if kind == "bytearray":
            return bytearray(data)
        if kind == "float":
            return float(told[0])
        if kind in ("array", "scalar"):
            if told[0] not in _DTYPES:
                raise StateError("it holds numbers of no known kind")
            packed = np.frombuffer(data, np.dtype(told[0])).reshape(told[1]).copy()
            return packed if kind == "array" else packed[()]
        if kind == "numbers":
            if told[0] not in _DTYPES - {"?"}:
                raise StateError("it holds numbers of no known kind")
            return array(told[0], data)
        if kind == "batch":
            if held_bytes(pa.py_buffer(data)) > len(data):
                raise StateError("it holds rows that are packed")
            batch = pa.ipc.open_stream(data).read_next_batch()
            batch.validate(full=True)
            return batch
        if kind == "function":
            module, _, name = _checked_function(told[0]).partition(":")
            return getattr(import_module(module), name)
        if kind == "Fields":
            return Fields(*self._all(told))
        if kind == "member":
            return _member(*told)
        found: Any = dissector_of(told[0]) if kind == "Dissector" else CARRIERS.get(told[0])
        if kind not in ("Dissector", "Carrier"):
            raise StateError(f"it holds a {kind}")
        if found is None:
            raise StateError(f"it needs {told[0]}, which is not here")
        return found

    def _object(self, number: int, name: str, arguments: Any, state: Any) -> None:
        cls = _class_of(name)
        given = self.value(arguments)
        made: Any = tuple.__new__(cls, given) if issubclass(cls, tuple) else object.__new__(cls)
        self._made[number] = made
        if issubclass(cls, tuple) is False and given:
            raise StateError(f"{name} takes nothing")
        found = self.value(state)
        if hasattr(cls, "__setstate__"):  # of a frozen dataclass, or one that says how it is kept
            made.__setstate__(found)
            return
        for part in found if isinstance(found, tuple) else (found,):
            for attribute, value in (part or {}).items():
                object.__setattr__(made, attribute, value)


def _checked_function(name: str) -> str:
    if _FUNCTIONS.fullmatch(name) is None:
        raise StateError(f"{name} is not among the functions of a state")
    return name


def _member(name: str, value: Any) -> Enum:
    """The member of an enumeration that has this value."""
    cls = _class_of(name)
    if not issubclass(cls, Enum):
        raise StateError(f"{name} has no members")
    return cls(value)


def _class_of(name: str) -> type:
    """A class of the rooms whose objects are kept. StateError for any other."""
    module, _, path = name.partition(":")
    if not (module.startswith(_ROOMS) or module in _MODULES) or not path.isidentifier():
        raise StateError(f"{name} is not among the classes of a state")
    found = vars(import_module(module)).get(path)
    if not isinstance(found, type) or found.__module__ != module:
        raise StateError(f"{name} is not among the classes of a state")
    return found
