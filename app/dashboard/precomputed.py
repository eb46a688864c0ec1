"""What the dearest pages ask is asked when a long capture was analysed. In: a folder of its tables; out: kept answers.

Groups and Compare work out how every group stood, from all that its members ever said. With a million messages that
takes seconds, and the answer is the same each time. What is asked here is what the pages ask at first sight; whatever
else somebody asks them is asked then.
"""

from __future__ import annotations

from pathlib import Path

from wirewitness.app.dashboard.answers import keep_answer
from wirewitness.app.dashboard.opened import Opened, Selected
from wirewitness.app.dashboard.shown_findings import known
from wirewitness.app.dashboard.views.compare import both_compared
from wirewitness.app.dashboard.views.kafka_group_list import listed_groups
from wirewitness.app.dashboard.views.kafka_groups import CHANGES, MEMBERS, commits_of_all, of_group
from wirewitness.reports.base.questions.timelines import middle_ns, width_of
from wirewitness.reports.protocols.kafka.questions.commits import (
    commit_counts,
    commits,
    committers,
    log_ends,
    owners,
    partitions_by_suspicion,
)
from wirewitness.reports.protocols.kafka.questions.groups import groups
from wirewitness.reports.protocols.kafka.questions.lag_history import lag_over_time


def answer_ahead(folder: Path) -> None:
    """Keep the answers beside the tables. Raises OSError, TablesGone."""
    opened = Opened.kept(folder)
    try:
        source = Selected(opened, opened.options)
        known(source)
        _ask_of_groups(source)
        middle = middle_ns(source)
        if middle is not None:
            both_compared(source.part(None, middle), source.part(middle, None))
        for query, answer in opened.answers():
            keep_answer(folder, query, answer)
    finally:
        opened.close()


def _ask_of_groups(source: Selected) -> None:
    """The list, and what stands below it of the first one."""
    at_end = source.up_to_its_end()
    every = groups(at_end)
    listed = listed_groups(source, at_end, every)
    if not listed:
        return
    names = listed[0]["cluster_id"], listed[0]["group_id"]
    for question in (committers, commit_counts, owners):
        question(source, *names)
    places = [(row["topic"], row["partition"]) for row in partitions_by_suspicion(source, *names)]
    if len(places) == 1:
        commits(source, *names, places)
        log_ends(source, names[0], places[0], width_of(source))
    elif places:
        commits_of_all(source, *names, places)
    lag_over_time(source, *names, width_of(source))
    for flag in (MEMBERS, CHANGES):
        of_group(at_end, *names, flag)
