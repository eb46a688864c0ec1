"""What is compared: a population is one SELECT over finished tables, its measures are columns of it.

In: nothing. Out: `Population` and `Measure`, which protocols declare (`analyser/*/facts/populations.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirewitness.analyser.tables.tables import TABLES

# With so many of them, a median of the others and their deviation say something; with fewer, more is asked for.
MANY_LIKES = 4
# Subjects of one population that are compared, those with most rows behind them first: names are whatever was sent.
MOST_SUBJECTS = 5_000


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of a population, and from when on a value of it lies apart.

    name: the word in the column `measure`. value: the column. question: the one of `QUESTIONS` that it asks, so that
    nobody is told twice what a finding about the same answers. text: the sentence, in which names of columns stand in
    braces; `{who}` is the client, `{where}` the partition, `{value}` and `{usual}` come with their unit.
    usual: the column with what the value is compared with (the subject's own past, its acts that had an effect);
    without one it is compared with the median of its likes. unit: ms, bytes, s, or a noun in the plural.
    ratio: how many times the usual value. floor: the least difference that counts. samples: rows that every value needs
    behind it. low: values below the others count, too. two: rows needed where there is one other only. weight: how
    much surer it is than others. likes: the column whose rows are likes, where it is another one.
    """

    name: str
    value: str
    question: str
    text: str
    usual: str = ""
    unit: str = ""
    ratio: float = 3.0
    floor: float = 0.0
    samples: int = 1
    low: bool = False
    two: int = 50
    weight: float = 1.0
    likes: str = "likes"


@dataclass(frozen=True, slots=True)
class Population:
    """Subjects that are alike, a row each.

    protocol: of its lines; empty where the rows have a column `protocol`. of: a table; without rows of it there is
    nothing to ask. subject: columns that name a subject. select: gives `likes` (a text: rows with the same
    are compared with each other), the subject's columns, those of the measures, `samples`, `first_ns` and `last_ns`
    (Unix ns) and `ids`, a list of exchanges or flows to look at. asks: an aggregate of all rows of `of`, which is
    true whenever a value may lie apart: planning the SELECT takes longer than all rows of most captures.
    """

    protocol: str
    of: str
    subject: tuple[str, ...]
    select: str
    measures: tuple[Measure, ...]
    asks: str = "count(*) > 0"

    @property
    def reads(self) -> tuple[str, ...]:
        """Tables that the SELECT names."""
        words = {*re.findall(r"\w+", self.select)}
        return tuple(name for name in TABLES if name in words)

    def query(self) -> str:
        """The rows of those subjects that have most behind them, always in the same order."""
        order = ", ".join(f"{name} nulls first" for name in self.subject)
        return f"select * from ({self.select}) order by samples desc, likes nulls first, {order} limit {MOST_SUBJECTS}"


# How a client that is named by id and address stands in SELECTs of populations.
CLIENT = "client_id, client_address"


def evidence(id_column: str = "exchange_id", at: str = "ts") -> str:
    """Columns of aggregated rows: from when to when, and the first and last of them to look at."""
    return (
        f"count(*) as samples, min(epoch_ns({at})) as first_ns, max(epoch_ns({at})) as last_ns, "
        f"list_distinct([arg_min({id_column}, {at}), arg_max({id_column}, {at})]) as ids"
    )


def columns_of(table: str, columns: str) -> str:
    """These columns of one of the tables."""
    return ", ".join(f"{table}.{name}" for name in columns.split(", "))


def same(one: str, other: str, columns: str) -> str:
    """SQL: rows of both tables have the same in these columns, where null is a value like others."""
    return " and ".join(f"{one}.{name} is not distinct from {other}.{name}" for name in columns.split(", "))


def quarters(value: str, key: str, rows: str, least: int = 32) -> str:
    """A SELECT of what grows with time: medians of the first and last quarter of the time of a key, by eighths.

    value: what grows; rows: what stands behind FROM, with `ts`, `exchange_id`; least: rows that a key has to have.
    rising: the correlation of the eighths' medians with time. Eighths are of time: to deal rows out would sort them.
    """
    return f"""
        with grown as (select {key}, exchange_id, ts, {value} as value from {rows}),
        spans as (select {key}, min(epoch_ns(ts)) as from_ns, max(epoch_ns(ts)) as to_ns from grown
                  where value is not null group by {key}
                  having count(*) >= {least} and max(epoch_ns(ts)) > min(epoch_ns(ts)))
        select {columns_of("eighths", key)}, sum(samples)::bigint as samples, min(first_ns) as first_ns,
               max(last_ns) as last_ns, list_distinct([arg_min(ids[1], eighth), arg_max(ids[-1], eighth)]) as ids,
               corr(eighth, middle) as rising, median(middle) filter (eighth < 2) as began,
               median(middle) filter (eighth >= 6) as ended
        from (
            select {columns_of("grown", key)}, (epoch_ns(ts) - from_ns) // ((to_ns - from_ns) // 8 + 1) as eighth,
                   median(value) as middle, {evidence()}
            from grown join spans on {same("grown", "spans", key)} where value is not null
            group by {columns_of("grown", key)}, eighth) as eighths
        group by {columns_of("eighths", key)} having corr(eighth, middle) > 0.8 and count(*) >= 6"""
