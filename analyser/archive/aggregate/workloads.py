"""Findings of a dataset name owners of clients.

In: what a task sees of a change, findings. Out: the findings with owners in sentences and numbers.
"""

from __future__ import annotations

import pyarrow as pa

from wirewitness.analyser.analysis.client_names import NEEDED, named_findings
from wirewitness.analyser.archive.aggregate.derived import change_connection, view_of
from wirewitness.analyser.archive.dataset.snapshot import Sight

# As it is seen in Spark.
STAGE = "findings: owners of clients"


def named(sight: Sight, findings: pa.Table) -> pa.Table:
    """The findings table with owners."""
    own = [table for table in NEEDED if sight.parts(table)]
    if "flows" not in own or not findings.num_rows:
        return findings
    with change_connection(sight) as con:
        for table in own:
            view_of(con, sight, table)
        return named_findings(con, findings, own)
