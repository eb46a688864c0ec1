"""Reading with several processes. In: sources. Out: what one process would have given, put together.

This process reads the captures, deals their segments out (`dealing.py`) and decodes its own share; the others
(`helpers.py`, `share_process.py`) leave their rows in files of the analysis's temporary folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureLimits, EndpointTable
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.child import Child, NewKeys, ShareJob
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.segment_scheduler import ShareDealing
from wirewitness.analyser.decoding.run.shared_memory import Area

if TYPE_CHECKING:
    from wirewitness.analyser.decoding.run.keys import Keys


class SharedReading:
    """The work of children beside this process's own. areas: descriptors of memory that they see, too."""

    def __init__(self, children: Sequence[Child], areas: Sequence[int]) -> None:
        self._children = children
        self._areas = tuple(areas)
        self._dealing: ShareDealing | None = None

    def start(self, wanted: Sequence[str], options: ReadOptions, folder: Path, keys: Keys | None = None) -> None:
        """Give every process its job, and the keys; their rows will be in folders below FOLDER."""
        # Read-only views cannot be sent; key logs are read once.
        plain = replace(options, decode_as=dict(options.decode_as), topic_ids=dict(options.topic_ids), keylogs=())
        for number, child in enumerate(self._children, 1):
            job = ShareJob(tuple(wanted), plain, self._areas, folder / f"share-{number}")
            job.folder.mkdir()
            child.tell(job)
            if keys is not None:
                child.tell(NewKeys(keys.ring.entries()))

    def dealing(self, limits: CaptureLimits, endpoints: EndpointTable) -> ShareDealing:
        """Who decodes what; `endpoints` numbers the pairs of this process."""
        self._dealing = ShareDealing(self._children, [*map(Area, self._areas)], limits, endpoints)
        return self._dealing

    def collect(self, decoded: Decoded) -> None:
        """Wait for the other shares and add their flows and rows. Raises ShareFailed."""
        from pyarrow import feather

        flows = [decoded.flows_table()]
        for child in self._children:
            result = child.result()
            for name, rows in result.tables.items():
                decoded.store.tables[name].adopt(rows)
            if result.flows is not None:
                flows.append(feather.read_table(result.flows))
            for capture, remark in result.remarks:
                decoded.captures[capture].remarks.append(remark)
        decoded.flow_facts = pa.concat_tables(flows).sort_by(FLOW)
        if self._dealing is not None:
            self._dealing.let_go()
