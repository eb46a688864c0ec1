"""The program of a process that helps: it decodes a shard of the flows, then it makes shards of the stages of the
context and runs some of the rules.

In: messages on standard input. Out: rows in files, on standard output what they are and what rules found. It ends when
its standard input does: the process that started it is gone then, or has no more to do for it.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import traceback
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

from wirewitness.analyser.decoding.run import shard_process

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from wirewitness.analyser.analysis.processes.messages import Begin, LookedAt

# What is imported while the other processes still decode.
_LATER = (
    "duckdb",
    "wirewitness.analyser.analysis.processes.shard_maker",
    "wirewitness.analyser.analysis.processes.evaluate",
    "wirewitness.analyser.analysis.all_rules",
    "wirewitness.analyser.tables.queries",
)


def main() -> None:
    """Do what standard input says; the process ends."""
    told = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints does not get into the result
    job = shard_process.serve(sys.stdin.buffer, told)
    if job is not None and "findings" in job.wanted:
        for area in job.areas:
            os.close(area)
        serve(sys.stdin.buffer, told)
    os._exit(0)  # nothing that it left open matters to anybody


def serve(messages: IO[bytes], told: IO[bytes]) -> None:
    """Run rules as the messages say."""
    from importlib import import_module

    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    for name in _LATER:
        import_module(name)
    with suppress(EOFError, BrokenPipeError):  # nobody waits for it any more
        pickle.dump(_looked_at(pickle.load(messages), messages), told)
        told.flush()


def _looked_at(begin: Begin, messages: IO[bytes]) -> LookedAt:
    from wirewitness.analyser.analysis.processes.messages import LookedAt

    try:
        return _looked(begin, messages)
    except EOFError:
        raise
    except Exception as error:
        return LookedAt({}, failure=f"{type(error).__name__}: {error}\n{traceback.format_exc()}")


def _looked(begin: Begin, messages: IO[bytes]) -> LookedAt:
    from contextlib import closing
    from functools import partial
    from pathlib import Path

    from wirewitness.analyser.analysis.all_rules import RULES
    from wirewitness.analyser.analysis.processes.evaluate import look
    from wirewitness.analyser.analysis.processes.messages import LookedAt, Shards
    from wirewitness.analyser.analysis.processes.queue import taken
    from wirewitness.analyser.analysis.processes.shard_maker import ShardMaker
    from wirewitness.analyser.analysis.processes.shared_tables import make_view
    from wirewitness.analyser.decoding.run.shared_memory import Area
    from wirewitness.analyser.engine.rules.rule import Rule
    from wirewitness.analyser.tables.queries import HELPER_MEMORY, open_connection
    from wirewitness.analyser.tables.tables import arrow_schema

    area = Area(begin.tables)
    offered: list[list[Rule]] = []
    rows: dict[str, int] = dict.fromkeys(begin.names, 0)
    with TemporaryDirectory(prefix="rules-", dir=begin.folder) as own:

        def connect(name: str) -> DuckDBPyConnection:
            (folder := Path(own, name)).mkdir(exist_ok=True)
            most = begin.temporary_bytes
            return open_connection(folder, (begin.folder,), memory=HELPER_MEMORY, threads=1, temporary_bytes=most)

        con = connect("rules")
        maker = ShardMaker(partial(connect, "shares"), area, begin.folder, begin.telling)

        def hear_next() -> None:
            told = pickle.load(messages)
            if isinstance(told, Shards):
                maker.add(told)
                return
            for shown in told.tables:
                make_view(con, area, shown)
                rows[shown.name] = shown.rows
            offered.extend([RULES[code] for code in codes] for codes in told.codes)

        def hear(number: int) -> None:
            """Take offers until the rules with this number are among them."""
            while number >= len(offered):
                hear_next()
            maker.close()

        def make(number: int) -> None:
            while not maker.knows(number):
                hear_next()
            maker.make(number)

        with con, closing(maker):
            for name in begin.names:
                con.register(name, arrow_schema(name).empty_table())
            found = look(con, taken(begin.queue, begin.first, make), offered, hear, rows, Path(own))
            # The process that started it has more memory: it runs those rules again that need it.
            return LookedAt({code: looked for code, looked in found.items() if not looked.lacks_memory})
