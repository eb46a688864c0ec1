"""Error codes inside a response: where a schema has them, and the first that is not 0."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dissectors.kafka import schema
from dissectors.kafka.rows import Value


class ErrorPlan(NamedTuple):
    """Fields of one struct that hold an error code, and the fields in which to look on."""

    own: tuple[str, ...]
    nested: tuple[tuple[str, bool, ErrorPlan], ...]


_NOTHING = ErrorPlan((), ())


@lru_cache(maxsize=1024)
def error_plan(api_key: int, version: int) -> ErrorPlan:
    """Where the responses of an API and version hold error codes."""
    api = schema.api(api_key)
    return _NOTHING if api is None else _plan(api.response, version)


def _plan(fields: tuple[schema.Field, ...], version: int) -> ErrorPlan:
    own = []
    nested = []
    for field in fields:
        if not field.versions.has(version):
            continue
        if field.name.endswith("error_code") and field.type == "int16":
            own.append(field.name)
        elif field.fields:
            inner = _plan(field.fields, version)
            if inner != _NOTHING:
                nested.append((field.name, field.array, inner))
    return ErrorPlan(tuple(own), tuple(nested))


def first_error(value: Value, plan: ErrorPlan) -> int:
    """The first error code that is not 0, outer ones before inner ones; 0 when there is none."""
    for name in plan.own:
        code: int = value[name]
        if code:
            return code
    for name, array, inner in plan.nested:
        found = value[name]
        if not found:
            continue
        for item in found if array else (found,):
            code = first_error(item, inner)
            if code:
                return code
    return 0
