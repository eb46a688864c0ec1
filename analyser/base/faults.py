"""Faults of our own: what becomes of an exception that no input should be able to cause.

In: the exception. Out: its kind; where it came up, the rest goes on and a remark with CODE says what is left out,
without a byte of what was read. What a limit of memory or of temporary files ended is no fault, and is told as such.

The environment variable FAULTS says what else happens: `raise` lets the exception through, as the project's tests do;
`trace` writes its trace to standard error, as --debug does. It goes along to processes that help.
What exceptions quote may be a stranger's secret: it is left out of traces too.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator

from wirewitness.analyser.base.bounded import beginning
from wirewitness.analyser.base.words import printable

FAULTS = "WIREWITNESS_FAULTS"
RAISE, TRACE = "raise", "trace"
CODE = "dissector_bug"
# What DuckDB raises when Ctrl-C comes while it runs a query.
DUCKDB_INTERRUPTED = "Query interrupted"
# From a quotation mark to the next of its kind, or to the end; no apostrophe within a word is one.
_QUOTED = re.compile(r"""(?<!\w)b?(['"])(?:(?!\1)[^\\]|\\.)*+(?:\1|$)""", re.DOTALL)
_MESSAGE_CHARACTERS = 500
_LIMIT = "a limit is reached"
_OF_A_LIMIT = re.compile(rf"(?:[\d,]+ times )?{_LIMIT}")
_NO_SPACE = "no space for temporary files (TMPDIR says where they lie)"
PLEASE = "please report it, with the trace that --debug shows"


class LimitReached(Exception):
    """A limit of our own ended something. Its text says which one."""


def caught(error: Exception) -> str:
    """Its kind, of a limit what it was; every fault comes through here. Raised again where FAULTS says so, and where
    it is Ctrl-C."""
    if isinstance(error, RuntimeError) and str(error) == DUCKDB_INTERRUPTED:
        raise KeyboardInterrupt from error
    if (limit := _limit(error)) is not None:
        return f"{_LIMIT}, {limit}"
    wanted = os.environ.get(FAULTS)
    if wanted == RAISE:
        raise error
    if wanted == TRACE:
        for line in trace_lines(error):
            print(printable(line), file=sys.stderr)
    return type(error).__name__


def described(error: BaseException) -> str:
    """Its kind and the first line of its message, without what that quotes."""
    text = _QUOTED.sub("'...'", (str(error).splitlines() or [""])[0])
    return f"{type(error).__name__}: {beginning(text, _MESSAGE_CHARACTERS)}"


def trace_lines(error: BaseException) -> Iterator[str]:
    """The trace, causes first as Python shows it, with messages as `described` has them."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from trace_lines(before)
        yield ""
    yield "Traceback (most recent call last):"
    for entry in traceback.format_tb(error.__traceback__):
        yield from entry.rstrip().split("\n")
    yield described(error)


def sentence(kind: str, what: str, rest: str) -> str:
    """What people read. kind: as `caught` gives it. what: where it came up; rest: what that costs them."""
    if is_of_a_limit(kind):
        return f"{kind}, by {what}: {rest}"
    return f"a fault of wirewitness itself, {kind} in {what}: {rest}; {PLEASE}"


def told(error: Exception, what: str, rest: str) -> str:
    """`sentence` of a fault, or of a limit that `is_of_a_limit` knows."""
    return sentence(caught(error), what, rest)


def reaches_a_limit(error: Exception) -> bool:
    """Is it a limit, of this program or of its disk, and no fault?"""
    return _limit(error) is not None


def is_of_a_limit(text: str) -> bool:
    """Does this sentence, of `told`, `of_limit` or `counted`, tell a limit that was reached, not a fault of our own?"""
    return _OF_A_LIMIT.match(text) is not None


def of_limit(remark: str) -> str:
    """The sentence about what a remark on a connection tells of a limit."""
    return f"{_LIMIT}: {remark}"


def _limit(error: Exception) -> str | None:
    if isinstance(error, LimitReached):
        return str(error)
    kind, text = type(error).__name__, str(error)
    # Of DuckDB, which is not imported here, of Arrow, and of a process that helps, there is only the text.
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in text:
        return _NO_SPACE
    if kind != "OutOfMemoryException":
        return _limit(error.__cause__) if isinstance(error.__cause__, Exception) else None
    return "temporary files of a query" if "max_temp_directory_size" in text else "memory of a query"


def counted(text: str, times: int) -> str:
    """The sentence about a fault that came up so often."""
    return text if times == 1 else f"{times:,} times {text}"
