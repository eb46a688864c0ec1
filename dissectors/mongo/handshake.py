"""What a connection's hello and authentication tell: driver, application, compressors, server, mechanism, user.

In: fields of hello, saslStart, authenticate and of replies. Out: facts under the names of mongo_commands' columns.
Sources: MongoDB handshake, OP_COMPRESSED and driver authentication specifications; RFC 5802 (SCRAM), RFC 4616 (PLAIN).
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Any

from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    DOCUMENT,
    Fields,
    Span,
    boolean,
    inner,
    integer,
    path,
    raw_bytes,
    text,
    texts,
)

# The handshake command, under all of its names.
HELLOS = frozenset({"hello", "isMaster", "ismaster"})
# Commands that carry credentials and must not be compressed, next to hello (OP_COMPRESSED specification).
AUTHENTICATION = frozenset(
    {
        "saslStart",
        "saslContinue",
        "getnonce",
        "authenticate",
        "createUser",
        "updateUser",
        "copydbsaslstart",
        "copydbgetnonce",
        "copydb",
    }
)
MAX_COMPRESSORS = 16
# A replica set has 50 members at most (manual, replica set limits).
MAX_HOSTS = 50
# Where a reply lists the members: those that may be elected, those of priority 0, those without data.
_HOSTS = (b"hosts", b"passives", b"arbiters")
# Bytes of client metadata that are remembered: servers take 512.
MAX_CACHED_BYTES = 1024
# Facts of a connection that every later command of it has, too.
CONNECTION = ("driver", "driver_version", "app_name", "client_os", "client_platform", "compressors_offered")
# The same of its server, see `server_facts`.
SERVER = (
    "server_role", "set_name", "advertised_hosts", "primary_host", "own_host", "max_wire_version", "compressors_agreed",
)  # fmt: skip


def is_hello(name: str) -> bool:
    """Is it the handshake command, under any of its names?"""
    return name in HELLOS


def must_not_be_compressed(name: str | None) -> bool:
    """Does the specification forbid to compress it?"""
    return name is not None and (name in HELLOS or name in AUTHENTICATION)


# The fields of a hello that tell anything of the client.
HELLO_PARTS = frozenset({b"client", b"compression", b"speculativeAuthenticate"})


def hello_facts(data: bytes, fields: Fields) -> dict[str, Any]:
    """Client metadata, compressors offered, and an authentication that begins in the same message."""
    facts: dict[str, Any] = {}
    client = fields.get(b"client")
    if client is not None and client[0] in (DOCUMENT, ARRAY):
        value = data[client[1] : client[2]]
        facts.update((_usual_client if len(value) <= MAX_CACHED_BYTES else _client)(value))
    if b"compression" in fields:
        facts["compressors_offered"] = ",".join(texts(data, fields[b"compression"], MAX_COMPRESSORS)) or None
    speculative = inner(data, fields.get(b"speculativeAuthenticate"))
    if speculative:
        name = next(iter(speculative)).decode("utf-8", "replace")
        facts.update(sasl_facts(name, data, speculative))
    return facts


def _client(value: bytes) -> dict[str, Any]:
    """What the client's metadata tell; nothing where there are none."""
    client = inner(value, (DOCUMENT, 0, len(value)))
    if not client:
        return {}
    return {
        "driver": text(value, path(value, client, b"driver", b"name")),
        "driver_version": _version(text(value, path(value, client, b"driver", b"version"))),
        "app_name": text(value, path(value, client, b"application", b"name")),
        "client_os": _os(value, client),
        "client_platform": text(value, client.get(b"platform")),
    }


_usual_client = lru_cache(maxsize=512)(_client)


def _version(version: str | None) -> str | None:
    """Libraries around a driver add `|` and theirs, those without one an empty one."""
    return None if version is None else version.rstrip("|") or None


def _os(data: bytes, client: Fields) -> str | None:
    system = inner(data, client.get(b"os"))
    words = (text(data, system.get(key)) for key in (b"name", b"type", b"architecture", b"version"))
    return " ".join(dict.fromkeys(word for word in words if word)) or None


# The fields of its reply that tell anything of the server, and whether it is one.
ANSWER_PARTS = frozenset(
    {
        b"ok",
        b"msg",
        b"isWritablePrimary",
        b"ismaster",
        b"setName",
        *_HOSTS,
        b"primary",
        b"me",
        b"isreplicaset",
        b"secondary",
        b"arbiterOnly",
        b"maxWireVersion",
        b"compression",
    }
)


def server_facts(data: bytes, reply: Fields) -> dict[str, Any]:
    """What the reply to a hello tells of the server."""
    agreed = texts(data, reply.get(b"compression"), MAX_COMPRESSORS)
    hosts = {host for part in _HOSTS for host in texts(data, reply.get(part), MAX_HOSTS)}
    return {
        "server_role": _role(data, reply),
        "set_name": text(data, reply.get(b"setName")),
        "advertised_hosts": ",".join(sorted(hosts)) or None,
        "primary_host": text(data, reply.get(b"primary")),
        "own_host": text(data, reply.get(b"me")),
        "max_wire_version": integer(data, reply.get(b"maxWireVersion")),
        "compressors_agreed": ",".join(agreed) or None,
    }


def _role(data: bytes, reply: Fields) -> str | None:
    """As the server discovery specification derives it."""
    if text(data, reply.get(b"msg")) == "isdbgrid":
        return "mongos"
    primary = boolean(data, reply.get(b"isWritablePrimary", reply.get(b"ismaster")))
    if b"setName" not in reply:
        return "other" if boolean(data, reply.get(b"isreplicaset")) else None if primary is None else "standalone"
    if primary:
        return "primary"
    if boolean(data, reply.get(b"secondary")):
        return "secondary"
    return "arbiter" if boolean(data, reply.get(b"arbiterOnly")) else "other"


def sasl_facts(name: str, data: bytes, fields: Fields) -> dict[str, Any]:
    """Mechanism and user of an authentication; the secret itself stays where it is."""
    if name == "authenticate":
        return {
            "mechanism": text(data, fields.get(b"mechanism")) or "MONGODB-CR",
            "user_name": text(data, fields.get(b"user")),
        }
    if name != "saslStart":
        return {}
    mechanism = text(data, fields.get(b"mechanism"))
    return {"mechanism": mechanism, "user_name": _user(mechanism or "", _payload(data, fields.get(b"payload")))}


def _payload(data: bytes, span: Span | None) -> bytes:
    """The mechanism's own bytes; old drivers sent them as base64 text."""
    value = raw_bytes(data, span)
    if value is not None:
        return value
    try:
        return base64.b64decode(text(data, span) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _user(mechanism: str, payload: bytes) -> str | None:
    if mechanism.startswith("SCRAM-"):
        parts = payload.split(b",", 4)  # n,,n=user,r=nonce
        name = next((part[2:] for part in parts if part.startswith(b"n=")), b"")
        name = name.replace(b"=2C", b",").replace(b"=3D", b"=")
    elif mechanism == "PLAIN":
        parts = payload.split(b"\0")  # authorization id, user, password
        name = parts[1] if len(parts) == 3 else b""
    else:
        name = b""
    return name.decode("utf-8", "replace") or None
