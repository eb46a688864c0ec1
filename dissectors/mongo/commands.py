"""What a request asks for: command, namespace, options, query shape.

In: a decoded request. Out: its `Command`, and facts under the names of mongo_commands' columns. Source: database
command reference (manual).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    STRING,
    Fields,
    boolean,
    element_spans,
    inner,
    integer,
    integers,
    text,
)
from wirewitness.dissectors.mongo.command_names import MAX_NAME, command_name, named
from wirewitness.dissectors.mongo.command_options import OPTIONS
from wirewitness.dissectors.mongo.command_shapes import add_shape, sequence_documents
from wirewitness.dissectors.mongo.handshake import hello_facts, is_hello, sasl_facts
from wirewitness.dissectors.mongo.known_commands import KNOWN
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.opcodes import (
    EXHAUST_ALLOWED,
    MORE_TO_COME,
    OP_COMMAND,
    OP_MSG,
    OP_QUERY,
    opcode_name,
)
from wirewitness.dissectors.mongo.rows import Facts
from wirewitness.dissectors.mongo.secrets import is_secret

# Cursor ids of one killCursors that are kept; drivers close a handful at a time.
MAX_CURSOR_IDS = 1000
# Namespaces of one bulkWrite that are looked at.
MAX_NAMESPACES = 50
# What a find asks for or not.
FIND_FLAGS = ("has_sort", "has_projection", "tailable", "no_cursor_timeout")
# Commands whose first value is a string and names no collection.
_NO_COLLECTION = frozenset(
    {
        "authenticate",
        "configureFailPoint",
        "copydb",
        "copydbgetnonce",
        "copydbsaslstart",
        "createRole",
        "createUser",
        "dropRole",
        "dropUser",
        "echo",
        "enableSharding",
        "explain",
        "getLog",
        "grantPrivilegesToRole",
        "grantRolesToRole",
        "grantRolesToUser",
        "logApplicationMessage",
        "moveChunk",
        "moveCollection",
        "movePrimary",
        "refineCollectionShardKey",
        "renameCollection",
        "replSetStepDown",
        "reshardCollection",
        "revokePrivilegesFromRole",
        "revokeRolesFromRole",
        "revokeRolesFromUser",
        "rolesInfo",
        "setFeatureCompatibilityVersion",
        "setParameter",
        "shardCollection",
        "split",
        "unshardCollection",
        "updateRole",
        "updateUser",
        "usersInfo",
    }
)


class Command(NamedTuple):
    """name: None where the message holds no command. fields: those of the command's document. hello: it is one.

    legacy_database: as a legacy opcode names it; OP_MSG has it in the field $db.
    """

    name: str | None
    operation: str
    fields: Fields
    hello: bool = False
    legacy_database: str | None = None

    def database(self, data: bytes) -> str | None:
        """The database of a command, which was read from `data`."""
        return self.legacy_database or text(data, self.fields.get(b"$db"))


def command_in(message: Message) -> Command:
    """The command of a request; legacy opcodes other than OP_QUERY on $cmd and OP_COMMAND hold none."""
    fields = message.body
    if message.opcode == OP_MSG and fields:
        name, hello = named(next(iter(fields))[:MAX_NAME])
        return Command(name, name, fields, hello)
    legacy, opcode = message.legacy, opcode_name(message.opcode)
    if legacy is None or not fields or message.opcode not in (OP_QUERY, OP_COMMAND):
        return Command(None, opcode, {})
    database, _, collection = (legacy.namespace or "").partition(".")
    if collection != "$cmd":
        return Command(None, opcode, {})
    if next(iter(fields)) in (b"$query", b"query"):
        fields = inner(message.data, next(iter(fields.values()))) or fields
    name = legacy.command or command_name(next(iter(fields)))
    return Command(name, name, fields, is_hello(name), database)


def names_collection(name: str) -> bool:
    """Does the first value of this command, a string, name a collection?"""
    return name in KNOWN and name not in _NO_COLLECTION and not is_secret(name, [name])


def awaits_news(is_hello: bool, keys: Collection[bytes]) -> bool:
    """Is it a hello that the server may answer when news come? (server monitoring: topologyVersion, maxAwaitTimeMS)"""
    return is_hello and b"topologyVersion" in keys and b"maxAwaitTimeMS" in keys


def command_facts(command: Command, message: Message) -> Facts:
    """The facts of a request that holds a command."""
    data, fields, name = message.data, command.fields, command.name or ""
    facts: Facts = {"command": name, "database": command.database(data), "unacknowledged": False}
    for key, span in fields.items():
        option = OPTIONS.get(key)
        if option is not None:
            facts[option[0]] = option[1](data, span)
    first = next(iter(fields.values()))
    if name == "getMore":
        facts["cursor_id"] = integer(data, first)
        facts["await_time_ms"] = facts.pop("max_time_ms", None)
        facts["collection"] = text(data, fields.get(b"collection"))
    elif first[0] == STRING and names_collection(name):
        facts["collection"] = text(data, first)
    if name == "find":
        for column in FIND_FLAGS:
            facts.setdefault(column, False)
    elif name == "bulkWrite":
        facts.update(_written_to(message, fields))
        if boolean(data, fields.get(b"ordered")) is not False:
            facts["untried"] = 0
    elif name == "killCursors":
        facts["cursors_killed"] = integers(data, fields.get(b"cursors"), MAX_CURSOR_IDS)
    elif command.hello:
        facts.update(hello_facts(data, fields))
    else:
        facts.update(sasl_facts(name, data, fields))
    if message.flags & MORE_TO_COME and message.opcode == OP_MSG:
        facts["unacknowledged"] = True
    add_shape(facts, name, command.fields, message)
    if message.opcode == OP_MSG and message.flags & EXHAUST_ALLOWED:
        facts["exhaust"] = False
    return facts


def _written_to(message: Message, fields: Fields) -> Facts:
    """Where a bulkWrite writes: it is sent to admin, and names collections in nsInfo. The database, where it is one
    only; the collection as well."""
    data, listed = message.data, fields.get(b"nsInfo")
    if listed is not None and listed[0] == ARRAY:
        named = [inner(data, span) for span in element_spans(data, listed, MAX_NAMESPACES)]
    else:
        named = [
            one for sequence in message.sequences if sequence.name == b"nsInfo"
            for one in sequence_documents(data, sequence.start, sequence.end, MAX_NAMESPACES)
        ]  # fmt: skip
    places = {text(data, one.get(b"ns")) for one in named}
    databases = {(place or "").partition(".")[0] for place in places}
    if len(databases) != 1 or "" in databases or len(named) >= MAX_NAMESPACES:
        return {}
    collections = {(place or "").partition(".")[2] for place in places}
    return {"database": databases.pop(), "collection": (collections.pop() or None) if len(collections) == 1 else None}


def wants_no_reply(command: Command, data: bytes) -> bool:
    """Is it written with w: 0? A server answers it nevertheless unless moreToCome says that none is wanted."""
    concern = command.fields.get(b"writeConcern")
    return concern is not None and integer(data, inner(data, concern).get(b"w")) == 0
