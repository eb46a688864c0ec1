"""Which independent encoder proves which message: every version of every API with a schema has one."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from dissectors.kafka import schema
from dissectors.kafka.schema import Direction
from tests.oracle.test_kio_gaps import CASES
from tests.support import kafka_encode, kio_messages


class Proof(NamedTuple):
    """The encoder whose bytes prove our decoder of one message; "" if none does."""

    key: int
    version: int
    direction: Direction
    oracle: str


def coverage() -> list[Proof]:
    """One row for each message that has a schema, ordered by key, direction and version."""
    java = {(case.key, case.version, case.direction): f"kafka-clients {case.release}" for case in CASES}
    rows = [
        Proof(*message, "kio" if kio_messages.entity_type(*message) else java.get(message, ""))
        for message in kafka_encode.MESSAGES
    ]
    return sorted(rows, key=lambda row: (row.key, row.direction, row.version))


def table(rows: list[Proof]) -> str:
    """The coverage as text, with neighbouring versions of one oracle in one line."""
    lines = [f"{'key':>3}  {'api':24} {'direction':10} {'versions':9} encoder"]
    for (key, direction, oracle), group in groupby(rows, key=lambda row: (row.key, row.direction, row.oracle)):
        versions = [row.version for row in group]
        span = str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"
        api = schema.api(key)
        lines.append(f"{key:3}  {api.name if api else '':24} {direction:10} {span:9} {oracle or 'none'}")
    return "\n".join(lines)


def test_every_message_has_an_independent_oracle() -> None:
    rows = coverage()
    print(table(rows))
    assert [row for row in rows if not row.oracle] == []
    assert len(rows) == len(set(rows)) == len(kafka_encode.MESSAGES) == 326
