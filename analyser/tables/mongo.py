"""Tables of MongoDB."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, ColumnSource, Table, columns_of
from wirewitness.analyser.tables.mongo_use import MONGO_USE_TABLES
from wirewitness.analyser.tables.owners import CLIENT_BESIDE
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    EXCHANGE_ID,
    FLOW_ID,
    SERVER_ADDRESS,
    SERVER_PORT,
    ts_column,
)
from wirewitness.dissectors.mongo.rows import MONGO_COMMANDS

_COMMANDS = Table(
    "mongo_commands",
    "one row per request with its reply or replies, unanswered request, or orphan reply",
    columns_of(
        MONGO_COMMANDS,
        {
            "": (EXCHANGE_ID, FLOW_ID),
            "response_document": (CLIENT_ADDRESS, CLIENT_PORT, *CLIENT_BESIDE, SERVER_ADDRESS, SERVER_PORT),
            "request_id": (
                Column("file", "string", "file of the request, of the reply for an orphan", "derived"),
                "request_packet",
                "response_packet",
                Column("response_message_id", "string", "messages.message_id of the first reply", "derived"),
            ),
        },
    ),
    ("ts", "file", "request_packet", "exchange_id"),
    "mongo",
)


_SOURCE: ColumnSource = "context"
# Columns of mongo_commands in tables that are made from its rows.
_CONTEXT = {
    column.name: Column(column.name, column.kind, column.meaning, _SOURCE, column.unit) for column in _COMMANDS.columns
}

_CURSORS = Table(
    "mongo_cursors",
    "one row per server cursor; its getMores may go over any connection to the server",
    (
        Column("cursor_id", "int64", "cursor id", _SOURCE, nullable=False),
        Column("exchange_id", "string", "command that opened it; null where that is not in the capture", _SOURCE),
        ts_column("time of the first command seen of it", _SOURCE),
        Column("ts_opened", "time", "time of the command that opened it", _SOURCE, "UTC"),
        Column("ts_last", "time", "time of the last command or reply about it", _SOURCE, "UTC", nullable=False),
        Column("ts_ended", "time", "time of the reply that exhausted it or of killCursors", _SOURCE, "UTC"),
        Column("ended_by", "string", "exhausted, killed, error (a getMore failed); null while open", _SOURCE),
        Column("ended_exchange_id", "string", "command that ended it", _SOURCE),
        Column("error_code", "int64", "error code of the getMore that failed", _SOURCE),
        Column("error_name", "string", "its name", _SOURCE),
        _CONTEXT["command"],
        _CONTEXT["database"],
        _CONTEXT["collection"],
        _CONTEXT["query_shape"],
        _CONTEXT["shape_id"],
        Column("get_mores", "int64", "getMore commands", _SOURCE, nullable=False),
        Column("documents", "int64", "documents returned in all batches seen", _SOURCE, nullable=False),
        Column("response_bytes", "int64", "size of their replies on the wire", _SOURCE, "bytes", nullable=False),
        Column("batch_size", "int64", "batchSize of the opening command", _SOURCE),
        Column("no_cursor_timeout", "bool", "noCursorTimeout is asked for", _SOURCE),
        Column("tailable", "bool", "a tailable cursor, or a change stream", _SOURCE),
        Column("connections", "int64", "connections on which commands about it went", _SOURCE, nullable=False),
        _CONTEXT["lsid"],
        _CONTEXT["txn_number"],
        _CONTEXT["driver"],
        _CONTEXT["driver_version"],
        _CONTEXT["app_name"],
        _CONTEXT["client_address"],
        _CONTEXT["client_port"],
        _CONTEXT["server_address"],
        _CONTEXT["server_port"],
        Column("last_exchange_id", "string", "last command about it", _SOURCE, nullable=False),
        Column("flow_id", "string", "flow of the first command seen of it", _SOURCE, nullable=False),
    ),
    ("ts", "server_address", "server_port", "cursor_id"),
    "mongo",
)

_TRANSACTIONS = Table(
    "mongo_transactions",
    "one row per transaction of several statements",
    (
        _CONTEXT["lsid"],
        _CONTEXT["txn_number"],
        Column("exchange_id", "string", "first command seen of it", _SOURCE, nullable=False),
        ts_column("time of the first command seen of it", _SOURCE),
        Column("ts_started", "time", "time of the command with startTransaction", _SOURCE, "UTC"),
        Column("ts_last", "time", "time of the last command or reply of it", _SOURCE, "UTC", nullable=False),
        Column("ts_ended", "time", "time of the reply that ended it", _SOURCE, "UTC"),
        Column("duration_ms", "float64", "ts_ended minus ts_started", _SOURCE, "ms"),
        Column(
            "outcome",
            "string",
            "committed, aborted (abortTransaction, or an error that ends it), unknown (commitTransaction without a "
            "clear reply), open",
            _SOURCE,
            nullable=False,
        ),
        Column("ended_exchange_id", "string", "command that ended it", _SOURCE),
        Column("commands", "int64", "commands of it, commit and abort not counted", _SOURCE, nullable=False),
        Column("command_names", "string", "their names, each once, sorted, comma separated", _SOURCE),
        Column("namespaces", "string", "database.collection they name, each once, sorted, comma separated", _SOURCE),
        Column("namespaces_written", "string", "of these, those that it wrote to, with success", _SOURCE),
        Column(
            "document_ids",
            "int64_list",
            "digests of 32 bits of _id of documents that it wrote, where its writes name them: the first 1,000",
            _SOURCE,
        ),
        Column(
            "filters_written",
            "string",
            "command and literals_id of its writes that have a filter, each once, sorted, comma separated",
            _SOURCE,
        ),
        Column("errors", "int64", "errors in replies, also to commit and abort", _SOURCE, nullable=False),
        Column("error_code", "int64", "code of the first error", _SOURCE),
        Column("error_name", "string", "its name", _SOURCE),
        Column("commit_attempts", "int64", "commitTransaction commands", _SOURCE, nullable=False),
        Column("read_concern", "string", "level of readConcern of its first command", _SOURCE),
        Column("write_concern", "string", "writeConcern of its commit as JSON", _SOURCE),
        Column("connections", "int64", "connections on which its commands went", _SOURCE, nullable=False),
        _CONTEXT["driver"],
        _CONTEXT["app_name"],
        _CONTEXT["client_address"],
        _CONTEXT["client_port"],
        _CONTEXT["server_address"],
        _CONTEXT["server_port"],
        Column("last_exchange_id", "string", "last command of it", _SOURCE, nullable=False),
        Column("flow_id", "string", "flow of the first command seen of it", _SOURCE, nullable=False),
    ),
    ("ts", "lsid", "txn_number"),
    "mongo",
)

_SERVERS = Table(
    "mongo_servers",
    "one row per server and period in which its hellos said the same: what it is, and which hosts it advertises",
    (
        _CONTEXT["server_address"],
        _CONTEXT["server_port"],
        ts_column("time of the first such hello reply", _SOURCE),
        Column("ts_until", "time", "time of the first reply that says otherwise; null: none in the capture", _SOURCE),
        Column("server_role", "string", "primary, secondary, arbiter, mongos, standalone, other", _SOURCE),
        _CONTEXT["set_name"],
        Column("advertised_hosts", "string", "host:port of the set's members, comma separated, sorted", _SOURCE),
        Column("primary_host", "string", "host:port of the member that it takes for the primary", _SOURCE),
        Column("own_host", "string", "host:port under which the set knows it (me)", _SOURCE),
        _CONTEXT["max_wire_version"],
        Column("hellos", "int64", "hello replies that say so", _SOURCE, nullable=False),
        Column("exchange_id", "string", "the first of these hellos", _SOURCE, nullable=False),
        FLOW_ID,
    ),
    ("ts", "server_address", "server_port"),
    "mongo",
)

MONGO_TABLES = (_COMMANDS, _CURSORS, _TRANSACTIONS, _SERVERS, *MONGO_USE_TABLES)
