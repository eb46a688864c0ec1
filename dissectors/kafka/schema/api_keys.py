"""Every Kafka API key: its name, its newest version and its first flexible version, from the heads of `apis/*.kafka`.

Flexible versions (KIP-482) have request header 2 and response header 1. The files follow ApiKeys and the message
definitions of Apache Kafka 4.4.0; keys 4 to 7, which Kafka 4.0 removed, those of 3.9.1.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.kafka.schema.definitions import heads


class ApiKey(NamedTuple):
    """`newest` is the highest version that is known, `flexible` the first flexible one, None if there is none."""

    name: str
    newest: int
    flexible: int | None


# Only the heads are read: 2 ms for all. The rest of a file is read when a message of it comes.
API_KEYS: dict[int, ApiKey] = {head.key: ApiKey(head.name, head.versions.last or 0, head.flexible) for head in heads()}


def api_name(key: int) -> str:
    """The name of an API as in the message definitions ("OffsetCommit"), or "Key 97" for one that is not known."""
    known = API_KEYS.get(key)
    return known.name if known else f"Key {key}"
