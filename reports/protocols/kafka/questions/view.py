"""One way to see Kafka's groups, topics, brokers or clients. In: a view and what to choose; out: a SELECT.

A view is a SELECT over the selected rows and the columns that people are shown of it. `over_time` views have bins of
one width, whole multiples of it since 1970, with the bin's start as `ts`.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.columns import PAGE, TEXT, Column, shown_as
from wirewitness.reports.protocols.kafka.questions.group_partitions import at_time

OVER_TIME = "over-time"


class KafkaView(NamedTuple):
    """One way to see something.

    tables: read for it. sql: a SELECT; `{width}` stands for a bin's ns, `{until}` for a SQL boolean over `at_ns`, which
    is false for answers later than the time asked for, `{now_ns}` for the time at which ages are told. order: of its
    rows.
    columns: for people. heading: in text, columns whose values stand over the rows that share them, and in what words.
    """

    tables: tuple[str, ...]
    sql: str
    order: str
    columns: tuple[Column, ...]
    heading: tuple[str, tuple[str, ...]] = ("", ())

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the view as text."""
        return shown_as(TEXT, self.columns)

    @property
    def on_page(self) -> tuple[Column, ...]:
        """The columns of the view on a page of the dashboard."""
        return shown_as(PAGE, self.columns)


# Columns of several views.
TOPIC_COLUMN = Column("topic", "Topic")
PART = Column("partition", "Partition", "plain", 70, "PART")
TIME = (Column("ts", "Time", "time"),)
CLIENT = (Column("client_id", "Client", heading="CLIENT ID"), Column("client_address", "Address"))


def view_sql(
    view: KafkaView,
    *,
    column: str = "",
    names: tuple[str, ...] = (),
    also: str = "true",
    until_ns: int | None = None,
    now_ns: int | None = None,
    width_ns: int = 1,
    limit: int | None = None,
) -> str:
    """A SELECT. names: only rows whose `column` is one of these. also: a condition on rows.

    until_ns: what later answers told is left out. now_ns: ages are told at this time, or at the end of the capture
    where that is earlier.
    """
    until = "true" if until_ns is None else f"at_ns <= {int(until_ns)}"
    query = at_time(view.sql, now_ns).replace("{until}", until).replace("{width}", str(int(width_ns)))
    where = f" where ({also})" + (f" and {column} in ({', '.join(literal(name) for name in names)})" if names else "")
    count = "" if limit is None else f" limit {int(limit)}"
    return f"select * from ({query}){where} order by {view.order}{count}"
