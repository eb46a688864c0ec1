"""MON129 other-types: one application uses another type for a field than all others.

Finds
    Applications that ask for, or set, a field with a type (text, number, ObjectId, date) that no other application uses
    for it in that collection.

Why it matters
    To the server "42" and 42 are different values: a filter with the wrong type finds nothing, without an error, and a
    field that is set to another type is found by nobody who asks for the usual one, nor in its order.

How it decides
    Types stand in the query shape (fields of filters that are compared with a value, fields of $set, $inc, $mul, $min
    and $max) and in the shape of documents that are inserted (the first one of each command). Per collection and field:
    one application (address and name) used a type in at least 5 commands (least) that no other one used; all others
    together used one other type only, in at least 5 commands. null does not count, nor does the _id of what is inserted
    (drivers make one where the application has none), and all numbers are one type. It is told where the queries of the
    one with that field find nothing, nine tenths of them, and those of the others find something; or where it sets the
    field, and the others are two or more or it used their type as well before or after. What a filter finds is there
    with that type.

False alarms
    A field that holds several types on purpose.

What it cannot tell
    Types inside of inner documents, and of documents that replace others.

References
    MongoDB manual: comparison and sort order of BSON types, $type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    MAX_NAME,
    client_numbers,
    client_text,
    client_title,
    command_text,
    namespace,
)
from wirewitness.analyser.mongo.rules.use import USE, USE_COLUMNS, client_of, use_finding

_VALUES = ("?number", "?string", "?objectId", "?date", "?bool", "?binData", "?timestamp")
# Parts of shapes that compare fields with values, and those that set fields.
_FILTERS = ("filter", "query", "q")
_SETS = ("u", "update", "$set", "$setOnInsert", "$inc", "$mul", "$min", "$max")
_DEEPEST = 6


class _Use(NamedTuple):
    """Commands of one application that use a field with one type. sets: they write it."""

    row: Row
    kind: str
    sets: bool
    commands: int


def detect(frames: Frames, *, least: int = 5) -> Iterator[Finding]:
    """One finding for each field of this collection."""
    fields: dict[str, list[_Use]] = {}
    for row in rows_of(frames[USE]):
        for field, kind, sets in {*_used(row["query_shape"])}:
            fields.setdefault(field, []).append(_Use(row, kind, sets, row["commands"]))
        for inserted in json.loads(row["document_shapes"] or "[]"):
            for field, kind, _ in {*_typed(json.loads(inserted["shape"]), sets=True)}:
                fields.setdefault(field, []).append(_Use(row, kind, True, inserted["commands"]))
    for field, uses in fields.items():
        apart = _apart(uses, least)
        if apart is not None:
            yield _finding(field, *apart)


def _used(shape: str | None) -> Iterator[tuple[str, str, bool]]:
    """Fields of a shape with the types of their values; does it set them?"""
    try:
        value = json.loads(shape or "null")
    except (ValueError, RecursionError):
        return
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        held, depth = waiting.pop()
        if isinstance(held, list):
            waiting += [(one, depth + 1) for one in held if depth < _DEEPEST]
        elif isinstance(held, dict):
            for name, inner in held.items():
                if name in _FILTERS or name in _SETS:
                    yield from _typed(inner, name in _SETS)
                if (name in _SETS or name not in _FILTERS) and depth < _DEEPEST:
                    waiting.append((inner, depth + 1))


def _typed(document: Any, sets: bool) -> Iterator[tuple[str, str, bool]]:
    for field, value in document.items() if isinstance(document, dict) else ():
        kind = value
        if not sets and isinstance(value, dict):
            # {"$gt": "?number"} compares with a number, too; {"$in": "?array<?number>"} with several.
            kind = next((one for key, one in value.items() if key in _COMPARES), None)
        # Drivers make an ObjectId for documents without _id; other ids are a choice of the application.
        if isinstance(kind, str) and not field.startswith("$") and not (sets and field == "_id"):
            name = kind.removeprefix("?array<").rstrip(">") if kind.startswith("?array<?") and not sets else kind
            if name in _VALUES:
                yield field, name, sets


_COMPARES = ("$gt", "$gte", "$lt", "$lte", "$ne", "$in", "$nin", "$eq")


def _apart(uses: Sequence[_Use], least: int) -> tuple[list[_Use], list[_Use]] | None:
    """Who uses another type than all others, and these; None where it is nobody, or nobody knows who is wrong."""
    by_client: dict[tuple[Any, ...], list[_Use]] = {}
    for one in uses:
        by_client.setdefault(client_of(one.row), []).append(one)
    compared(len(uses))
    found = []
    for who, own in by_client.items():
        others = [one for key, theirs in by_client.items() if key != who for one in theirs]
        usual = {one.kind for one in others}
        odd = [one for one in own if one.kind not in usual]
        if len(usual) == 1 and len({one.kind for one in odd}) == 1 and min(_commands(odd), _commands(others)) >= least:
            found.append((odd, others, len(odd) < len(own)))
    # What a filter finds is there with that type. Who used the usual type as well has changed it.
    in_vain = [(own, others) for own, others, _ in found if _finds_nothing(own) and not _finds_nothing(others)]
    setting = [
        (own, others) for own, others, changed in found
        if any(one.sets for one in own) and (changed or len(by_client) > 2)
    ]  # fmt: skip
    told = in_vain or setting
    return told[0] if len(told) == 1 else None


def _commands(uses: Sequence[_Use]) -> int:
    return sum({(one.row["exchange_id"], one.kind, one.commands): one.commands for one in uses}.values())


def _finds_nothing(uses: Sequence[_Use]) -> bool:
    rows = {one.row["exchange_id"]: one.row for one in uses if not one.sets}.values()
    done = sum(row["succeeded"] for row in rows)
    return bool(done) and sum(row["without_effect"] for row in rows) >= 0.9 * done


def _words(uses: Sequence[_Use]) -> str:
    kinds: Mapping[str, str] = {"?objectId": "ObjectId", "?binData": "binary data", "?bool": "boolean"}
    kind = uses[0].kind
    return kinds.get(kind, kind.removeprefix("?"))


def _finding(field: str, own: list[_Use], others: list[_Use]) -> Finding:
    first = own[0].row
    names = names_text([*dict.fromkeys(client_title(one.row) for one in others)], 3)
    does = "sets" if any(one.sets for one in own) else "asks for"
    nothing = " Its queries with it find nothing." if _finds_nothing(own) else ""
    refused = {one.row["exchange_id"]: one.row for one in others if one.sets and one.row["errors"]}
    errors = sum(row["errors"] for row in refused.values())
    if errors and does == "sets":
        nothing += f" {errors:,} of these commands failed."
    name = printable(field, MAX_NAME)
    return use_finding(
        RULE,
        [one.row for one in own],
        severity="warning",
        title=f"{name} is {_words(own)} for {client_title(first)}, {_words(others)} for others",
        sentence=(
            f"{sentence_start(client_text(first))} {does} {name} of {namespace(first)} as {_words(own)} "
            f"({command_text(first)}, {count(_commands(own), 'command')}); {names} use {_words(others)} "
            f"({count(_commands(others), 'command')}).{nothing}"
        ),
        next_step="Let all applications use one type for the field, and convert what was written with another one.",
        numbers={
            "field": name,
            "type": _words(own),
            "others_type": _words(others),
            "commands": _commands(own),
            "breaches": _commands(own),
            "others_commands": _commands(others),
            "sets": does == "sets",
            **({"victims": [client_numbers(row, errors=row["errors"]) for row in refused.values()]} if errors else {}),
        },
    )


RULE = Rule(
    code="MON129",
    question="differs",
    name="other-types",
    severity="warning",
    confidence="high",
    reads={USE: (*USE_COLUMNS, "without_effect", "document_shapes", "errors")},
    partition_by=("database", "collection"),
    detect=detect,
    rows={USE: "coalesce(query_shape, document_shapes) IS NOT NULL AND collection IS NOT NULL"},
    suspects=f"SELECT database, collection FROM r_{USE} GROUP BY ALL "
    "HAVING count(DISTINCT (client_address, coalesce(app_name, ''))) > 1",
)
