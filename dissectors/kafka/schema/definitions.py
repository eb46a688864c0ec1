"""The wire format of Kafka's APIs as data: `.kafka` text files in, frozen schema values out.

A file holds comments (`#`), one line `api KEY NAME  versions A-B  flexible C+` (or `flexible none`), then the blocks
`request` and `response`. A field is one line, indented by two spaces more than its parent:

    name  type  versions  null VERSIONS  tag NUMBER  secret

Types: bool int8 int16 int32 int64 uint16 uint32 float64 uuid string bytes records struct, `[type]` for an array. A `?`
at the end says that the value may be null (in all versions of the field; `null 2-7` narrows it). Versions are `4`,
`2-4`, `6+`, or left out for all that the parent has. `tag` makes it a tagged field; those need flexible versions.
Records of Kafka's own topics have files of the same form (`internal/TOPIC`): `record TYPE NAME` instead of `api KEY
NAME`, and blocks `key` and `value`. Their versions are those of the value; a key has no version and is never flexible.
`secret` marks strings and bytes that prove who somebody is: decoders give MASKED in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal, NamedTuple

Direction = Literal["request", "response"]

SCALARS = frozenset({"bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "uuid"})
SIZED = frozenset({"string", "bytes", "records"})
NULLABLE = SIZED | {"struct"}
# What stands for a secret value, whatever it was; null stays null.
MASKED: dict[str, str | bytes] = {"string": "***", "bytes": b"***"}
MAX_DEPTH = 8

_API = re.compile(r"(?m)^(?:api|record) (\d+) ([A-Z]\w*) +versions (\d+)(?:-(\d+))? +flexible (?:(\d+)\+|none)")
_BLOCKS = {"request": "request", "response": "response", "key": "request", "value": "response"}
_FIELD = re.compile(
    r"([a-z]\w*) +(\[?)([a-z]\w*)(\]?)(\??)"
    r"(?: +(\d+(?:\+|-\d+)?))?(?: +null (\d+(?:\+|-\d+)?))?(?: +tag (\d+))?( +secret)?"
)


class SchemaError(ValueError):
    """A schema file breaks its own rules; the text begins with file and line number."""


class Versions(NamedTuple):
    """A range of API versions, both ends included; `last` is None for "and every later one"."""

    first: int
    last: int | None

    def has(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)

    def within(self, outer: Versions) -> bool:
        return outer.has(self.first) and (outer.last is None or (self.last is not None and self.last <= outer.last))


@dataclass(frozen=True, slots=True)
class Field:
    """One field: where it exists, whether it may be null there, what is inside when it is a struct."""

    name: str
    type: str
    array: bool
    versions: Versions
    null: Versions | None
    tag: int | None
    fields: tuple[Field, ...]
    secret: bool = False

    def nullable(self, version: int) -> bool:
        return self.null is not None and self.null.has(version)


@dataclass(frozen=True, slots=True)
class Api:
    """Request and response of one API key in all its versions; `flexible` is the first flexible one, None for none."""

    key: int
    name: str
    versions: Versions
    flexible: int | None
    request: tuple[Field, ...]
    response: tuple[Field, ...]

    def fields(self, direction: Direction) -> tuple[Field, ...]:
        return self.request if direction == "request" else self.response

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible


class Head(NamedTuple):
    """What the first line says of an API; `flexible` is the first flexible version, None for none."""

    key: int
    name: str
    versions: Versions
    flexible: int | None


class _Line(NamedTuple):
    number: int
    depth: int
    text: str


@cache
def api(key: int) -> Api | None:
    """The schema of an API key, or None if there is no file for it. Raises SchemaError for a broken file."""
    name = _files().get(key)
    if name is None:
        return None
    parsed = parse(_apis().joinpath(name).read_text(encoding="utf-8"), name)
    if parsed.key != key:
        raise SchemaError(f"{name}: the file's name says key {key}, its text {parsed.key}")
    return parsed


def api_keys() -> tuple[int, ...]:
    """All keys that have a schema, ascending."""
    return tuple(sorted(_files()))


@cache
def records(topic: str) -> dict[int, Api]:
    """Record types of an internal topic by their numbers: keys as `request`, values as `response`."""
    files = [entry for entry in _internal().joinpath(topic).iterdir() if entry.name.endswith(".kafka")]
    return {one.key: one for one in (parse(file.read_text(encoding="utf-8"), file.name) for file in files)}


def read_all() -> None:
    """Read all files, of APIs and of records, so that none is opened later."""
    for key in api_keys():
        api(key)
    for topic in _internal().iterdir():
        if topic.is_dir():
            records(topic.name)


@cache
def _files() -> dict[int, str]:
    names = [entry.name for entry in _apis().iterdir() if entry.name.endswith(".kafka")]
    return {int(name.split("_", 1)[0]): name for name in sorted(names)}


def _apis() -> Traversable:
    return resources.files("wirewitness.dissectors.kafka").joinpath("apis")


def _internal() -> Traversable:
    return resources.files("wirewitness.dissectors.kafka").joinpath("internal")


def heads() -> Iterator[Head]:
    """The heads of all APIs, by their keys; no more of their files is understood. Raises SchemaError."""
    for name in _files().values():
        found = _API.search(_apis().joinpath(name).read_text(encoding="utf-8"))
        if found is None:
            raise SchemaError(f"{name}: no line `api KEY NAME  versions A-B  flexible C+`")
        yield _head(found)


def _head(match: re.Match[str]) -> Head:
    key, name, first, last, flexible = match.groups()
    return Head(int(key), name, Versions(int(first), int(last or first)), int(flexible) if flexible else None)


def parse(source: str, where: str = "schema") -> Api:
    """Parse the text of one `.kafka` file; `where` names it in errors. Raises SchemaError."""
    lines = list(_lines(source, where))
    if not lines:
        raise SchemaError(f"{where}: empty")
    head = _API.fullmatch(lines[0].text)
    if head is None:
        raise _error(where, lines[0], "expected `api KEY NAME  versions A-B  flexible C+`")
    key, api_name, versions, flexible = _head(head)
    blocks: dict[str, tuple[Field, ...]] = {}
    at = 1
    while at < len(lines):
        line = lines[at]
        name = _BLOCKS.get(line.text, "")
        if line.depth or not name or name in blocks:
            raise _error(where, line, "expected one `request` and one `response`")
        blocks[name], at = _fields(lines, at + 1, 1, versions, where)
    if len(blocks) != 2:
        raise SchemaError(f"{where}: needs a request and a response")
    parsed = Api(key, api_name, versions, flexible, blocks["request"], blocks["response"])
    _check_tags(parsed, where)
    return parsed


def _lines(source: str, where: str) -> Iterator[_Line]:
    for number, raw in enumerate(source.splitlines(), 1):
        content = raw.split("#", 1)[0].rstrip()
        if not content:
            continue
        indent = len(content) - len(content.lstrip(" "))
        line = _Line(number, indent // 2, content.strip())
        if indent % 2 or "\t" in content:
            raise _error(where, line, "indent with two spaces for each level")
        yield line


def _fields(lines: list[_Line], at: int, depth: int, outer: Versions, where: str) -> tuple[tuple[Field, ...], int]:
    """Fields from line `at` on that stand at `depth`; returns them and the first line that is not theirs."""
    found: list[Field] = []
    while at < len(lines) and lines[at].depth >= depth:
        line = lines[at]
        if line.depth > depth or depth > MAX_DEPTH:
            raise _error(where, line, "indented deeper than its parent allows")
        field, at = _field(lines, at, outer, where)
        for other in found:
            if other.name == field.name and _overlap(other.versions, field.versions):
                raise _error(where, line, f"second {field.name} in the same version")
            if field.tag is not None and other.tag == field.tag and _overlap(other.versions, field.versions):
                raise _error(where, line, f"second tag {field.tag}")
        found.append(field)
    return tuple(found), at


def _field(lines: list[_Line], at: int, outer: Versions, where: str) -> tuple[Field, int]:
    line = lines[at]
    match = _FIELD.fullmatch(line.text)
    if match is None:
        raise _error(where, line, "expected `name  type  versions  null VERSIONS  tag NUMBER  secret`")
    name, opened, base, closed, mark, versions_text, null_text, tag, secret = match.groups()
    versions = _versions(versions_text, outer)
    null = _versions(null_text, versions) if mark or null_text else None
    if base not in SCALARS | SIZED | {"struct"} or bool(opened) != bool(closed):
        raise _error(where, line, f"unknown type {opened}{base}{closed}")
    if mark and null_text:
        raise _error(where, line, "either `?` or `null`, not both")
    if not versions.within(outer) or (null is not None and not null.within(versions)):
        raise _error(where, line, "versions reach beyond those of the parent or the field")
    if null is not None and not opened and base not in NULLABLE:
        raise _error(where, line, f"{base} has no null")
    if secret and base not in MASKED:
        raise _error(where, line, f"{base} cannot be secret")
    nested, after = _fields(lines, at + 1, line.depth + 1, versions, where)
    if (base == "struct") != bool(nested):
        raise _error(where, line, "a struct, and only a struct, has fields inside")
    return Field(name, base, bool(opened), versions, null, int(tag) if tag else None, nested, bool(secret)), after


def _versions(source: str | None, outer: Versions) -> Versions:
    if source is None:
        return outer
    if source.endswith("+"):
        return Versions(int(source[:-1]), outer.last)
    first, _, last = source.partition("-")
    return Versions(int(first), int(last or first))


def _overlap(a: Versions, b: Versions) -> bool:
    return a.has(b.first) or b.has(a.first)


def _check_tags(parsed: Api, where: str) -> None:
    waiting = [*parsed.request, *parsed.response]
    while waiting:
        field = waiting.pop()
        waiting += field.fields
        if field.tag is not None and not parsed.is_flexible(field.versions.first):
            raise SchemaError(f"{where}: {field.name} has a tag before the first flexible version")


def _error(where: str, line: _Line, message: str) -> SchemaError:
    return SchemaError(f"{where}:{line.number}: {message}: {line.text!r}")
