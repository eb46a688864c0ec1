"""Query shapes: what is kept, what is folded, what counts as the same."""

from __future__ import annotations

import datetime
from typing import Any

import bson
import bson.json_util
import pytest
from bson import ObjectId
from bson.int64 import Int64
from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.mongo.wire import Wire
from tests.support.mongo_messages import op_msg
from wirewitness.dissectors.mongo.bson_fields import ARRAY, DOCUMENT, Span, document
from wirewitness.dissectors.mongo.command_shapes import MAX_FIELDS, query_shape
from wirewitness.dissectors.mongo.shapes import (
    filter_shape,
    order_shape,
    pipeline_shape,
    projection_shape,
    update_shape,
)


def located(value: Any) -> tuple[bytes, Span]:
    """The value in the bytes of a document."""
    data = bson.encode({"v": value})
    span = document(data, 0, len(data)).fields[b"v"]
    assert span[0] in (DOCUMENT, ARRAY)
    return data, span


NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
FILTERS = [
    pytest.param({}, "{}", id="empty"),
    pytest.param({"a": 1}, '{"a":"?number"}', id="int32"),
    pytest.param({"a": Int64(1)}, '{"a":"?number"}', id="int64"),
    pytest.param({"a": 1.5}, '{"a":"?number"}', id="double"),
    pytest.param({"a": "x"}, '{"a":"?string"}', id="string"),
    pytest.param({"a": None}, '{"a":"?null"}', id="null"),
    pytest.param({"a": True}, '{"a":"?bool"}', id="bool"),
    pytest.param({"a": NOW}, '{"a":"?date"}', id="date"),
    pytest.param({"_id": bson.ObjectId(b"a" * 12)}, '{"_id":"?objectId"}', id="object id"),
    pytest.param({"a": b"x"}, '{"a":"?binData"}', id="binary"),
    pytest.param({"a": bson.Regex("^x")}, '{"a":"?regex"}', id="regex"),
    pytest.param({"b": 1, "a": 1}, '{"a":"?number","b":"?number"}', id="keys are sorted"),
    pytest.param({"a": {"$lt": 9, "$gte": 1}}, '{"a":{"$gte":"?number","$lt":"?number"}}', id="operators are sorted"),
    pytest.param({"a": {"$eq": 1}}, '{"a":"?number"}', id="$eq is equality"),
    pytest.param({"a": {"x": 1, "y": 2}}, '{"a":"?object"}', id="an embedded document is a literal"),
    pytest.param({"a": {"$in": [1, 2, 3]}}, '{"a":{"$in":"?array<?number>"}}', id="$in"),
    pytest.param({"a": {"$in": [1, "x"]}}, '{"a":{"$in":"?array<>"}}', id="$in of several types"),
    pytest.param({"a": [1, 2]}, '{"a":"?array<?number>"}', id="an array is a literal"),
    pytest.param({"$or": [{"a": 1}, {"a": 2}]}, '{"$or":[{"a":"?number"}]}', id="branches of one shape"),
    pytest.param({"$and": [{"b": "x"}, {"a": 1}]}, '{"$and":[{"a":"?number"},{"b":"?string"}]}', id="branches sorted"),
    pytest.param({"a": {"$not": {"$gt": 5}}}, '{"a":{"$not":{"$gt":"?number"}}}', id="$not"),
    pytest.param(
        {"a": {"$elemMatch": {"y": 1, "x": {"$lt": 2}}}}, '{"a":{"$elemMatch":{"x":{"$lt":"?number"},"y":"?number"}}}',
        id="$elemMatch",
    ),
    pytest.param({"$expr": {"$gt": ["$a", "$b"]}}, '{"$expr":{"$gt":["$a","$b"]}}', id="$expr keeps field paths"),
    pytest.param({"$text": {"$search": "x"}}, '{"$text":{"$search":"?string"}}', id="$text"),
    pytest.param({"a": "$b"}, '{"a":"?string"}', id="a text with $ is a literal"),
    pytest.param({'q"\n': 1}, '{"q\\"\\n":"?number"}', id="keys are JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "shape"), FILTERS)
def test_filters(value: dict[str, Any], shape: str) -> None:
    assert filter_shape(*located(value)) == shape


PIPELINES = [
    pytest.param([], "[]", id="empty"),
    pytest.param(
        [{"$match": {"b": 1, "a": "$x"}}, {"$limit": 5}],
        '[{"$match":{"a":"?string","b":"?number"}},{"$limit":"?number"}]', id="$match and $limit",
    ),
    pytest.param(
        [{"$group": {"n": {"$sum": 1}, "_id": "$k"}}, {"$sort": {"n": -1, "a": 1}}],
        '[{"$group":{"_id":"$k","n":{"$sum":"?number"}}},{"$sort":{"n":-1,"a":1}}]', id="$group and $sort",
    ),
    pytest.param(
        [{"$lookup": {"from": "b", "localField": "x", "foreignField": "y", "as": "z"}}, {"$unwind": "$z"}],
        '[{"$lookup":{"as":"z","foreignField":"y","from":"b","localField":"x"}},{"$unwind":"$z"}]', id="names are kept",
    ),
    pytest.param(
        [{"$project": {"a": 1, "b": 0, "c": {"$concat": ["$x", "lit"]}}}],
        '[{"$project":{"a":true,"b":false,"c":{"$concat":["$x","?string"]}}}]', id="$project",
    ),
    pytest.param(
        [{"$project": {"from": "secret", "as": {"$literal": "$x"}}}],
        '[{"$project":{"as":{"$literal":"?string"},"from":"?string"}}]', id="literals of a projection",
    ),
    pytest.param([{"$out": "other"}], '[{"$out":"other"}]', id="$out"),
    pytest.param([{"$match": {}}, {"$match": {}}], '[{"$match":{}}]', id="repeated stages are one"),
    pytest.param(
        [{"$facet": {"f": [{"$match": {"a": 1}}]}}], '[{"$facet":{"f":[{"$match":{"a":"?number"}}]}}]', id="$facet"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "shape"), PIPELINES)
def test_pipelines(value: list[Any], shape: str) -> None:
    assert pipeline_shape(*located(value)) == shape


UPDATES = [
    pytest.param({"$set": {"b": 1, "a": {"x": 1}}}, '{"$set":{"a":"?object","b":"?number"}}', id="$set"),
    pytest.param(
        {"$push": {"a": {"$each": [1], "$sort": {"x": -1}}}},
        '{"$push":{"a":{"$each":"?array<?number>","$sort":{"x":-1}}}}', id="$push",
    ),
    pytest.param({"a": 1, "b": 2}, '"?object"', id="a document that replaces"),
    pytest.param([{"$set": {"a": "$b"}}], '[{"$set":{"a":"$b"}}]', id="pipeline"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "shape"), UPDATES)
def test_updates(value: Any, shape: str) -> None:
    assert update_shape(*located(value)) == shape


def test_orders_and_projections_are_kept() -> None:
    assert order_shape(*located({"b": -1, "a": 1.0, "s": {"$meta": "textScore"}})) == (
        '{"b":-1,"a":1,"s":{"$meta":"textScore"}}'
    )
    assert projection_shape(*located({"b": 1, "a": {"$slice": 3}, "c": {"$elemMatch": {"x": 1}}})) == (
        '{"a":{"$slice":"?number"},"b":true,"c":{"$elemMatch":{"x":"?number"}}}'
    )


COMMANDS = [
    pytest.param({"find": "a"}, '{"filter":{}}', id="find without filter"),
    pytest.param({"find": "a", "filter": {}, "sort": {}, "projection": {}}, '{"filter":{}}', id="empty parts"),
    pytest.param({"aggregate": "a", "pipeline": []}, '{"pipeline":[]}', id="empty pipeline"),
    pytest.param({"distinct": "a", "key": "x.y"}, '{"query":{},"key":"x.y"}', id="distinct"),
    pytest.param({"count": "a", "query": {"x": 1}}, '{"query":{"x":"?number"}}', id="count"),
    pytest.param({"ping": 1}, None, id="no query"),
    pytest.param({"getMore": Int64(5), "collection": "a"}, None, id="getMore"),
]


@pytest.mark.parametrize(("command", "shape"), COMMANDS)
def test_commands(command: dict[str, Any], shape: str | None) -> None:
    data = bson.encode(command)
    assert query_shape(next(iter(command)), data, document(data, 0, len(data)).fields) == shape


def test_what_is_explained_has_the_shape() -> None:
    explain = {"explain": {"find": "a", "filter": {"x": 1}}, "verbosity": "queryPlanner", "$db": "d"}
    wire = Wire().client(op_msg(explain, 1)).finish()
    assert wire.command("command", "collection", "query_shape") == (
        "explain", "a", '{"find":{"filter":{"x":"?number"}}}'
    )  # fmt: skip


def ids(*commands: dict[str, Any]) -> list[tuple[Any, ...]]:
    wire = Wire().client(*(op_msg({**command, "$db": "d"}, number) for number, command in enumerate(commands, 1)))
    return wire.finish().commands("shape_id", "literals_id")


def test_shape_ids_tell_namespaces_commands_and_shapes_apart_and_nothing_else() -> None:
    same = ids({"find": "a", "filter": {"x": 1, "y": 2}}, {"limit": 3, "find": "a", "filter": {"x": 1, "y": 2}})[:1]
    shapes = ids(
        {"find": "a", "filter": {"y": 2, "x": 1}},
        {"find": "b", "filter": {"x": 1, "y": 2}},
        {"find": "a", "filter": {"x": 1, "y": "2"}},
        {"count": "a", "query": {"x": 1, "y": 2}},
        {"find": "a", "filter": {"x": 1, "y": 2}, "sort": {"x": 1}},
    )
    assert shapes[0][0] == same[0][0]
    assert len({shape for shape, _ in shapes}) == 5


def test_literals_ids_tell_values_apart() -> None:
    one, again, other = ids(*({"find": "a", "filter": {"x": value}} for value in (1, 1, 2)))
    assert one == again != other
    assert one[0] == other[0]


def document_ids(command: dict[str, Any], **sequences: list[dict[str, Any]]) -> Any:
    wire = Wire().client(op_msg({**command, "$db": "d"}, 1, sequences=list(sequences.items()))).finish()
    return wire.command("document_ids")


@pytest.mark.parametrize("value", [7, "seven", ObjectId(bytes(12)), 7.5, True, Int64(7)])
def test_an_insert_and_a_find_by_id_have_the_same_digest(value: Any) -> None:
    documents = [{"_id": value, "x": 1}, {"_id": "other"}]
    found = document_ids({"find": "a", "filter": {"_id": value}})
    assert len(found) == 1
    for made in (document_ids({"insert": "a", "documents": documents}),
                 document_ids({"insert": "a"}, documents=documents)):  # fmt: skip
        assert made[0] == found[0] != made[1]


def test_an_insert_tells_the_types_of_its_first_document() -> None:
    documents: list[dict[str, Any]] = [{"b": 1, "a": "x", "c": {"d": 1}, "e": [1]}, {"z": 1}]
    shape = '{"a":"?string","b":"?number","c":"?object","e":"?array<>"}'
    for wire in (
        Wire().client(op_msg({"insert": "a", "documents": documents, "$db": "d"}, 1)),
        Wire().client(op_msg({"insert": "a", "$db": "d"}, 1, sequences=[("documents", documents)])),
    ):
        assert wire.finish().command("document_shape") == shape
    many = {f"f{number}": number for number in range(MAX_FIELDS + 1)}
    wire = Wire().client(op_msg({"insert": "a", "documents": [many], "$db": "d"}, 1)).finish()
    assert wire.command("document_shape") is None


@pytest.mark.parametrize(
    "written",
    [
        ("update", "updates", [{"q": {"_id": 7}, "u": {"$set": {"x": 1}}}, {"q": {"x": 7}, "u": {"x": 2}}]),
        ("delete", "deletes", [{"q": {"_id": 7}, "limit": 1}, {"q": {"_id": {"$gt": 7}}, "limit": 0}]),
    ],
    ids=("update", "delete"),
)
def test_a_write_by_id_has_the_digest_of_a_find_and_no_other_write_has_one(written: Any) -> None:
    name, key, statements = written
    found = document_ids({"find": "a", "filter": {"_id": 7}})
    assert document_ids({name: "a", key: statements}) == found
    assert document_ids({name: "a"}, **{key: statements}) == found
    assert document_ids({name: "a"}, **{key: statements[1:]}) is None
    assert document_ids({name: "a"}, **{key: [{"limit": 1, "q": {"_id": 7}}]}) is None


def test_find_and_modify_by_id_has_the_digest_of_a_find() -> None:
    found = document_ids({"find": "a", "filter": {"_id": 7}})
    assert document_ids({"findAndModify": "a", "query": {"_id": 7}, "update": {"$inc": {"x": 1}}}) == found
    assert document_ids({"findAndModify": "a", "query": {"x": 7}, "update": {"$inc": {"x": 1}}}) is None


@pytest.mark.parametrize("name", ["findAndModify", "findandmodify"])
def test_find_and_modify_has_the_digest_of_the_document_that_it_gives(name: str) -> None:
    def of(value: Any) -> Any:
        asked = op_msg({name: "a", "query": {"x": 7}, "update": {"$inc": {"x": 1}}, "$db": "d"}, 1)
        return Wire().client(asked).server(op_msg({"value": value, "ok": 1.0}, 2, 1)).finish().command("document_ids")

    assert of({"_id": 7, "x": 1}) == document_ids({"find": "a", "filter": {"_id": 7}})
    assert of({"x": 1}) is None
    assert of(None) is None


@pytest.mark.parametrize(
    "inserted",
    [
        pytest.param({"shelf": 3, "_id": 7}, id="last, as Node's driver adds it"),
        pytest.param({"a": {"_id": 8}, "x_id": 9, "_id": 7, "z": 1}, id="another one inside, and a longer name"),
    ],
)
def test_an_id_that_does_not_stand_first_is_told_too(inserted: dict[str, Any]) -> None:
    found = document_ids({"find": "a", "filter": {"_id": 7}})
    assert document_ids({"insert": "a", "documents": [inserted]}) == found
    assert document_ids({"insert": "a"}, documents=[inserted]) == found


def test_an_id_inside_or_behind_very_many_fields_is_not_looked_for() -> None:
    many = {f"f{number}": number for number in range(MAX_FIELDS)}
    for inserted in ({"a": {"_id": 7}, "b": [{"_id": 7}]}, {**many, "_id": 7}):
        assert document_ids({"insert": "a", "documents": [inserted]}) is None


@pytest.mark.parametrize("filter_", [{}, {"x": 1}, {"_id": {"$in": [7]}}, {"_id": 7, "x": 1}, {"x": 1, "_id": 7}])
def test_a_find_for_more_or_less_than_one_id_has_none(filter_: dict[str, Any]) -> None:
    assert document_ids({"find": "a", "filter": filter_}) is None


def test_the_digests_of_an_insert_are_bounded_and_never_the_value() -> None:
    found = document_ids({"insert": "a"}, documents=[{"_id": number} for number in range(1000)])
    assert len(found) == 100
    assert all(0 <= one < 2**32 and one > 1000 for one in found)
    assert document_ids({"insert": "a"}, documents=[{"x": 1}]) is None


def test_statements_of_one_shape_are_one() -> None:
    updates = [{"q": {"x": i}, "u": {"$set": {"y": i}}, "multi": i == 3} for i in range(5)]
    wire = Wire().client(op_msg({"update": "a", "$db": "d"}, 1, sequences=[("updates", updates)])).finish()
    one = '{"q":{"x":"?number"},"u":{"$set":{"y":"?number"}}'
    assert wire.command("query_shape", "documents_sent") == (f'{{"updates":[{one}}},{one},"multi":true}}]}}', 5)


_values = st.recursive(
    st.one_of(st.integers(-(2**31), 2**31), st.text(max_size=5), st.booleans(), st.none(), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["a", "b", "$or", "$in", "$gt", "$match", "from", "$project"]), inner, max_size=3
        ),
    ),
    max_leaves=12,
)
SECRET = "zzSecretzz"


