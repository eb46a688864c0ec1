"""Kafka messages from kio, an encoder that shares nothing with our decoder: random values, their bytes, expected dicts.

kio's own reader aborts the process on hostile lengths, so nothing is ever decoded with kio here.
"""

from __future__ import annotations

import datetime
import io
import uuid
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from random import Random
from types import NoneType
from typing import Any, get_args

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_writer
from kio.serial._implicit_defaults import get_tagged_field_default

# kio gives durations and times Python types and drops the unit from the name.
RENAMED = {
    "throttle_time": "throttle_time_ms",
    "max_wait": "max_wait_ms",
    "timeout": "timeout_ms",
    "session_timeout": "session_timeout_ms",
    "rebalance_timeout": "rebalance_timeout_ms",
    "transaction_timeout": "transaction_timeout_ms",
    "heartbeat_interval": "heartbeat_interval_ms",
    "log_append_time": "log_append_time_ms",
    "retention_time": "retention_time_ms",
    "session_lifetime": "session_lifetime_ms",
    "max_lifetime": "max_lifetime_ms",
    "renew_period": "renew_period_ms",
    "expiry_time_period": "expiry_time_period_ms",
    "transaction_start_time": "transaction_start_time_ms",
    "push_interval": "push_interval_ms",
    "acquisition_lock_timeout": "acquisition_lock_timeout_ms",
    "task_offset_interval": "task_offset_interval_ms",
    "id_": "id",
    "k_raft_version_feature": "kraft_version_feature",
}
# The same, where other messages have the name without a unit; and kio follows the definitions of Kafka 4.3, ours 4.4.
RENAMED_IN = {
    ("CreateDelegationTokenResponse", "issue_timestamp"): "issue_timestamp_ms",
    ("CreateDelegationTokenResponse", "expiry_timestamp"): "expiry_timestamp_ms",
    ("CreateDelegationTokenResponse", "max_timestamp"): "max_timestamp_ms",
    ("RenewDelegationTokenResponse", "expiry_timestamp"): "expiry_timestamp_ms",
    ("ExpireDelegationTokenResponse", "expiry_timestamp"): "expiry_timestamp_ms",
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag"): "acceptable_recovery_lag_legacy",
    ("TxnOffsetCommitRequest", "generation_id"): "generation_id_or_member_epoch",
}
# What no decoder gives away.
SECRETS = {"auth_bytes", "hmac", "salt", "salted_password"}
INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def is_known(api_key: int, version: int) -> bool:
    """Has kio classes for request and response? Told without importing them, which takes seconds for all."""
    name = api_key_map.get(api_key)
    packages = () if name is None else (f"kio.schema.{name}", f"kio.schema.{name}.v{version}")
    return bool(packages) and all(find_spec(package) is not None for package in packages)


def entity_type(api_key: int, version: int, direction: str) -> type | None:
    """kio's class for a message, or None where kio has none."""
    if not is_known(api_key, version):
        return None
    module = import_module(f"kio.schema.{api_key_map[api_key]}.v{version}.{direction}")
    suffix = direction.capitalize()
    for candidate in vars(module).values():
        if is_dataclass(candidate) and candidate.__type__.name == direction and candidate.__name__.endswith(suffix):
            return candidate
    raise LookupError(f"{module.__name__} has no {direction}")


def generate(kind: type, random: Random) -> Any:
    """A random instance of a kio dataclass: nulls, empty and long values, tagged fields at and off their default."""
    return kind(**{field.name: _value(field, random) for field in fields(kind)})


def encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def expected(entity: Any) -> dict[str, Any]:
    """The dict that our decoder has to give for the bytes of `entity`, with records as bytes and secrets masked."""
    found: dict[str, Any] = {}
    for field in fields(entity):
        name = RENAMED.get(field.name, field.name)
        name = RENAMED_IN.get((type(entity).__name__, name), name)
        value = getattr(entity, field.name)
        if "tag" in field.metadata and value == get_tagged_field_default(field):
            found[name] = None  # kio leaves it out, so it is not on the wire
        elif field.name in SECRETS:
            found[name] = b"***"
        else:
            found[name] = _plain(value, field.metadata.get("kafka_type"))
    return found


def _plain(value: Any, kafka_type: str | None) -> Any:
    if isinstance(value, tuple):
        return [_plain(one, kafka_type) for one in value]
    if is_dataclass(value):
        return expected(value)
    if kafka_type == "uuid":
        return value.bytes if value is not None else bytes(16)
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if kafka_type == "datetime_i64":
        return -1 if value is None else (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, ErrorCode):
        return value.value
    return value


def _value(field: Field[Any], random: Random) -> Any:
    if "tag" in field.metadata and random.random() < 0.4:
        return get_tagged_field_default(field)
    return _typed(field.type, field.metadata.get("kafka_type"), random)


def _typed(kind: Any, kafka_type: str | None, random: Random) -> Any:
    arguments = get_args(kind)
    if NoneType in arguments:
        if random.random() < 0.3:
            return None
        return _typed(next(one for one in arguments if one is not NoneType), kafka_type, random)
    if arguments:  # tuple[X, ...]
        return tuple(_typed(arguments[0], kafka_type, random) for _ in range(_count(arguments[0], random)))
    if is_dataclass(kind):
        return generate(kind, random)
    return _scalar(kafka_type or "", random)


def _count(kind: Any, random: Random) -> int:
    many = 3 if is_dataclass(kind) and any(get_args(field.type) for field in fields(kind)) else 7
    return random.choice([0, 1, 1, 2, many])


def _scalar(kafka_type: str, random: Random) -> Any:
    if kafka_type in INTEGERS:
        low, high = INTEGERS[kafka_type]
        return random.choice([low, high, 0, max(low, -1), random.randint(low, high)])
    if kafka_type == "timedelta_i32":
        return datetime.timedelta(milliseconds=random.choice([0, -1, 500, random.randint(0, 2**31 - 1)]))
    if kafka_type == "timedelta_i64":
        return datetime.timedelta(milliseconds=random.choice([0, -1, random.randint(0, 2**40)]))
    if kafka_type == "datetime_i64":
        return EPOCH + datetime.timedelta(milliseconds=random.randrange(2**41))
    made = {
        "bool": lambda: random.random() < 0.5,
        "string": lambda: _text(random),
        "bytes": lambda: random.randbytes(random.choice([0, 1, 20, 130, 20000])),
        "records": lambda: random.randbytes(random.choice([0, 1, 61, 130, 20000])),
        "uuid": lambda: uuid.UUID(bytes=random.randbytes(16)),
        "float64": lambda: random.uniform(-1e9, 1e9),
        "error_code": lambda: random.choice(list(ErrorCode)),
    }
    return made[kafka_type]()


def _text(random: Random) -> str:
    length = random.choice([0, 1, 8, 40, 126, 127, 128, 300])
    return "".join(random.choice("abcz.-_09äß漢🙂") for _ in range(length))


def versions() -> Iterator[tuple[int, int, str]]:
    """Every (api key, version, direction) that kio has a class for."""
    for key in api_key_map:
        for version in range(32):
            for direction in ("request", "response"):
                if entity_type(key, version, direction) is not None:
                    yield key, version, direction
