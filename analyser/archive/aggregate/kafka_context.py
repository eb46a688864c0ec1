"""The context of commits and fetches over months: only hours are read whose rows can come out otherwise.

In: a change that has all base rows, and who works. Out: hours, and the commits and fetches of such hours made anew by
`analyser/kafka/facts/enrich.py`, some hours of one of both tables in each task; of an hour with many rows the commits
of some partitions, or some of the fetches.

What a row takes from far away is little: owners and clients of groups are tables of their own, made before, and each
hour tells in few rows (`kafka_summaries.py`) of log ends, lost bytes, who fetched under which name.
A row comes out otherwise only
- in an hour with other parts, or beside one with other fetches, since they count for some seconds;
- behind a log end or lost bytes that are new;
- while another member owns the partition than the last run thought (a later heartbeat can take back a doubt);
- where its client was taken for one of another group.
So owners, clients and lost bytes of the whole dataset are kept and compared with those of the next run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb

from wirewitness.analyser.archive.aggregate.derived import (
    Digest,
    Hour,
    among,
    change_connection,
    hour_of,
    hour_of_ns,
    parts_by_hour,
    replace_changed_hours,
    rows_of,
    together,
    view_of,
)
from wirewitness.analyser.archive.aggregate.hour_summaries import (
    Anew,
    differing,
    kept,
    make_summaries,
    remember,
    summarised,
)
from wirewitness.analyser.archive.aggregate.kafka_summaries import (
    COMMITS,
    COMMITS_OF_HOURS,
    FETCHERS,
    FETCHES,
    LAST_STEPS,
    SUMMARIES,
    TABLES,
    knowledge,
)
from wirewitness.analyser.archive.aggregate.lags import ENDS_OF_HOURS, TOPICS_OF_HOURS
from wirewitness.analyser.archive.aggregate.partitioning import Deal, Dealt, deal_rows, rows_of_shard
from wirewitness.analyser.archive.aggregate.shard_files import (
    Left,
    Stretch,
    leave,
    put_into_hours,
    shards_for,
    stretches,
)
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.engine.facts.stage import OFFSETS, PARTITION, TITLES, TOPIC_PARTITION
from wirewitness.analyser.kafka.facts.clients import clients_of_one_group
from wirewitness.analyser.kafka.facts.commit_views import FETCHES_SQL, owned_sql
from wirewitness.analyser.kafka.facts.enrich import enrich
from wirewitness.analyser.tables.queries import literal

# As it is seen in Spark.
STAGE = f"context: {TITLES[OFFSETS.makes]}"
ENDS = "kafka_log_ends"
_EVER = 2**63 - 1
_HOUR = hour_of("ts")
# Made before, of the whole dataset.
_OF_GROUPS = ("kafka_ownership", "kafka_clients")
# What the whole dataset tells of: kept, and compared with what the last run kept.
_KNOWN = {
    "context_known_gaps": losses("in_gaps"),
    "context_known_clients": clients_of_one_group(),
    "context_known_owners": owned_sql("kafka_ownership"),
}
_CLIENT = "cluster, address, client_id"
_OTHER_CLIENTS = f"""
    SELECT DISTINCT hour FROM {FETCHERS.name} SEMI JOIN (
        (FROM context_known_clients EXCEPT FROM context_known_clients_before) UNION ALL
        (FROM context_known_clients_before EXCEPT FROM context_known_clients)) USING ({_CLIENT})"""
_OWNED = "cluster, group_id, topic, partition, member_id, began"
_ENDS = f"coalesce(ended, {_EVER}) AS until, coalesce(greatest(ended, gone), {_EVER}) AS last"
# An interval that ends at another time matters between both ends; one that is new or gone, from its begin.
_OTHER_OWNERS = f"""
    SELECT DISTINCT {hour_of_ns("since")} AS first, {hour_of_ns("until")} AS last FROM (
        SELECT CASE WHEN was.here AND now.here THEN least(was.until, now.until) ELSE began END AS since,
               CASE WHEN was.here AND now.here THEN greatest(was.last, now.last) ELSE {_EVER} END AS until
        FROM (SELECT {_OWNED}, {_ENDS}, true AS here
              FROM (FROM context_known_owners_before EXCEPT FROM context_known_owners)) AS was
        FULL JOIN (SELECT {_OWNED}, {_ENDS}, true AS here
                   FROM (FROM context_known_owners EXCEPT FROM context_known_owners_before)) AS now USING ({_OWNED}))"""


def hours_to_make(change: Change, workers: Workers = HERE) -> list[set[Hour]]:
    """Hours whose commits or fetches can come out otherwise than they lie there, as many at a time as is good."""
    anew = summarised(change, workers, STAGE, SUMMARIES)
    (hours,) = each_of(change, workers, f"{STAGE}, what all hours tell", _hours_to_make, [anew])
    return hours


class _Work(NamedTuple):
    """Hours of one of both tables. dealt: their rows and those near, where they are several shards. some: which rows,
    where they are several stretches.

    shard: one of these. name: of the hours, before that of the shard where it leaves its rows.
    """

    table: str
    hours: set[Hour]
    name: str
    shard: int = 0
    dealt: Sequence[Dealt] = ()
    some: Stretch | None = None

    @property
    def is_shard(self) -> bool:
        """Others make the other rows of its hours."""
        return bool(self.dealt) or self.some is not None

    @property
    def of_shard(self) -> str:
        """The name under which it leaves its rows."""
        return f"{self.name}-{self.shard}"


def make_hours(change: Change, workers: Workers, made: Sequence[set[Hour]]) -> dict[str, set[Hour]]:
    """Make commits and fetches of these hours anew; table -> hours that were written.

    Hours are one task for each table. The commits of an hour with more rows than one shard are dealt by partitions; of
    such fetches a task makes some: what they get depends on their client only.
    """
    parts = parts_by_hour(change.parts(), (*OFFSETS.makes, ENDS))
    deals = [deal for number, hours in enumerate(made) for deal in _deals(parts, hours, str(number))]
    dealt: dict[str, list[Dealt]] = {}
    for one in deal_rows(change, workers, STAGE, deals) if deals else ():
        dealt.setdefault(one.deal.name, []).append(one)
    works: list[_Work] = []
    for number, hours in enumerate(made):
        own = dealt.get(str(number), [])
        shards = own[0].deal.shards if own else 1
        works += [_Work(COMMITS, hours, str(number), shard, own) for shard in range(shards)]
        for shard, some in enumerate(_fetches(parts, hours)):
            works.append(_Work(FETCHES, hours, str(number), shard, some=some))
    written: dict[str, set[Hour]] = {table: set() for table in OFFSETS.makes}
    told: dict[str, dict[str, dict[Hour, Digest]]] = {}
    full: dict[str, set[Hour]] = {}
    for work, made_of_it in zip(works, each_of(change, workers, STAGE, _make_hours, works), strict=True):
        if isinstance(made_of_it, set):
            written[work.table] |= made_of_it
        else:
            told.setdefault(work.table, {})[work.of_shard] = made_of_it
            full.setdefault(work.table, set()).update(work.hours)
    lefts = [Left(table, shards_told, False, full[table]) for table, shards_told in told.items()]
    for left, put in zip(lefts, put_into_hours(change, workers, STAGE, lefts) if lefts else (), strict=True):
        written[left.table] |= put
    return written


def _deals(parts: Mapping[Hour, Sequence[Part]], hours: set[Hour], name: str) -> list[Deal]:
    """How rows of these hours, and those of other tables near them, are dealt; nothing where they are few."""
    own = [part for hour in hours for part in parts.get(hour, ()) if part.table in OFFSETS.makes]
    shards = shards_for(sum(part.rows for part in own))
    if shards <= 1:
        return []
    deals = []
    for table, key in ((COMMITS, PARTITION), (FETCHES, PARTITION), (ENDS, TOPIC_PARTITION)):
        near = hours if table == COMMITS else _beside(hours)
        found = [part for hour in near for part in parts.get(hour, ()) if part.table == table]
        deals.append(Deal(name, table, found, key, shards, hidden=table == COMMITS))
    return deals


def _fetches(parts: Mapping[Hour, Sequence[Part]], hours: set[Hour]) -> list[Stretch | None]:
    """The fetches of these hours in stretches; None for all of them where they are few."""
    own = [part for hour in hours for part in parts.get(hour, ()) if part.table == FETCHES]
    rows = sum(part.rows for part in own)
    shards = shards_for(rows)
    return [*stretches(own, -(-rows // shards))] if shards > 1 else [None]


def _hours_to_make(snapshot: Snapshot, anew: Anew) -> list[set[Hour]]:
    parts = parts_by_hour(snapshot.parts(), (COMMITS, FETCHES))
    with change_connection(snapshot) as con:
        make_summaries(con, snapshot, anew)
        knowledge(con, "in_")
        for table in _OF_GROUPS:
            view_of(con, snapshot, table)
        for name, query in _KNOWN.items():
            con.execute(f"CREATE TEMP TABLE {name} AS {query.replace('context_gaps', 'context_known_gaps')}")
        known = [remember(con, snapshot, name) for name in _KNOWN]
        if not all(known):
            hours = set(parts)
        else:
            hours = anew[COMMITS_OF_HOURS] | _beside(anew[FETCHERS] | anew[ENDS_OF_HOURS] | _hours(con, _OTHER_CLIENTS))
            hours |= _behind(con, anew, set(parts)) | _while_owned(con, set(parts))
    return [made for made, _ in together({hour: parts[hour] for hour in hours if hour in parts})]


def _make_hours(snapshot: Snapshot, work: _Work) -> set[Hour] | dict[Hour, Digest]:
    """A fetch gets the group of its client, a commit what the stage joins to it. One of many shards leaves its rows."""
    table, made = work.table, work.hours
    parts = parts_by_hour(snapshot.parts(), TABLES)
    own = [part for hour in made for part in parts.get(hour, ()) if part.table == table]
    with change_connection(snapshot) as con:
        if table == FETCHES:
            clients = f"read_parquet({literal(kept(snapshot, 'context_known_clients'))})"
            con.execute(f"CREATE TEMP VIEW context_clients AS FROM {clients}")
            some = work.some or Stretch(own)
            con.execute(f"CREATE TEMP VIEW in_{FETCHES} AS {some.rows(snapshot, FETCHES)}")
            rows = f"FROM ({FETCHES_SQL})"
        else:
            _make_views(con, snapshot, parts, work)
            enrich(con)
            rows = f"FROM {table} WHERE filename IS NOT NULL AND {among(_HOUR, made)}"
        if work.is_shard:
            return leave(con, snapshot, table, rows, work.of_shard)
        return replace_changed_hours(con, snapshot, table, rows, made, is_cheap=True)


def _make_views(
    con: duckdb.DuckDBPyConnection, snapshot: Snapshot, parts: Mapping[Hour, Sequence[Part]], work: _Work
) -> None:
    """The views that `enrich` reads, with whole rows of a shard of these hours. Whole rows have a `filename`.

    Owners and clients are those of the whole dataset.
    """
    for summary in SUMMARIES:
        source = f"FROM read_parquet({literal(kept(snapshot, summary.name))})"
        con.execute(f"CREATE TEMP VIEW {summary.name} AS {source}")
    near = _beside(work.hours)
    of_shard = {one.deal.table: rows_of_shard(snapshot, one, work.shard) for one in work.dealt}
    commits, around = ([part for hour in some for part in parts.get(hour, ())] for some in (work.hours, near))
    whole = of_shard.get(COMMITS) or rows_of(snapshot, COMMITS, commits, hidden=True)
    con.execute(f"CREATE TEMP VIEW {COMMITS} AS {whole}")
    knowledge(con)
    fetches = of_shard.get(FETCHES) or rows_of(snapshot, FETCHES, around)
    con.execute(f"CREATE TEMP VIEW {FETCHES} AS {fetches}")
    steps = of_shard.get(ENDS) or rows_of(snapshot, ENDS, around)
    con.execute(
        f"CREATE TEMP VIEW {ENDS} AS FROM ({steps}) UNION ALL BY NAME "
        f"SELECT * EXCLUDE hour FROM ({LAST_STEPS}) WHERE NOT {among('hour', near)}"
    )
    for table in _OF_GROUPS:
        view_of(con, snapshot, table)


def _beside(hours: set[Hour]) -> set[Hour]:
    return hours | {hour + by for hour in hours if hour is not None for by in (-1, 1)}


def _behind(con: duckdb.DuckDBPyConnection, anew: Anew, there: set[Hour]) -> set[Hour]:
    """Hours from the first log end or lost bytes on that the last run did not know."""
    gaps = " UNION ALL ".join(
        f"(SELECT {hour_of_ns('at_ns')} AS at_hour FROM (FROM {one} EXCEPT FROM {other}))"
        for one, other in (
            ("context_known_gaps", "context_known_gaps_before"),
            ("context_known_gaps_before", "context_known_gaps"),
        )
    )
    ends = " UNION ALL ".join(
        f"SELECT at_hour FROM ({differing(summary, anew[summary])})" for summary in (ENDS_OF_HOURS, TOPICS_OF_HOURS)
    )
    first = con.execute(f"SELECT min(at_hour) FROM ({ends} UNION ALL {gaps})").fetchall()[0][0]
    return set() if first is None else {hour for hour in there if hour is not None and hour >= first}


def _while_owned(con: duckdb.DuckDBPyConnection, there: set[Hour]) -> set[Hour]:
    """Hours in which the owner of a partition may be another than the last run knew."""
    ranges = con.execute(f"SELECT first, max(last) FROM ({_OTHER_OWNERS}) GROUP BY first").fetchall()
    return {hour for hour in there if hour is not None and any(first <= hour <= last for first, last in ranges)}


def _hours(con: duckdb.DuckDBPyConnection, query: str) -> set[Hour]:
    return {None if hour is None else int(hour) for (hour,) in con.execute(query).fetchall()}
