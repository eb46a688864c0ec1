"""What decoding one message costs, beside kio's native reader (Rust) on the same bytes.

In: nothing. Out: a `Cost` for each version and direction of the APIs that fill captures. The messages are kio's own
encodings of ordinary values: 3 elements in each array, texts of 12 letters, 1,000 bytes of records, a tagged field only
where it has a value. kio gives dataclasses, wirewitness dicts; both read the whole body and must end at its last byte.
kio's reader aborts the process on hostile lengths: it gets nothing but what kio wrote.
"""

from __future__ import annotations

import datetime
import timeit
import uuid
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from types import NoneType
from typing import Any, NamedTuple, get_args

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.serial._implicit_defaults import get_tagged_field_default

from tests.support import kio_messages
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.api_keys import api_name
from wirewitness.dissectors.kafka.schema.compile import decoder

HOT_KEYS = (0, 1, 8, 12, 3)  # Produce, Fetch, OffsetCommit, Heartbeat, Metadata
ELEMENTS = 3
RECORDS_BYTES = 1000
NS = 1_000_000_000
_VALUES: dict[str, Any] = {
    "bool": True,
    "string": "twelve-chars",
    "bytes": b"x" * 40,
    "records": b"r" * RECORDS_BYTES,
    "uuid": uuid.UUID(int=0x1234_5678_9ABC_4DEF_8123_4567_89AB_CDEF),
    "float64": 0.5,
    "error_code": ErrorCode.none,
    "timedelta_i32": datetime.timedelta(milliseconds=500),
    "timedelta_i64": datetime.timedelta(milliseconds=500),
    "datetime_i64": datetime.datetime(2026, 9, 1, tzinfo=datetime.UTC),
}


class Cost(NamedTuple):
    """Time for one message, the best of several rounds, collector off."""

    api: str
    version: int
    direction: str
    size_bytes: int
    ours_ns: float
    kio_ns: float

    @property
    def ratio(self) -> float:
        """Our time by kio's."""
        return self.ours_ns / self.kio_ns


def costs(rounds: int, round_s: float) -> Iterator[Cost]:
    """Every message of the hot APIs that kio has, measured in ROUNDS of ROUND_S each, the two readers in turn."""
    for key in HOT_KEYS:
        api = schema.api(key)
        assert api is not None
        for version in range(api.versions.first, (api.versions.last or 0) + 1):
            for direction in ("request", "response"):
                kind = kio_messages.entity_type(key, version, direction)
                if kind is not None:
                    body = kio_messages.encode(ordinary(kind))
                    times = _in_turn(readers(key, version, direction, kind, body), rounds, round_s)
                    yield Cost(api_name(key), version, direction, len(body), *times)


def ordinary(kind: Any) -> Any:
    """An instance of a kio dataclass as described above."""
    return kind(**{one.name: _field(one) for one in fields(kind)})


def readers(key: int, version: int, direction: schema.Direction, kind: type, body: bytes) -> list[timeit.Timer]:
    """Timers of the two readers. Raises ValueError when one of them does not end at the last byte of BODY."""
    decode = decoder(key, version, direction)
    read: Any = entity_reader(kind)
    if decode is None:
        raise ValueError(f"no decoder for key {key} version {version} {direction}")
    size = len(body)
    ends = decode(body, 0, size)[1], read(body, 0)[1]
    if ends != (size, size):
        raise ValueError(f"key {key} version {version} {direction}: {size} bytes, read {ends}")
    names = {"decode": decode, "read": read, "body": body, "size": size}
    return [timeit.Timer(call, globals=names) for call in ("decode(body, 0, size)", "read(body, 0)")]


def _in_turn(timers: list[timeit.Timer], rounds: int, round_s: float) -> list[float]:
    numbers = [max(1, int(round_s / max(min(timer.repeat(3, 10)) / 10, 1e-8))) for timer in timers]
    best = [float("inf")] * len(timers)
    for _ in range(rounds):
        for index, (timer, number) in enumerate(zip(timers, numbers, strict=True)):
            best[index] = min(best[index], timer.timeit(number) / number * NS)
    return best


def _field(one: Field[Any]) -> Any:
    if "tag" in one.metadata:
        return get_tagged_field_default(one)
    return _typed(one.type, one.metadata.get("kafka_type", ""))


def _typed(kind: Any, kafka_type: str) -> Any:
    arguments = get_args(kind)
    if NoneType in arguments:
        return _typed(next(one for one in arguments if one is not NoneType), kafka_type)
    if arguments:  # tuple[X, ...]
        return tuple(_typed(arguments[0], kafka_type) for _ in range(ELEMENTS))
    if is_dataclass(kind):
        return ordinary(kind)
    return 7 if kafka_type in kio_messages.INTEGERS else _VALUES[kafka_type]
