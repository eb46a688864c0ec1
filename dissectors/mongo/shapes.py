"""Query shapes: what is asked, without the values.

In: the bytes of filters, pipelines, updates, sort orders. Out: JSON text in which keys are kept and literals are
replaced by their types, written as MongoDB's $queryStats does ("?number", "?array<?string>"). What does not change the
meaning does not change the shape: keys are sorted where order does not count, `{a: {$eq: 1}}` is `{a: 1}`, branches of
$and, $or and $nor of one shape are one, arrays of literals are one marker. Kept as they are: sort orders, projections
by 0 and 1, field paths ("$price") and names of collections and fields in stages. Limits: depth and elements; what lies
beyond is "?object" or "?...".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache

from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    BOOL,
    DOCUMENT,
    DOUBLE,
    INT32,
    INT64,
    STRING,
    Span,
    boolean,
    element_spans,
    inner,
    integer,
    text,
)

MAX_DEPTH = 60
MAX_ELEMENTS = 3000
MAX_ARRAY = 1000
MAX_KEY_BYTES = 1024

MARKERS = {
    1: "?number",
    2: "?string",
    3: "?object",
    4: "?array<>",
    5: "?binData",
    6: "?undefined",
    7: "?objectId",
    8: "?bool",
    9: "?date",
    10: "?null",
    11: "?regex",
    12: "?dbPointer",
    13: "?javascript",
    14: "?symbol",
    15: "?javascriptWithScope",
    16: "?number",
    17: "?timestamp",
    18: "?number",
    19: "?number",
    0x7F: "?maxKey",
    0xFF: "?minKey",
}
_QUOTED = {kind: f'"{marker}"' for kind, marker in MARKERS.items()}
_OBJECT, MORE = '"?object"', '"?..."'

_BRANCHES = frozenset({b"$and", b"$or", b"$nor"})
# Stages and what of their arguments names collections or fields, or is one of a few words.
_NAMES: dict[bytes, frozenset[bytes]] = {
    b"$lookup": frozenset({b"from", b"localField", b"foreignField", b"as"}),
    b"$graphLookup": frozenset({b"from", b"connectFromField", b"connectToField", b"as", b"depthField"}),
    b"$unwind": frozenset({b"path", b"includeArrayIndex"}),
    b"$merge": frozenset({b"into", b"on", b"db", b"coll", b"whenMatched", b"whenNotMatched"}),
    b"$out": frozenset({b"db", b"coll"}),
    b"$unionWith": frozenset({b"coll"}),
    b"$geoNear": frozenset({b"distanceField", b"includeLocs", b"key"}),
    b"$changeStream": frozenset({b"fullDocument", b"fullDocumentBeforeChange"}),
    b"$densify": frozenset({b"field", b"partitionByFields"}),
    b"$fill": frozenset({b"partitionByFields"}),
}
# Stages whose whole argument is a name or some.
_NAMED = frozenset({b"$count", b"$out", b"$unset", b"$merge", b"$unionWith"})


class _Budget:
    """How many elements one shape may still look at."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS


_Shaper = Callable[[bytes, Span, int, _Budget], str]


@lru_cache(maxsize=8192)
def _key_text(key: bytes) -> str:
    return json.dumps(key.decode("utf-8", "replace"), ensure_ascii=False) + ":"


def key_text(key: bytes) -> str:
    """A key as JSON text with its colon."""
    return _key_text(key[:MAX_KEY_BYTES])


def filter_shape(data: bytes, span: Span) -> str:
    """The shape of a filter."""
    return _match(data, span, 0, _Budget())


def pipeline_shape(data: bytes, span: Span) -> str:
    """The shape of an aggregation pipeline, or of an update that is one."""
    return _expression(data, span, 0, _Budget())


def update_shape(data: bytes, span: Span) -> str:
    """The shape of an update: operators, a pipeline, or a document that replaces."""
    if span[0] == ARRAY:
        return pipeline_shape(data, span)
    return _condition(data, span, 0, _Budget())


def order_shape(data: bytes, span: Span) -> str:
    """A sort order or index key: it is part of the shape as it is."""
    return _order(data, span, 0, _Budget())


def projection_shape(data: bytes, span: Span) -> str:
    """The shape of a projection."""
    return _projection(data, span, 0, _Budget())


def name_shape(data: bytes, span: Span) -> str:
    """The name of a field."""
    return _name(data, span, 0, _Budget())


def _object(data: bytes, span: Span, depth: int, budget: _Budget, shaper: Callable[[bytes], _Shaper]) -> str:
    """A document with sorted keys; `shaper` tells by its key how a value is shaped."""
    fields = inner(data, span)
    if depth > MAX_DEPTH:
        return _OBJECT
    budget.left -= len(fields)
    if budget.left < 0:
        return MORE
    parts = [key_text(key) + shaper(key)(data, fields[key], depth + 1, budget) for key in sorted(fields)]
    return "{" + ",".join(parts) + "}"


def _marker(data: bytes, span: Span, _depth: int, _budget: _Budget) -> str:
    """A literal. Arrays of one type say which."""
    kind = span[0]
    if kind != ARRAY:
        return _QUOTED.get(kind, _OBJECT)
    kinds = {MARKERS.get(element[0]) for element in element_spans(data, span, MAX_ARRAY)}
    return f'"?array<{kinds.pop()}>"' if len(kinds) == 1 else '"?array<>"'


