"""Tables of the context come in their registered order, those too to which it adds columns in memory."""

from __future__ import annotations

import pytest

import analyser
from analyser.context.stages import STAGE_OF
from analyser.registry.tables import TABLES
from tests.conftest import SAMPLES


@pytest.mark.parametrize("name", ["kafka_fenced_commit", "mqtt_qos2_stuck", "mongo_shapes_and_errors"])
def test_tables_are_in_their_order(name: str) -> None:
    with analyser.read(SAMPLES / f"{name}.pcapng") as analysis:
        for table in STAGE_OF.keys() & set(analysis.tables()):
            columns = analysis.arrow(table).select(list(TABLES[table].order))
            rows = [tuple((value is None, value) for value in row.values()) for row in columns.to_pylist()]
            assert rows == sorted(rows, key=_key), table


def _key(row: tuple[tuple[bool, object], ...]) -> tuple[object, ...]:
    return tuple((missing, "" if missing else value) for missing, value in row)
