"""Tables of MongoDB."""

from __future__ import annotations

from analyser.registry.model import Column, ColumnSource, Table
from analyser.registry.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    EXCHANGE_ID,
    FLOW_ID,
    REQUEST_TIME,
    SERVER_ADDRESS,
    SERVER_PORT,
    packet_column,
    ts_column,
)

_COMMAND = Column("command", "string", "command name; of a legacy opcode the command that does the same")
_DATABASE = Column("database", "string", "database")
_COLLECTION = Column("collection", "string", "collection; null for commands on a database")
_SHAPE = Column(
    "query_shape", "string", "JSON: filter, sort, pipeline and the like; keys kept, values replaced by their types"
)
_SHAPE_ID = Column("shape_id", "string", "digest of database, collection, command and query_shape")
_LSID = Column("lsid", "string", "logical session id (UUID)")
_TXN_NUMBER = Column("txn_number", "int64", "number of the transaction or retryable write in its session")
_DRIVER = Column("driver", "string", "driver name, from the client metadata of this connection's hello")
_APP_NAME = Column("app_name", "string", "application name, from the same metadata")

_COMMANDS = Table(
    "mongo_commands",
    "one row per request with its reply or replies, unanswered request, or orphan reply",
    (
        EXCHANGE_ID,
        FLOW_ID,
        ts_column(REQUEST_TIME + " (of the reply for an orphan)"),
        Column("ts_response", "time", "time of the packet that completes the first reply", unit="UTC"),
        _COMMAND,
        Column("opcode", "string", "opcode of the request, inside OP_COMPRESSED the original one", nullable=False),
        _DATABASE,
        _COLLECTION,
        _SHAPE,
        _SHAPE_ID,
        Column("literals_id", "string", "digest of 32 bits of the values that query_shape leaves out: equal or not"),
        Column("status", "string", "as in exchanges: ok, error, unanswered, orphan, one_way", nullable=False),
        Column(
            "latency_ms", "float64", "ts_response minus ts; null where the server was asked to wait for news", unit="ms"
        ),
        Column("awaitable", "bool", "a hello with topologyVersion and maxAwaitTimeMS: answered when news come"),
        Column("documents_returned", "int64", "documents in firstBatch, nextBatch, values or OP_REPLY"),
        Column("documents_sent", "int64", "documents of an insert, statements of an update or delete"),
        Column("n", "int64", "n of the reply: documents matched, inserted, deleted or counted"),
        Column("n_modified", "int64", "nModified of the reply"),
        Column("upserted", "int64", "documents that an update inserted"),
        Column("ok", "bool", "ok of the (last) reply; null without one or where it is not readable"),
        Column(
            "error_code",
            "int64",
            "code of the command's error, else of its first write error, else of writeConcernError; 0 is success",
        ),
        Column("error_name", "string", "codeName of the reply, else the code's name in error_codes.yml"),
        Column("error_message", "string", "errmsg, which repeats values of documents: only with --payload"),
        Column("error_labels", "string", "errorLabels, comma separated"),
        Column("write_errors", "int64", "elements of writeErrors"),
        Column("write_error_codes", "int64_list", "their codes, each once"),
        Column("write_error_names", "string", "names of these codes, comma separated"),
        Column("write_concern_error_code", "int64", "code of writeConcernError"),
        Column("write_concern_error_name", "string", "its name"),
        Column("cursor_id", "int64", "cursor that the command opened or used; null where none is left open by it"),
        Column("cursor_exhausted", "bool", "the reply carries cursor id 0: nothing is left to get"),
        Column("cursors_killed", "int64_list", "cursor ids in a killCursors"),
        Column("no_cursor_timeout", "bool", "noCursorTimeout is asked for"),
        Column("tailable", "bool", "a tailable cursor, or a change stream"),
        Column("batch_size", "int64", "batchSize, or numberToReturn of legacy opcodes"),
        Column("limit", "int64", "limit of a find or count"),
        Column("skip", "int64", "skip of a find or count"),
        Column("has_sort", "bool", "a sort is asked for"),
        Column("has_projection", "bool", "a projection is asked for"),
        Column("max_time_ms", "int64", "maxTimeMS", unit="ms"),
        Column("await_time_ms", "int64", "maxAwaitTimeMS of a hello, maxTimeMS of a getMore", unit="ms"),
        _LSID,
        _TXN_NUMBER,
        Column("start_transaction", "bool", "startTransaction"),
        Column("autocommit", "bool", "autocommit; false inside a transaction of several statements"),
        Column("read_preference", "string", "mode of $readPreference; secondaryPreferred for a legacy slaveOk"),
        Column("read_concern", "string", "level of readConcern"),
        Column("write_concern", "string", "writeConcern as JSON"),
        Column("unacknowledged", "bool", "no reply is wanted: moreToCome, w: 0 or a legacy write"),
        Column("exhaust", "bool", "a reply announced another one (moreToCome)"),
        Column("replies", "int64", "replies seen, more than one in an exhaust stream", nullable=False),
        Column("ts_last_response", "time", "time of the packet that completes the last reply", unit="UTC"),
        Column("compressor", "string", "compressor of the request; null where it is not compressed"),
        Column("response_compressor", "string", "compressor of the first reply; null where it is not compressed"),
        Column("compressors_offered", "string", "in the connection's hello: what the client offers, comma separated"),
        Column("compressors_agreed", "string", "in the answer to it: those the server takes; the first one is used"),
        Column("checksum_ok", "bool", "CRC-32C of request and reply; null where neither carries one"),
        Column("request_bytes", "int64", "size of the request on the wire", unit="bytes"),
        Column("response_bytes", "int64", "size of the replies on the wire", unit="bytes"),
        Column("request_uncompressed_bytes", "int64", "size of the request without compression", unit="bytes"),
        Column("response_uncompressed_bytes", "int64", "size of the replies without compression", unit="bytes"),
        _DRIVER,
        Column("driver_version", "string", "its version"),
        _APP_NAME,
        Column("client_os", "string", "operating system, from the same metadata"),
        Column("client_platform", "string", "platform (language and its version), from the same metadata"),
        Column("server_role", "string", "primary, secondary, arbiter, mongos, standalone, other: the last hello's"),
        Column("set_name", "string", "replica set, from the same reply"),
        Column("max_wire_version", "int64", "newest wire version of the server, from the same reply"),
        Column("mechanism", "string", "SASL mechanism of an authentication"),
        Column("user_name", "string", "user of an authentication, where the mechanism shows it"),
        Column("request_document", "string", "the command as Extended JSON, only with --payload"),
        Column("response_document", "string", "the first reply as Extended JSON, only with --payload"),
        CLIENT_ADDRESS,
        CLIENT_PORT,
        SERVER_ADDRESS,
        SERVER_PORT,
        Column("request_id", "int64", "requestID of the request; of an orphan the id that it answers", nullable=False),
        Column("file", "string", "file of the request, of the reply for an orphan", "derived"),
        packet_column("request_packet", "packet that completes the request"),
        packet_column("response_packet", "packet that completes the first reply"),
        Column("response_message_id", "string", "messages.message_id of the first reply", "derived"),
    ),
    ("ts", "file", "request_packet", "exchange_id"),
    "mongo",
)


