"""The program that reads one share of the flows. In: a job on standard input. Out: rows in files, the result on
standard output.

It ends when its standard input does: the process that started it is gone then.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from pathlib import Path

from pyarrow import feather

from analyser.reading.parent import end_with_parent
from analyser.reading.pipeline import Decoded, Pipeline
from analyser.reading.processes import ShareJob, ShareResult
from analyser.rows.store import RawStore
from dissectors.registry import dissectors


def main() -> None:
    """Run the job on standard input."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints does not get into the result
    try:
        job: ShareJob = pickle.load(sys.stdin.buffer)
    except EOFError:
        return  # interrupted before it got a job
    end_with_parent(signal.SIGKILL)
    try:
        result = read_share(job)
    except Exception as error:
        result = ShareResult({}, None, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    with results:
        pickle.dump(result, results)
    os._exit(0)  # the thread is still reading standard input


def read_share(job: ShareJob) -> ShareResult:
    """Read the job's share; its rows and flows are in the job's folder afterwards."""
    store = RawStore(job.folder)
    decoded = Pipeline(dissectors(job.options.enable), job.wanted, job.options, share=job.share, store=store).run(
        job.sources
    )
    return ShareResult(store.hand_over(), _write_flows(decoded, job.folder))


def _write_flows(decoded: Decoded, folder: Path) -> Path | None:
    flows = decoded.flows_table()
    if not flows.num_rows:
        return None
    path = folder / "flows.arrow"
    feather.write_feather(flows, path)
    return path
