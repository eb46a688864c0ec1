"""Bodies read together have the values of those read one by one, and none is taken that the decoder refuses."""

from __future__ import annotations

from itertools import compress
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support import kafka_encode
from tests.support.shares import share
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.lockstep.frames import SLACK
from wirewitness.dissectors.kafka.lockstep.batch_decode import first_errors
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.plan import ELEMENT, Elements, Fixed, Plan, Sized, Tagged, body_plan
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists, Reader, Texts, TooMany
from wirewitness.dissectors.kafka.rows.errors_in import error_finder
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.definitions import Direction
from wirewitness.dissectors.kafka.schema.primitives import text

PLANNED = [message for message in kafka_encode.MESSAGES if body_plan(*message) is not None]
EDGES = [message for message in PLANNED if kafka_encode.is_edge(*message[:2])]
BODIES = 40
# A changed count may lead to places where many more seem to follow; those are counted, too.
MOST = 1 << 24


def changed(body: bytes, random: Random) -> bytes:
    """The body with a byte changed, cut out or put in; half of them as they are."""
    kind = random.randrange(8)
    at = random.randrange(len(body) + 1)
    if kind == 0:
        return body[:at] + bytes([random.choice((0, 1, 127, 128, 255))]) + body[at + 1 :]
    if kind == 1:
        return body[:at] + body[at + 1 :]
    if kind == 2:
        return body[:at] + bytes([random.randrange(256)]) + body[at:]
    return body[:at] if kind == 3 else body


def expected(message: tuple[int, int, Direction], body: bytes) -> dict[str, Any] | None:
    """The value of a body that fills its frame, None where the decoder refuses it or leaves bytes."""
    decode = decoder(*message)
    assert decode is not None
    try:
        value, behind = decode(body, 0, len(body))
    except DecodeError:
        return None
    return value if behind == len(body) else None


def value_of(plan: Plan, columns: Columns, row: int, blob: Blob, start: int) -> dict[str, Any]:
    """One row's value as the decoder gives it. start: of its body, which `records` fields are counted from."""
    value: dict[str, Any] = {}
    for step in plan.steps:
        names = step.names if isinstance(step, Fixed | Tagged) else (step.name,)
        for name in names:
            value[name] = _field(step, columns[name], row, blob, start)
    return value


def _field(step: object, column: object, row: int, blob: Blob, start: int) -> Any:
    if isinstance(column, Texts):
        at, size = int(column.start[row]), int(column.size[row])
        return None if size < 0 else (at - start, blob.data[at : at + size])
    if isinstance(column, Lists):
        assert isinstance(step, Elements)
        if column.sizes[row] < 0:
            return None
        first = int(column.counts[:row].sum())
        made = [
            value_of(step.each, column.of, element, blob, start) for element in range(first, first + column.counts[row])
        ]
        return [one[ELEMENT] for one in made] if ELEMENT in column.of else made
    if column is None:
        return None
    assert isinstance(column, np.ndarray)
    return column[row].tobytes() if column.dtype.kind == "V" else column[row].item()


def same(told: Any, wanted: Any) -> bool:
    """Is a value of columns, whose texts are (position, bytes), what the decoder says?"""
    if isinstance(wanted, dict):
        return told.keys() == wanted.keys() and all(same(told[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return len(told) == len(wanted) and all(map(same, told, wanted))
    if isinstance(wanted, tuple):  # a `records` field: where it is
        return (told[0], len(told[1])) == wanted
    if isinstance(wanted, str):
        return text(told[1]) == wanted
    if isinstance(wanted, bytes) and isinstance(told, tuple):
        return told[1] == wanted
    return bool(told == wanted or (told != told and wanted != wanted))


@pytest.mark.parametrize("message", share(PLANNED, EDGES), ids=str)
def test_what_is_regular_has_the_values_of_the_decoder(message: tuple[int, int, Direction]) -> None:
    random = Random(str(message))
    plan = body_plan(*message)
    assert plan is not None
    bodies = [changed(kafka_encode.message(*message, random)[0], random) for _ in range(BODIES)]
    wanted = [expected(message, body) for body in bodies]
    blob = Blob(b"".join(bodies) + bytes(SLACK))
    ends = np.cumsum([len(body) for body in bodies])
    starts = ends - [len(body) for body in bodies]
    columns, irregular = Reader(blob, MOST).bodies(plan, starts, ends)
    regular = np.flatnonzero(~irregular)
    for row in regular.tolist():
        assert wanted[row] is not None
        assert same(value_of(plan, columns, row, blob, int(starts[row])), wanted[row])
    if message[2] == "response":
        while irregular.any():  # of fewer bodies more arrays are too uneven
            starts, ends, wanted = starts[~irregular], ends[~irregular], [*compress(wanted, (~irregular).tolist())]
            columns, irregular = Reader(blob, MOST).bodies(plan, starts, ends)
        find = error_finder(*message[:2])
        codes = first_errors(*message[:2], columns, len(starts)).tolist()
        assert codes == [find(value) for value in wanted if value is not None]


def test_most_messages_without_tagged_fields_are_regular() -> None:
    """The property above is worth what it compares."""
    random = Random(1)
    plan = body_plan(8, 7, "request")
    assert plan is not None
    bodies = [kafka_encode.message(8, 7, "request", random)[0] for _ in range(400)]
    ends = np.cumsum([len(body) for body in bodies])
    _, irregular = Reader(Blob(b"".join(bodies) + bytes(SLACK)), 1 << 20).bodies(
        plan, ends - [len(body) for body in bodies], ends
    )
    assert irregular.mean() < 0.1


def test_more_elements_than_may_be_read_are_not() -> None:
    plan = body_plan(3, 0, "request")
    assert plan is not None
    body = (10).to_bytes(4, "big") + b"\0\1t" * 10
    ends = np.arange(1, 101) * len(body)
    _, irregular = Reader(Blob(body * 100 + bytes(SLACK)), 1000).bodies(plan, ends - len(body), ends)
    assert not irregular.any()
    with pytest.raises(TooMany):
        Reader(Blob(body * 100 + bytes(SLACK)), 900).bodies(plan, ends - len(body), ends)


def test_steps_of_a_commit_are_few() -> None:
    """Fields of fixed size, and the length behind them, are read in one go."""
    plan = body_plan(8, 7, "request")
    assert plan is not None
    assert [type(step) for step in plan.steps] == [Fixed, Sized, Fixed, Sized, Fixed, Sized, Fixed, Elements]