def _made(name: str, kind_of: Column) -> Column:
    """A column of mongo_commands in a table that is made from its rows."""
    return Column(name, kind_of.kind, kind_of.meaning, "context", kind_of.unit)


_SOURCE: ColumnSource = "context"
_CONTEXT = {
    column.name: _made(column.name, column)
    for column in (
        _DATABASE,
        _COLLECTION,
        _COMMAND,
        _SHAPE,
        _SHAPE_ID,
        _LSID,
        _TXN_NUMBER,
        _DRIVER,
        _APP_NAME,
        CLIENT_ADDRESS,
        CLIENT_PORT,
        SERVER_ADDRESS,
        SERVER_PORT,
    )
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
        Column("ts_ended", "time", "time of the answer that ended it", _SOURCE, "UTC"),
        Column("duration_ms", "float64", "ts_ended minus ts_started", _SOURCE, "ms"),
        Column(
            "outcome",
            "string",
            "committed, aborted (abortTransaction, or an error that ends it), unknown (commitTransaction without a "
            "clear answer), open",
            _SOURCE,
            nullable=False,
        ),
        Column("ended_exchange_id", "string", "command that ended it", _SOURCE),
        Column("commands", "int64", "commands of it, commit and abort not counted", _SOURCE, nullable=False),
        Column("command_names", "string", "their names, each once, sorted, comma separated", _SOURCE),
        Column("namespaces", "string", "database.collection they name, each once, sorted, comma separated", _SOURCE),
        Column("errors", "int64", "errors answered, also to commit and abort", _SOURCE, nullable=False),
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

MONGO_TABLES = (_COMMANDS, _CURSORS, _TRANSACTIONS)
