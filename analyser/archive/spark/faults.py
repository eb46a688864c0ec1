"""What goes wrong in Spark, as sentences.

In: a block that uses Spark. Out: NotInstalled when packages are missing, JobFailed with the line of a worker's trace
that says what happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from wirewitness.analyser.base.extras import how_to_install

_NAMED_ERROR = re.compile(r"[\w.]+(Error|Exception)\b")
# DatasetError as a trace names it, wherever its class is.
_UNUSABLE = re.compile(r"(?:[\w.]+\.)?DatasetError: (.+)")
# What a store answered a worker in the end.
_OF_STORE = re.compile(r"[\w.]+: \[Errno \d+\] (?P<why>.+): '(?P<name>[a-z0-9]+://.+)'")
_DISK_FULL = "No space left on device"


class NotInstalled(Exception):
    """A package that archives need is missing; the text is one sentence."""


class JobFailed(Exception):
    """A job of Spark failed; the text is one line. is_disk_full: for want of space, which is no fault of ours.

    unusable: what is wrong with the dataset, or with a store, where that is the cause.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.is_disk_full = _DISK_FULL in text
        found = _UNUSABLE.match(text)
        of_store = _OF_STORE.match(text)
        self.unusable = found[1] if found else f"{of_store['name']}: {of_store['why']}." if of_store else None


@contextmanager
def spark_faults() -> Iterator[None]:
    """Raises NotInstalled at the start, JobFailed for what Spark raises in the block."""
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
    except ImportError as error:
        raise NotInstalled(f"archives need PySpark and what goes with it; {how_to_install('archive')}") from error
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # the latter where PySpark has no type of it: a worker was lost
        raise JobFailed(cause_of(str(error))) from error


def cause_of(text: str) -> str:
    """The line of a trace that says what happened."""
    lines = [line.removeprefix(": ").strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _NAMED_ERROR.match(line)]
    return telling[-1] if telling else (lines or ["no reason given"])[0]
