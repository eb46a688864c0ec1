"""What is read of many documents at once is what is read of each."""

from __future__ import annotations

from random import Random
from typing import Any

import bson
import numpy as np
import pytest

from tests.dissectors.mongo.lockstep.talks import Values
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core.lockstep.frames import SLACK
from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    DOCUMENT,
    Span,
    boolean,
    integer,
    whole_fields,
)
from wirewitness.dissectors.mongo.command_shapes import add_shape, sent_ids
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values as Places
from wirewitness.dissectors.mongo.lockstep.layouts import layouts
from wirewitness.dissectors.mongo.lockstep.literals import (
    of_filter,
    of_pipeline,
    of_sequence,
    of_statements,
    of_update,
)
from wirewitness.dissectors.mongo.lockstep.numbers import booleans, integers
from wirewitness.dissectors.mongo.lockstep.query_shapes import ids_of_sections
from wirewitness.dissectors.mongo.lockstep.same_values import Literals, alike
from wirewitness.dissectors.mongo.messages import Message, Sequence
from wirewitness.dissectors.mongo.opcodes import OP_MSG
from wirewitness.dissectors.mongo.shapes import filter_shape, pipeline_shape, update_shape

TRIES = 1500 if RUNS_THE_REST else 200


def placed(parts: list[bytes], kind: int = DOCUMENT) -> tuple[Buffer, Places]:
    """Parts with a zero behind each, as it stands behind the last value of a document, and where each is."""
    sizes = np.array([len(part) for part in parts], np.int64)
    ends = np.cumsum(sizes + 1) - 1 + 3
    return Buffer(b"###" + b"\0".join(parts) + bytes(SLACK)), Places(kind, ends - sizes, ends)


def damaged(random: Random, part: bytes) -> bytes:
    at = random.randrange(len(part))
    return part if random.random() < 0.8 else part[:at] + random.randbytes(1) + part[at + 1 :]


def test_layouts_have_the_fields_of_each_document() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        values = Values(random)
        kinds = [values.document() | {"cursor": values.any()} for _ in range(3)]
        parts = [damaged(random, bson.encode(random.choice(kinds))) for _ in range(20)]
        buffer, where = placed(parts)
        read = 0
        for layout in layouts(buffer, where.start, where.end, {b"cursor"}, 1):
            for number, row in enumerate(layout.rows.tolist()):
                fields = whole_fields(buffer.data, int(where.start[row]), int(where.end[row]))
                assert fields is not None
                assert list(fields.items()) == [
                    (key, (kind, int(start[number]), int(end[number])))
                    for key, (kind, start, end) in layout.fields.items()
                ]
                for outer, inside in layout.inner.items():
                    _, start, end = fields[outer]
                    assert {key: (one.kind, int(one.start[number])) for key, one in inside.items()} == {
                        key: span[:2] for key, span in (whole_fields(buffer.data, start, end) or {}).items()
                    }
                read += 1
        whole = [whole_fields(part, 0, len(part)) for part in parts]
        assert read <= sum(fields is not None for fields in whole)
        assert read >= sum(_is_simple(part) for part in parts), seed


def _is_simple(part: bytes) -> bool:
    """Has it fields of usual types only, by pymongo?"""
    try:
        found = bson.decode(part)
    except Exception:
        return False
    usual = (int, float, bool, str, bytes, bson.ObjectId, type(None))
    again = bson.encode(found)
    return bool(found) and again == part and all(isinstance(value, usual) for value in found.values())


_SHAPED: tuple[tuple[int, Literals, Any, Any], ...] = (
    (DOCUMENT, of_filter, filter_shape, lambda values: values.filter()),
    (DOCUMENT, of_update, update_shape, lambda values: values.update()),
    (ARRAY, of_update, update_shape, lambda values: values.pipeline()),
    (ARRAY, of_pipeline, pipeline_shape, lambda values: values.pipeline()),
)


@pytest.mark.parametrize(("kind", "literals", "shape", "make"), _SHAPED)
def test_values_that_are_alike_have_one_shape(kind: int, literals: Literals, shape: Any, make: Any) -> None:
    fewer = 0
    for seed in range(TRIES):
        random = Random(seed)
        values = Values(random)
        made = [make(values) for _ in range(30)]
        parts = [damaged(random, _encoded(one)) for one in made]
        buffer, where = placed(parts, kind)
        codes, firsts = alike(buffer, where, literals)
        _, exactly = alike(buffer, where)
        fewer += len(exactly) - len(firsts)
        shapes = [shape(buffer.data, _span(where, row)) for row in range(len(parts))]
        assert [shapes[firsts[code]] for code in codes.tolist()] == shapes, seed
    assert fewer > 0


def test_statements_that_are_alike_have_one_shape() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        values = Values(random)
        name = random.choice(("update", "delete"))
        made = [values.statements(name) for _ in range(20)]
        listed = random.random() < 0.5
        parts = [_encoded(one) if listed else b"".join(map(bson.encode, one)) for one in made]
        buffer, where = placed([damaged(random, part) for part in parts], ARRAY)
        codes, firsts = alike(buffer, where, of_statements if listed else of_sequence)
        shapes = [_statements(buffer.data, name, _span(where, row), listed) for row in range(len(parts))]
        assert [shapes[firsts[code]] for code in codes.tolist()] == shapes, seed


def _statements(data: bytes, name: str, span: Span, listed: bool) -> str | None:
    key = f"{name}s".encode()
    sequences = () if listed else (Sequence(key, span[1], span[2], 1),)
    facts: dict[str, Any] = {"database": "d", "collection": "c"}
    fields = {key: span} if listed else {}
    add_shape(facts, name, fields, Message(OP_MSG, 0, data, span[1], span[2], fields, span[1], sequences))
    found: str | None = facts["query_shape"]
    return found


def _encoded(value: Any) -> bytes:
    if isinstance(value, list):
        return bson.encode({str(number): one for number, one in enumerate(value)})
    return bson.encode(value)


def _span(where: Places, row: int) -> Span:
    return where.kind, int(where.start[row]), int(where.end[row])


def test_ids_of_documents_are_those_of_one_by_one() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        values = Values(random)
        made = [[values.document() for _ in range(random.choice((0, 1, 5, 101)))] for _ in range(8)]
        buffer, where = placed([b"".join(_some_ids(random, values, one) for one in documents) for documents in made])
        spans = [_span(where, row) for row in range(len(made))]
        assert ids_of_sections(buffer, where) == [sent_ids(buffer.data, start, end, ()) for _, start, end in spans], (
            seed
        )


def _some_ids(random: Random, values: Values, document: dict[str, Any]) -> bytes:
    """A document with an _id, with none, with one that is not the first, or one that is broken inside."""
    begins = {"_id": random.choice(("text", "", bson.ObjectId(), 5, None, values.leaf()))}
    part = bson.encode(random.choice((begins | document, document, {"a": 1} | begins, {})))
    return part[:4] + damaged(random, part[4:-1] + b"#")[:-1] + part[-1:]


def test_numbers_are_those_of_one_by_one() -> None:
    buffer, where = placed(
        [bson.encode({"a": number})[7:-1] for number in (0.0, -2.5, 2.0**63, -(2.0**63), 1e300, float("nan"), 0.99)],
        bson.encode({"a": 1.0})[4],
    )
    for many, one in ((integers, integer), (booleans, boolean)):
        values, there = many(buffer, where)
        found = [value if known else None for value, known in zip(values.tolist(), there.tolist(), strict=True)]
        assert found == [one(buffer.data, _span(where, row)) for row in range(len(found))]
