"""Which rows of a table a caller wants. In: `ReadOptions`. Out: SQL conditions, times as values DuckDB can skip by."""

from __future__ import annotations

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.queries import literal
from wirewitness.analyser.tables.tables import ALL_TABLES

# First and last time of a row where it is not `ts`: these are shown when they touch the time.
_TIME_COLUMNS = {
    "captures": ("", ""),
    "flows": ("ts_first", "ts_last"),
    "findings": ("ts_first", "ts_last"),
    "stands_out": ("ts_first", "ts_last"),
    "findings_history": ("ts_first", "ts_last"),
    "kafka_clients": ("ts", "ts_last"),
    "kafka_generations": ("ts", ""),
    "kafka_group_states": ("ts", ""),
    "kafka_ownership": ("ts", ""),
    "kafka_members": ("ts", "ts_last"),
    "kafka_topics": ("ts", ""),
    "kafka_log_ends": ("ts", "ts_last"),
    "kafka_rebalances": ("ts", "ts_end"),
}


def time_columns(table: str) -> tuple[str, str]:
    """The columns that `--to` and `--from` look at: first and last time of a row. Empty where they select nothing."""
    return _TIME_COLUMNS.get(table, ("ts", "ts"))


def conditions(table: str, options: ReadOptions) -> list[str]:
    """What rows have to fulfil, empty for all. Protocol names are checked before."""
    found = []
    first, last = time_columns(table)
    # A comparison of the column itself: DuckDB then leaves out what the statistics of a Parquet file exclude.
    if last and options.from_ns is not None:
        found.append(f"{last} >= make_timestamp_ns({options.from_ns})::TIMESTAMPTZ_NS")
    if first and options.to_ns is not None:
        found.append(f"{first} < make_timestamp_ns({options.to_ns})::TIMESTAMPTZ_NS")
    if options.protocols and "protocol" in ALL_TABLES[table].column_names():
        found.append(f"protocol IN ({', '.join(map(literal, options.protocols))})")
    elif options.protocols and ALL_TABLES[table].protocol not in {None, *options.protocols}:
        found.append("false")
    return found
