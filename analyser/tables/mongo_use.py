"""Tables of what clients of MongoDB do: what came of their commands, what grows, who is in whose way."""

from __future__ import annotations

from dataclasses import replace

from wirewitness.analyser.tables.model import Column, ColumnSource, Table
from wirewitness.analyser.tables.shared import CLIENT_ADDRESS, SERVER_ADDRESS, SERVER_PORT, ts_column

_SOURCE: ColumnSource = "context"


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning, _SOURCE)


def _count(name: str, meaning: str) -> Column:
    return Column(name, "int64", meaning, _SOURCE, nullable=False)


def _number(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "float64", meaning, _SOURCE, unit)


def _time(name: str, meaning: str) -> Column:
    return Column(name, "time", meaning, _SOURCE, "UTC")


def _known(*columns: Column) -> tuple[Column, ...]:
    """These, which are never null."""
    return tuple(replace(one, nullable=False) for one in columns)


_WHO = (
    SERVER_ADDRESS,
    SERVER_PORT,
    CLIENT_ADDRESS,
    _text("app_name", "application name"),
    _text("driver", "driver name"),
)
_SHAPE = (
    _text("database", "database"),
    _text("collection", "collection; null for commands on a database"),
    *_known(_text("command", "command name")),
    _text("shape_id", "mongo_commands.shape_id"),
    _text("query_shape", "mongo_commands.query_shape"),
)
_IDS = (
    Column("exchange_id", "string", "exchange of the first one", _SOURCE, nullable=False),
    Column("last_exchange_id", "string", "exchange of the last one", _SOURCE, nullable=False),
)
_SPAN = (ts_column("time of the first one", _SOURCE), *_known(_time("ts_last", "time of the last one")))

CLIENT_COMMANDS = Table(
    "mongo_client_commands",
    "one row per application, its server and shape of command: how often it was sent, and what came of it",
    (
        *_SPAN,
        *_WHO,
        *_SHAPE,
        _text("driver_version", "version of the driver"),
        _count("commands", "its commands; those that wait for news, as awaitable hellos do, are left out"),
        _count("succeeded", "of these, those with a reply without error"),
        _count("errors", "of these, those with an error"),
        _time("ts_succeeded", "time of the last one that succeeded"),
        _count(
            "without_effect",
            "of these, those that succeeded and changed or returned nothing: no document modified, upserted, deleted "
            "or in the only batch; an upsert that finds its document has its effect",
        ),
        _count("unmatched", "of these, updates whose filter matched no document"),
        _count("same", "commands that have the most frequent values and size of reply"),
        _number("median_documents_sent", "middle number of documents or statements sent"),
        _count("most_documents_sent", "the largest number of them"),
        _number("median_documents_returned", "middle number of documents in a reply"),
        _text(
            "document_shapes",
            "JSON: mongo_commands.document_shape of inserts with how many have it, the 20 most frequent; null without",
        ),
        _count("untried", "documents of acknowledged inserts that were neither stored nor refused"),
        _count("unacknowledged", "commands that asked for no reply"),
        _count("sessions", "logical sessions that they named"),
        _count("connections", "connections that they went on"),
        _number("median_latency_ms", "middle time until the reply", "ms"),
        *_known(_number("latency_sum_ms", "time until their replies, added up", "ms")),
        _count("request_bytes", "bytes of the commands"),
        _count("response_bytes", "bytes of their replies"),
        _text("read_preference", "mode of $readPreference, of the last one that has it"),
        _text("read_concern", "level of readConcern, of the last one that has it"),
        _text("write_concern", "writeConcern as JSON, of the last one that has it"),
        *_IDS,
    ),
    ("ts", "client_address", "app_name", "database", "collection", "command", "shape_id"),
    "mongo",
)
TRENDS = Table(
    "mongo_trends",
    "one row per application, its server, shape of command and measure that rises, in time or with skip",
    (
        *_SPAN,
        *_WHO,
        *_SHAPE,
        _text("driver_version", "version of the driver"),
        Column("measure", "string", "latency, reply or request", _SOURCE, nullable=False),
        Column("along", "string", "what it rises with: time, skip or request (its size)", _SOURCE, nullable=False),
        _count("commands", "commands of this shape"),
        *_known(
            _number("rising", "rank correlation of the medians of eighths with their order"),
            _number("began", "median of the first quarter: of time, of skip, of sizes of requests"),
            _number("ended", "median of the last quarter"),
        ),
        _number("skip_most", "the largest skip"),
        _number("others", "median over other shapes at this server of last quarter against first; null: none"),
        _count("inserted", "documents that inserts brought to the collection meanwhile, from anybody"),
        _number("latency_sum_ms", "time until the replies, added up", "ms"),
        *_IDS,
    ),
    ("ts", "client_address", "app_name", "shape_id", "measure", "along"),
    "mongo",
)
CONFLICTS = Table(
    "mongo_conflicts",
    "one row per write that was refused for, or waited for, a transaction of another session, and that transaction",
    (
        ts_column("time of the write", _SOURCE),
        *_known(*_WHO[:2]),
        *_WHO[2:],
        *_known(*_SHAPE[:3]),
        Column("exchange_id", "string", "the write", _SOURCE, nullable=False),
        Column("kind", "string", "refused (WriteConflict), or waited until the transaction ended", _SOURCE,
               nullable=False),
        Column("same", "string", "what both write: document, or collection where not both name documents", _SOURCE,
               nullable=False),
        _number("waited_ms", "time until the reply", "ms"),
        _text("lsid", "session of the write"),
        _text("holder_lsid", "session of the transaction"),
        Column("holder_txn_number", "int64", "its number in the session", _SOURCE),
        _text("holder_address", "its client"),
        _text("holder_app_name", "its application"),
        _text("holder_driver", "its driver"),
        *_known(_time("ts_holder_started", "when it started")),
        _time("ts_holder_ended", "when it ended; null while open"),
        _text("holder_outcome", "mongo_transactions.outcome"),
        _text("holder_exchange_id", "its first command"),
    ),
    ("ts", "exchange_id", "holder_lsid", "holder_txn_number"),
    "mongo",
)  # fmt: skip
OVERWRITTEN = Table(
    "mongo_overwritten",
    "one row per write by _id from a state of the document that another client had changed since it was read",
    (
        ts_column("time of the write", _SOURCE),
        *_known(*_WHO[:3]),
        *_WHO[3:],
        *_known(*_SHAPE[:3]),
        Column("document_id", "int64", "digest of the _id", _SOURCE, nullable=False),
        Column("exchange_id", "string", "the write", _SOURCE, nullable=False),
        Column("read_exchange_id", "string", "the last read of the document by its application", _SOURCE,
               nullable=False),
        *_known(_time("ts_read", "time of its reply")),
        Column("lost_exchange_id", "string", "the write in between, by another application", _SOURCE, nullable=False),
        *_known(_time("ts_lost", "its time"), _text("lost_address", "its client")),
        _text("lost_app_name", "its application"),
        _text("lost_driver", "its driver"),
    ),
    ("ts", "exchange_id"),
    "mongo",
)  # fmt: skip
MONGO_USE_TABLES = (CLIENT_COMMANDS, TRENDS, CONFLICTS, OVERWRITTEN)
