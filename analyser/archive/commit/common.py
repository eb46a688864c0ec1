"""What only all connections together tell: clusters, names of topic ids, what the captures cover.

In: what the decode stage left of all shards. Out: `Common`, and the clusters of each shard's flows beside its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.analysis.covered import Spans, covered
from wirewitness.analyser.archive.dataset.bounds import COMMON
from wirewitness.analyser.archive.dataset.manifest import InputFile
from wirewitness.analyser.archive.dataset.place import ANEW, DatasetError
from wirewitness.analyser.archive.dataset.stage_files import put_table, table_at
from wirewitness.analyser.archive.dataset.state_files import kept_json, put_kept_json
from wirewitness.analyser.archive.decode.decode_stage import FLOWS_FILE
from wirewitness.analyser.base.storage.exchange_files import scratch_in, those_there
from wirewitness.analyser.base.storage.files import let_reach
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.run.capture_rows import file_label
from wirewitness.analyser.engine.facts.naming_tables import BROKERS, NAMED_BY, TOPICS
from wirewitness.analyser.engine.facts.topics import topic_names
from wirewitness.analyser.kafka.facts.clusters import OF_FLOWS, cluster_of_flows
from wirewitness.analyser.tables.queries import distinct, literal, name_list, open_connection, quoted
from wirewitness.analyser.tables.tables import arrow_schema

if TYPE_CHECKING:
    import duckdb

KNOWN_FILE, COMMON_FILE = "known.arrow", "common.json"
CLUSTER = "cluster_id"


@dataclass(frozen=True, slots=True)
class Common:
    """What only all shards together tell. files: labels by number. logs: numbers of request logs. covered: see
    `analysis/covered.py`."""

    files: tuple[str, ...]
    logs: frozenset[int]
    covered: Spans
    topics: Mapping[str, str]


def write_common(common: Common, state: FolderPath) -> None:
    """Keep it in a state."""
    value = {
        "files": common.files,
        "logs": sorted(common.logs),
        "covered": common.covered,
        "topics": dict(common.topics),
    }
    put_kept_json(state / COMMON_FILE, value, COMMON)


def read_common(state: FolderPath) -> Common:
    """What a state keeps. DatasetError for anything else."""
    path = state / COMMON_FILE
    value = kept_json(path, COMMON)
    try:
        files, logs, spans, topics = (value[name] for name in ("files", "logs", "covered", "topics"))
        logs, spans = frozenset(logs), tuple((first, last) for first, last in spans)
    except (LookupError, TypeError, ValueError) as error:
        raise DatasetError(f"{path} is no state of a dataset: {ANEW}.") from error
    names = [*files, *topics, *topics.values()] if isinstance(files, list) and isinstance(topics, dict) else [None]
    are_numbers = all(type(number) is int for number in (*logs, *chain.from_iterable(spans)))
    if not all(isinstance(name, str) for name in names) or not are_numbers:
        raise DatasetError(f"{path} is no state of a dataset: {ANEW}.")
    return Common(tuple(files), logs, spans, topics)


def put_together(
    folders: Iterable[FolderPath], files: Sequence[InputFile], work: FolderPath, topic_ids: Mapping[str, str]
) -> Common:
    """What the shards in these folders tell together; each one's clusters go to its folder. files: all that were
    read. work: for scratch files. topic_ids: names that the user gave."""
    spans = covered((one.first_ns, one.last_ns) for one in files)
    shards = [*folders]
    flows = [table_at(folder / FLOWS_FILE, OF_FLOWS) for folder in shards]
    with scratch_in(work) as scratch, closing(open_connection(scratch, [work.resolve()])) as con:
        let_reach(con, [work])
        for table in NAMED_BY:
            _view(con, table, those_there(folder / f"{table}.parquet" for folder in shards))
        topics = topic_names(distinct(con, TOPICS, NAMED_BY[TOPICS]))
        clusters = cluster_of_flows(pa.concat_tables(flows), distinct(con, BROKERS, NAMED_BY[BROKERS]))
    for folder, own in zip(shards, flows, strict=True):
        known = pa.array([clusters.get(one) for one in own.column("flow_id").to_pylist()], pa.string())
        put_table(folder / KNOWN_FILE, pa.table({CLUSTER: known}))
    labels, logs = (file_label(one.path) for one in files), (n for n, one in enumerate(files) if one.kind == "log")
    return Common(tuple(labels), frozenset(logs), spans, {**topics, **topic_ids})


def _view(con: duckdb.DuckDBPyConnection, table: str, paths: list[FolderPath]) -> None:
    if paths:
        source = f"read_parquet({literal([str(path.resolve()) for path in paths])}, hive_partitioning = false)"
        con.execute(f"CREATE OR REPLACE VIEW {quoted(table)} AS SELECT {name_list(NAMED_BY[table])} FROM {source}")
    else:
        con.register(table, arrow_schema(table).empty_table())