def _match(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """A filter: fields with literals or conditions, and operators on the whole."""
    if span[0] != DOCUMENT:
        return _marker(data, span, depth, budget)
    return _object(data, span, depth, budget, _match_shaper)


def _match_shaper(key: bytes) -> _Shaper:
    return _MATCH_SHAPERS.get(key, _condition)


def _branches(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """The branches of $and, $or, $nor: each shape once, sorted."""
    if span[0] != ARRAY or depth > MAX_DEPTH:
        return _marker(data, span, depth, budget)
    elements = element_spans(data, span, MAX_ARRAY)
    budget.left -= len(elements)
    if budget.left < 0:
        return MORE
    return "[" + ",".join(sorted({_match(data, element, depth + 1, budget) for element in elements})) + "]"


def _condition(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """The value of a field in a filter or update: a literal, or a document of operators."""
    kind, start, _ = span
    if kind != DOCUMENT or data[start + 5 : start + 6] != b"$":
        return _marker(data, span, depth, budget)
    fields = inner(data, span)
    if len(fields) == 1 and b"$eq" in fields:
        return _marker(data, fields[b"$eq"], depth, budget)
    return _object(data, span, depth, budget, _operator_shaper)


def _operator_shaper(key: bytes) -> _Shaper:
    return _OPERATOR_SHAPERS.get(key, _fields_of_operator)


def _fields_of_operator(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """The argument of an operator: of `$set: {a: 1}` the fields are kept."""
    if span[0] != DOCUMENT:
        return _marker(data, span, depth, budget)
    return _object(data, span, depth, budget, _match_shaper)


def _expression(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """An aggregation expression, a stage or a list of them."""
    kind = span[0]
    if kind == STRING:
        path = data[span[1] + 4 : span[1] + 5] == b"$"
        return _name(data, span, depth, budget) if path else _QUOTED[STRING]
    if kind == DOCUMENT:
        return _object(data, span, depth, budget, _expression_shaper)
    if kind != ARRAY or depth > MAX_DEPTH:
        return _QUOTED.get(kind, _OBJECT)
    elements = element_spans(data, span, MAX_ARRAY)
    budget.left -= len(elements)
    if budget.left < 0:
        return MORE
    shapes: list[str] = []
    for element in elements:
        shape = _expression(data, element, depth + 1, budget)
        if not shapes or shapes[-1] != shape:
            shapes.append(shape)
    if shapes and all(shape.startswith('"?') for shape in shapes):
        return _marker(data, span, depth, budget)
    return "[" + ",".join(shapes) + "]"


def _expression_shaper(key: bytes) -> _Shaper:
    return _EXPRESSION_SHAPERS.get(key, _expression)


def _stage_of_names(key: bytes) -> _Shaper:
    """Shapes the argument of a stage that names collections and fields."""
    names = _NAMES.get(key, frozenset())

    def shaper(name: bytes) -> _Shaper:
        return _name if name in names else _expression_shaper(name)

    def stage(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
        if span[0] == DOCUMENT:
            return _object(data, span, depth, budget, shaper)
        return _name(data, span, depth, budget) if key in _NAMED else _expression(data, span, depth, budget)

    return stage


def _name(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """A name, or several; anything else is an expression."""
    if span[0] == STRING:
        return json.dumps((text(data, span) or "")[:MAX_KEY_BYTES], ensure_ascii=False)
    if span[0] != ARRAY or depth > MAX_DEPTH:
        return _expression(data, span, depth, budget)
    elements = element_spans(data, span, MAX_ARRAY)
    budget.left -= len(elements)
    if budget.left < 0:
        return MORE
    return "[" + ",".join(_name(data, element, MAX_DEPTH + 1, budget) for element in elements) + "]"


def _order(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """Fields and directions in their order; {$meta: "textScore"} is kept too."""
    if span[0] != DOCUMENT:
        return _number(data, span, depth, budget)
    fields = inner(data, span)
    budget.left -= len(fields)
    if budget.left < 0 or depth > MAX_DEPTH:
        return MORE
    parts = (
        key_text(key) + (_name if key == b"$meta" else _order)(data, value, depth + 1, budget)
        for key, value in fields.items()
    )
    return "{" + ",".join(parts) + "}"


def _number(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """A number or boolean that is no literal but says how."""
    if span[0] == BOOL:
        return "true" if boolean(data, span) else "false"
    value = integer(data, span) if span[0] in (INT32, INT64, DOUBLE) else None
    return _marker(data, span, depth, budget) if value is None else str(value)


def _projection(data: bytes, span: Span, depth: int, budget: _Budget) -> str:
    """Fields by 0 and 1, or computed ones."""
    if span[0] == DOCUMENT:
        return _object(data, span, depth, budget, _projection_shaper)
    if span[0] in (INT32, INT64, DOUBLE, BOOL):
        return "true" if boolean(data, span) else "false"
    return _expression(data, span, depth, budget)


def _projection_shaper(key: bytes) -> _Shaper:
    if key == b"$elemMatch":
        return _match
    return _expression_shaper(key) if key.startswith(b"$") else _projection


_OPERATOR_SHAPERS: dict[bytes, _Shaper] = {
    b"$eq": _marker,
    b"$elemMatch": _match,
    b"$not": _condition,
    b"$sort": _order,
}
_MATCH_SHAPERS: dict[bytes, _Shaper] = {
    **dict.fromkeys(_BRANCHES, _branches),
    b"$expr": _expression,
    b"$jsonSchema": _marker,
    **dict.fromkeys((b"$text", b"$comment", b"$where"), _fields_of_operator),
}
_EXPRESSION_SHAPERS: dict[bytes, _Shaper] = {
    b"$match": _match,
    b"query": _match,
    b"restrictSearchWithMatch": _match,
    b"$sort": _order,
    b"sortBy": _order,
    b"$project": _projection,
    b"$literal": _marker,
    b"$documents": _marker,
    **{key: _stage_of_names(key) for key in (*_NAMES, *_NAMED)},
}
