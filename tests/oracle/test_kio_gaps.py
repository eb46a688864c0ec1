"""Messages that kio does not have: versions that Kafka 4.0 removed, early access, and those that came with 4.4.

The files in java_messages hold one block for each message: what it is and which release of kafka-clients wrote it, the
value that the Java client was given (`= ` and JSON; `hex:` before bytes; secrets as the decoder masks them), then the
bytes it wrote, grouped by field: hex, two spaces, the field, or `-` for a struct that has no bytes of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from tests.oracle.test_kio import with_records
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.definitions import Direction

FOLDER = Path(__file__).with_name("java_messages")
HEAD = re.compile(r"(\w+) v(\d+) (request|response), kafka-clients ([\d.]+)")
KEYS = {known.name: key for key, known in API_KEYS.items()}


class Case(NamedTuple):
    key: int
    version: int
    direction: Direction
    release: str
    value: dict[str, Any]
    body: bytes


def read_cases() -> Iterator[Case]:
    """Every block of every file. Raises ValueError for a block that is not written as it should be."""
    for path in sorted(FOLDER.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            head, *lines = block.strip().splitlines()
            match = HEAD.fullmatch(head)
            if match is None:
                raise ValueError(f"{path.name}: {head!r}")
            name, version, direction, release = match.groups()
            value = with_bytes(json.loads(" ".join(line[2:] for line in lines if line.startswith("= "))))
            fields = [line.split("  ")[0] for line in lines if not line.startswith(("= ", "- "))]
            body = bytes.fromhex("".join(fields))
            yield Case(KEYS[name], int(version), cast(Direction, direction), release, value, body)


def with_bytes(value: Any) -> Any:
    """The value with `hex:` strings as bytes."""
    if isinstance(value, dict):
        return {key: with_bytes(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_bytes(one) for one in value]
    if isinstance(value, str) and value.startswith("hex:"):
        return bytes.fromhex(value[4:])
    return value


CASES = list(read_cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key}-v{case.version}-{case.direction}")
def test_decodes_what_the_java_client_encodes(case: Case) -> None:
    decode = decoder(case.key, case.version, case.direction)
    assert decode is not None
    buf = b"\x01" + case.body + b"\xff" * 100
    value, behind = decode(buf, 1, 1 + len(case.body))
    assert with_records(value, buf) == case.value
    assert behind == 1 + len(case.body)
