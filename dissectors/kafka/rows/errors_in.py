"""Error codes inside a response: in, a decoded response; out, the first code that is not 0.

A response has its codes where its schema says; the function that looks there is written once for each API and version,
because every response passes through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import cast

from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.primitives import Value

ErrorFinder = Callable[[Value], int]


def _no_error(value: Value) -> int:
    return 0


@lru_cache(maxsize=1024)
def error_finder(api_key: int, version: int) -> ErrorFinder:
    """The function that gives the first error code that is not 0, outer ones first; 0 when there is none."""
    api = schema.api(api_key)
    if api is None:
        return _no_error
    body = list(_lines(api.response, version, "value", 1))
    if not body:
        return _no_error
    scope: dict[str, object] = {}
    exec("\n".join(["def find(value):", *body, "    return 0"]), scope)
    return cast(ErrorFinder, scope["find"])


def _lines(fields: tuple[schema.Field, ...], version: int, holder: str, depth: int) -> Iterator[str]:
    """Source lines that look at the error codes of one struct, then into its nested structs."""
    pad = "    " * depth
    present = [field for field in fields if field.versions.has(version)]
    for field in present:
        if field.name.endswith("error_code") and field.type == "int16" and not field.array:
            yield f"{pad}if {holder}[{field.name!r}]:"
            yield f"{pad}    return {holder}[{field.name!r}]"
    for field in present:
        inner = list(_lines(field.fields, version, f"v{depth}", depth + 1))
        if inner:
            found = f"{holder}[{field.name!r}]"
            yield f"{pad}for v{depth} in {found + ' or ()' if field.array else f'({found},) if {found} else ()'}:"
            yield from inner
