"""Rows of every API and version from valid messages: whatever their values are, rows come out whole."""

from __future__ import annotations

from random import Random

import pytest

from tests.dissectors.kafka.test_decoder import Wire
from tests.support import kafka_encode
from tests.support.shares import pairs
from wirewitness.dissectors.kafka.rows.api_rows import API_ROWS
from wirewitness.dissectors.kafka.rows.fields import KAFKA_ROWS
from wirewitness.dissectors.kafka.schema import definitions as schema

FIND_COORDINATOR = 10  # has rows only where the error code is 0, which random values never are
VERSIONS = [
    (key, version)
    for key in API_ROWS
    if (api := schema.api(key)) is not None
    for version in range(api.versions.first, (api.versions.last or 0) + 1)
]
EDGES = [one for one in VERSIONS if kafka_encode.is_edge(*one)]


@pytest.mark.parametrize(("key", "version"), pairs(VERSIONS, EDGES), ids=str)
def test_rows_of_any_valid_messages(key: int, version: int) -> None:
    api = schema.api(key)
    assert api is not None
    tags = b"\0" if api.is_flexible(version) else b""
    random = Random(key * 100 + version)
    wire = Wire()
    for number in range(15):
        asked, _ = kafka_encode.message(key, version, "request", random)
        answer, _ = kafka_encode.message(key, version, "response", random)
        wire.request(key, version, number, tags + asked).response(number, tags + answer)
        wire.request(key, version, 100 + number, tags + asked)
        wire.response(200 + number, tags + answer)
    wire.finish()
    for table, rows in wire.out.tables().items():
        fields = KAFKA_ROWS.get(table)
        assert fields is None or all(len(row) == len(fields) for row in rows), table
    made = sum(len(wire.out.rows(table) or ()) for table in API_ROWS[key].tables)
    assert made or key == FIND_COORDINATOR