@given(st.dictionaries(st.sampled_from(["a", "b", "$or", "$and", "$expr"]), _values, max_size=4))
def test_any_filter_has_a_shape_that_is_json(value: dict[str, Any]) -> None:
    shape = filter_shape(*located(value))
    assert filter_shape(*located(dict(reversed(value.items())))) == shape
    bson.json_util.loads(shape)


def _with_secret(value: Any) -> Any:
    """All texts replaced by one."""
    if isinstance(value, str):
        return SECRET
    if isinstance(value, list):
        return [_with_secret(item) for item in value]
    return {key: _with_secret(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(st.dictionaries(st.sampled_from(["a", "b", "$or", "$and", "$expr"]), _values, max_size=4))
def test_no_text_of_a_filter_is_in_its_shape(value: dict[str, Any]) -> None:
    assert SECRET not in filter_shape(*located(_with_secret(value))).replace(f'"{SECRET}":', "")


def test_a_filter_of_masses_is_bounded() -> None:
    many = {f"k{number}": {"$gt": number} for number in range(20_000)}
    assert filter_shape(*located(many)) == '"?..."'
    assert len(filter_shape(*located({"$or": [many] * 3}))) < 200


@pytest.mark.parametrize(
    ("inserted", "seconds"),
    [
        pytest.param({"_id": ObjectId(bytes.fromhex("6a1b2c3d") + bytes(8)), "x": 1}, 0x6A1B2C3D, id="first"),
        pytest.param({"x": 1, "_id": ObjectId(bytes.fromhex("6a1b2c3d") + bytes(8))}, 0x6A1B2C3D, id="last"),
        pytest.param({"_id": 7}, None, id="a number"),
        pytest.param({"x": ObjectId(bytes(12))}, None, id="no _id"),
    ],
)
def test_an_insert_has_the_time_of_its_object_id(inserted: dict[str, Any], seconds: int | None) -> None:
    expected = None if seconds is None else seconds * 10**9
    for in_command in (True, False):
        body: dict[str, Any] = {"insert": "a", "$db": "d"} | ({"documents": [inserted]} if in_command else {})
        sequences = [] if in_command else [("documents", [inserted])]
        assert Wire().client(op_msg(body, 1, sequences=sequences)).finish().command("id_time") == expected
