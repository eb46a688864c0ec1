"""Answers to what the pages of a long capture ask first, kept beside its tables, so that nobody waits for them.

In: a folder of kept tables and a query; out: its answer. Only the worker that makes the tables writes here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

_QUERY = b"query"


def keep_answer(folder: Path, query: str, answer: pa.Table) -> None:
    """Raises OSError."""
    told = answer.replace_schema_metadata({_QUERY: query.encode("utf-8", "surrogatepass")})
    with pa.OSFile(str(_place(folder, query)), "wb") as file, pa.ipc.new_file(file, told.schema) as writer:
        writer.write_table(told)


def kept_answer(folder: Path, query: str) -> pa.Table | None:
    """None where there is none, or none that can be read: then the tables have to be asked."""
    try:
        with pa.OSFile(str(_place(folder, query)), "rb") as file:
            found = pa.ipc.open_file(file).read_all()
            found.validate(full=True)
    except (OSError, pa.ArrowException):
        return None
    metadata = found.schema.metadata or {}
    return found if metadata.get(_QUERY) == query.encode("utf-8", "surrogatepass") else None


def _place(folder: Path, query: str) -> Path:
    digest = hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return folder / f"answer-{digest}.arrow"
