"""Findings of a dataset name owners of clients. In: findings, and the parts of the tables that know owners. Out: the
findings with owners in sentences and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from analyser.archive.dataset.stored import stored_rows
from analyser.registry.queries import name_list, open_connection, quoted
from analyser.registry.tables import TABLES
from analyser.storage.files import let_reach
from analyser.storage.folders import FolderPath
from analyser.storage.handing import scratch_in
from analyser.tables.named_clients import NEEDED, named_findings

# As it is seen in Spark.
STAGE = "findings: owners of clients"


def named(findings: pa.Table, parts: Mapping[str, Sequence[str]], folder: FolderPath) -> pa.Table:
    """The findings table with owners. parts: addresses of the files of each table. folder: for temporary files."""
    own = {table: parts[table] for table in NEEDED if parts.get(table)}
    if "flows" not in own or not findings.num_rows:
        return findings
    files = [path for paths in own.values() for path in paths]
    places = sorted({path.rpartition("/")[0] for path in files})
    with scratch_in(folder) as scratch, closing(open_connection(scratch, places)) as con:
        let_reach(con, files)
        for table, paths in own.items():
            columns = name_list(TABLES[table].column_names())
            con.execute(f"CREATE TEMP VIEW {quoted(table)} AS SELECT {columns} FROM {stored_rows(table, paths)}")
        return named_findings(con, findings, own)
