"""Analyses captures in a process of its own. In: an order as JSON on standard input; out: kept tables.

Standard output gets one JSON object a line: progress, then `{"folder": ...}` or `{"error": sentence}`. It ends when it
is told to (SIGTERM) or when standard input is closed, for then nobody waits for it; what it made so far goes with it.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wirewitness.analyser import CaptureError, read
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.evidence.cache import new_part, part
from wirewitness.analyser.base.options import Progress
from wirewitness.analyser.decoding.run.parent import end_with_parent
from wirewitness.app.dashboard.opened import META, TablesGone, reading_options

# Of captures with fewer messages nobody waits for an answer.
LONG = 50_000


def main() -> None:
    """Does the one thing that standard input asks for."""
    order = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    end_with_parent(signal.SIGTERM)
    try:
        folder = keep_tables(order["paths"], order["options"], order["key"])
    except CaptureError as error:
        _say(error=str(error))
        return
    _say(folder=str(folder))


def keep_tables(paths: list[str], given: dict[str, Any], key: str) -> Path:
    """The folder with the tables of these captures. Raises CaptureError."""
    from wirewitness.app.dashboard.snapshots import SHARED_TABLES

    options = reading_options(given)
    wanted = [*SHARED_TABLES]
    with read(paths, options=options, tables=wanted, progress=_tell) as analysis, _place(key) as folder:
        for number, name in enumerate(wanted):
            _say(stage=name, done=number, total=len(wanted) + 1)
            analysis.write_parquet(name, folder / f"{name}.parquet")
        meta = {**_meta(paths, given, analysis), "tables": wanted}
        (folder / META).write_text(json.dumps(meta), encoding="utf-8")
        if analysis.sql("SELECT count(*) AS n FROM messages").column(0)[0].as_py() >= LONG:
            _say(stage="answers", done=len(wanted), total=len(wanted) + 1)
            _answer_ahead(folder)
    return part(key) or folder


def _answer_ahead(folder: Path) -> None:
    """What cannot be kept is asked when somebody wants to see it."""
    from wirewitness.app.dashboard.precomputed import answer_ahead

    with suppress(OSError, TablesGone):
        answer_ahead(folder)


@contextmanager
def _place(key: str) -> Iterator[Path]:
    """A part of the cache; where there is none, a folder that the starting process removes with its own."""
    try:
        making = new_part(key)
        folder = making.__enter__()
    except OSError:
        yield Path(tempfile.mkdtemp(prefix="tables-"))
        return
    try:
        yield folder
    except BaseException as error:
        making.__exit__(type(error), error, error.__traceback__)
        raise
    making.__exit__(None, None, None)


def _meta(paths: list[str], given: dict[str, Any], analysis: Analysis) -> dict[str, Any]:
    wrong = {unread.path for unread in analysis.unread}
    return {
        "paths": [path for path in paths if path not in wrong],
        "options": given,
        "remarks": analysis.remarks,
        "unread": [unread.reason for unread in analysis.unread],
        "failures": [failure.code for failure in analysis.failures],
    }


def _tell(progress: Progress) -> None:
    done, counted = progress.done_bytes, progress.counted
    _say(file=progress.file, done=done, total=progress.total_bytes, packets=progress.packets, counted=counted)


def _say(**values: Any) -> None:
    with suppress(OSError):
        print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
