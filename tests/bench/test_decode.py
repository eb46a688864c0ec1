"""The messages of the decode profile are whole ones, and both readers read the same out of them."""

from __future__ import annotations

import pytest

from tests.bench.decode import HOT_KEYS, RECORDS_BYTES, costs, ordinary, readers
from tests.oracle.test_kio import with_records
from tests.support import kio_messages
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile import decoder

NEWEST: list[tuple[int, int, schema.Direction]] = [
    (0, 13, "request"),
    (1, 18, "response"),
    (8, 10, "request"),
    (12, 4, "response"),
    (3, 13, "response"),
]


@pytest.mark.parametrize(("key", "version", "direction"), NEWEST)
def test_both_read_the_same(key: int, version: int, direction: schema.Direction) -> None:
    kind = kio_messages.entity_type(key, version, direction)
    decode = decoder(key, version, direction)
    assert kind is not None
    assert decode is not None
    entity = ordinary(kind)
    body = kio_messages.encode(entity)
    assert with_records(decode(body, 0, len(body))[0], body) == kio_messages.expected(entity)
    assert (b"r" * RECORDS_BYTES in body) == (key in (0, 1))


def test_bytes_that_one_does_not_read_to_the_end_are_refused() -> None:
    kind = kio_messages.entity_type(12, 4, "request")
    assert kind is not None
    body = kio_messages.encode(ordinary(kind))
    with pytest.raises(ValueError, match="45 bytes, read"):
        readers(12, 4, "request", kind, body + b"\0")


@pytest.mark.exhaustive
def test_every_version_that_kio_has_is_measured() -> None:
    found = {(cost.api, cost.version, cost.direction) for cost in costs(1, 0.00001) if cost.ours_ns > 0 < cost.kio_ns}
    wanted = [one for one in kio_messages.versions() if one[0] in HOT_KEYS]
    assert len(found) == len(wanted) > 100
