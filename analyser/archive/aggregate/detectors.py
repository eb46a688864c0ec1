"""All detectors over the rows of a change.

In: a change, enriched by the context, and who works. Out: the findings table, and what could not be looked at. Each
task takes some rules, and leaves those that have many rows to look at to shares of these (`rule_families.py`). Between
workers only findings travel.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from wirewitness.analyser.analysis.all_rules import DETECTORS
from wirewitness.analyser.archive.aggregate.rule_families import SHARE_ROWS, look_in_shares
from wirewitness.analyser.archive.aggregate.rule_tasks import Limits, look, placed
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.engine.rules.failures import failure_of
from wirewitness.analyser.engine.rules.findings import Finding, findings_table
from wirewitness.analyser.engine.rules.running import MOST_PARTITION_ROWS, Failure

# As it is seen in Spark.
STAGE = "findings"
# One task looks at so many rows in some ten seconds; a rule with more of them is dealt to several.
FEW_ROWS = 1_000_000
LIMITS = Limits(FEW_ROWS, MOST_PARTITION_ROWS)
# Opening a connection takes as long as a rule with little to do; of four tasks a worker the last is a short one.
_TASKS_OF_WORKER = 4


class Detected(NamedTuple):
    """The findings table, in its order, and the partitions that could not be looked at."""

    findings: pa.Table
    failures: list[Failure]


def detect(
    change: Change,
    workers: Workers = HERE,
    codes: Iterable[str] | None = None,
    limits: Limits = LIMITS,
    share_rows: int = SHARE_ROWS,
) -> Detected:
    """Findings of the rules with these codes (None: all) over all rows of a change.

    share_rows: of a rule with many, one task has about so many rows.
    """
    chosen = [*DETECTORS] if codes is None else [DETECTORS[code].code for code in codes]
    tasks = _dealt(_sizes(change, chosen), _TASKS_OF_WORKER * workers.width)
    told = each_of(change, workers, STAGE, partial(look, limits), tasks)
    found = [one for few in told for one in few.findings]
    many = sorted(code for few in told for code in few.many)
    if many:
        shared = look_in_shares(change, workers, STAGE, many, limits.most_rows, share_rows)
        told += shared
        found += _placed(change, workers, [one for share in shared for one in share.findings])
    # Where memory does not suffice, each of many shares says so.
    failures = dict.fromkeys(failure for one in told for failure in one.failures)
    return Detected(findings_table(found), [failure_of(code, data) for code, data in failures])


def _sizes(change: Change, codes: Iterable[str]) -> dict[str, int]:
    """Bytes of the tables that each of the rules reads, which has any."""
    sizes: dict[str, int] = defaultdict(int)
    for part in change.parts():
        sizes[part.table] += part.bytes
    found = {code: sum(sizes[table] for table in DETECTORS[code].reads) for code in codes}
    return {code: size for code, size in found.items() if size}


def _dealt(sizes: Mapping[str, int], most_tasks: int) -> list[list[str]]:
    """The dearest first, each to the task that has least to do; tasks with much to do come first."""
    tasks: list[tuple[int, int, list[str]]] = [(0, number, []) for number in range(most_tasks)]
    for code, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        load, number, own = heapq.heappop(tasks)
        heapq.heappush(tasks, (load + size, number, [*own, code]))
    return [own for load, _, own in sorted(tasks, key=lambda task: (-task[0], task[1])) if own]


def _placed(change: Change, workers: Workers, findings: Sequence[Finding]) -> Sequence[Finding]:
    """With the places of their evidence, which shares did not look up: each would have read all messages."""
    if not findings:
        return ()
    (found,) = each_of(change, workers, STAGE, placed, [findings])
    return found
