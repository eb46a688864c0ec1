"""What MongoDB adds to a report: shapes, errors, cursors, transactions, drivers. In: an analysis; out: sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirewitness.analyser.base.words import count
from wirewitness.dissectors.mongo.dissector import MONGO
from wirewitness.reports.base.formats.document import Block, Heading, Paragraph, Section, protocol_section
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.sections.summary import Summary, summary_blocks
from wirewitness.reports.protocols.mongo.sections.shapes import shape_blocks, shape_count, shapes

TABLES_READ = ("mongo_commands", "mongo_cursors", "mongo_transactions")
_SHAPES_SHOWN = 15
_SHAPES_IN_JSON = 1000

# A write error is no error of its command: it is counted by its own code.
_ERRORS = """
    select command, error_code, error_name, count(*) as commands, count(distinct client_address) as clients from (
        select command, error_code, error_name, client_address from mongo_commands where status = 'error'
            and error_code is not null and error_code <> 0
            and coalesce(len(write_error_codes), 0) = 0 and write_concern_error_code is null
        union all
        select command, unnest(write_error_codes) as error_code,
               case when len(write_error_codes) = 1 and error_code = write_error_codes[1] then error_name end,
               client_address
        from mongo_commands where len(write_error_codes) > 0
        union all
        select command, write_concern_error_code, write_concern_error_name, client_address
        from mongo_commands where write_concern_error_code is not null)
    group by command, error_code, error_name order by commands desc, command, error_code"""
_CURSORS = """
    select coalesce(ended_by, 'open') as ended, count(*) as cursors, sum(get_mores)::bigint as get_mores,
           sum(documents)::bigint as documents, sum(response_bytes)::bigint as response_bytes
    from mongo_cursors group by ended order by cursors desc, ended"""
_TRANSACTIONS = """
    select outcome, count(*) as transactions, sum(commands)::bigint as commands, sum(errors)::bigint as errors,
           median(duration_ms) as median_ms, max(duration_ms) as max_ms
    from mongo_transactions group by outcome order by transactions desc, outcome"""
_DRIVERS = """
    select driver, driver_version, client_platform as platform, app_name, count(distinct flow_id) as connections,
           count(distinct client_address) as addresses, count(*) as commands,
           string_agg(distinct compressor, ', ' order by compressor) as compressors
    from mongo_commands group by driver, driver_version, platform, app_name
    order by commands desc, driver, driver_version, app_name"""

ERRORS = Summary(
    "errors", "Errors", _ERRORS, "mongo_commands",
    (
        Column("command", "Command"), Column("error_code", "Code", "plain"), Column("error_name", "Name"),
        Column("commands", "Count", "count"), Column("clients", "Clients", "count"),
    ),
)  # fmt: skip
CURSORS = Summary(
    "cursors", "Cursors that outlived their first batch", _CURSORS, "mongo_cursors",
    (
        Column("ended", "Ended by"), Column("cursors", "Cursors"), Column("get_mores", "getMores"),
        Column("documents", "Documents"), Column("response_bytes", "Bytes"),
    ),
)  # fmt: skip
TRANSACTIONS = Summary(
    "transactions", "Transactions", _TRANSACTIONS, "mongo_transactions",
    (
        Column("outcome", "Outcome"), Column("transactions", "Count"), Column("commands", "Commands"),
        Column("errors", "Errors"), Column("median_ms", "Median ms"), Column("max_ms", "Max ms"),
    ),
)  # fmt: skip
DRIVERS = Summary(
    "drivers", "Drivers", _DRIVERS, "mongo_commands",
    (
        Column("driver", "Driver"), Column("driver_version", "Version", "text", "small"),
        Column("platform", "Platform", spare=3), Column("app_name", "Application"),
        Column("addresses", "Addresses", "count", spare=1),
        Column("connections", "Connections", "count"), Column("commands", "Commands", "count"),
        Column("compressors", "Compression", spare=2),
    ),
)  # fmt: skip
_PARTS = (ERRORS, CURSORS, TRANSACTIONS, DRIVERS)


def sections(source: Source, _: Sequence[Finding]) -> list[Section]:
    """One section; none without MongoDB traffic."""
    if not rows(source, "select 1 as one from mongo_commands limit 1"):
        return []
    found = shapes(source, _SHAPES_SHOWN)
    blocks: list[Block] = [Heading("Query shapes, by time in total"), *shape_blocks(found)]
    left = shape_count(source) - len(found)
    if left > 0:
        blocks.append(Paragraph(f"and {count(left, 'more shape')}: wirewitness shapes CAPTURE...", tone="quiet"))
    for part in _PARTS:
        if held := rows(source, part.query):
            blocks += [Heading(part.title), *summary_blocks(part, held)]
    return [protocol_section(MONGO.title, blocks)]


def values(source: Source) -> dict[str, Any]:
    """`mongo`: shapes (at most 1,000, by time in total), errors, cursors, transactions, drivers."""
    summaries = {part.key: rows(source, part.query) for part in _PARTS}
    return {"mongo": {"shapes": shapes(source, _SHAPES_IN_JSON), **summaries}}
