"""How the program ends: exit status and the one line on standard error that says why. No traceback without --debug."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any, TextIO

import click

# What DuckDB raises when Ctrl-C comes while it runs a query.
_DUCKDB_INTERRUPTED = "Query interrupted"


class Status(IntEnum):
    """Exit statuses; part of the contract."""

    DONE = 0
    FAIL_ON_MET = 1
    USAGE = 2
    SOME_INPUT_UNREAD = 3
    OWN_FAULT = 70
    INTERRUPTED = 130


class CallerError(click.ClickException):
    """The caller's mistake: what to mend, in one clear line; further lines are hints."""

    exit_code = Status.USAGE

    def show(self, file: Any = None) -> None:
        """The message on standard error."""
        complain(self.message)


def complain(text: str) -> None:
    """One message on standard error, named as Unix tools do."""
    say(f"wirewitness: {text}")


def say(text: str) -> None:
    """A line on standard error; when nobody reads it any more, that is no reason to fail."""
    try:
        click.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """What is still buffered goes nowhere, or the interpreter would complain about it, and fail, when it ends."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def guarded(run: Callable[[], Any], *, debug: bool) -> int:
    """Exit status of `run`; every exception becomes a status and its line."""
    try:
        result = run()
    except click.ClickException as error:
        error.show()
        return Status.USAGE
    except SystemExit:
        return Status.DONE  # click's own ending when help was written to a closed pipe
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return Status.INTERRUPTED
    except Exception as error:  # the last resort: our own fault is a line and a status, not a traceback
        if isinstance(error, RuntimeError) and str(error) == _DUCKDB_INTERRUPTED:
            complain("interrupted")
            return Status.INTERRUPTED
        return _own_fault(error, debug=debug)
    return int(result) if isinstance(result, int) else Status.DONE


def _own_fault(error: Exception, *, debug: bool) -> int:
    if debug:
        say("".join(traceback.format_exception(error)).rstrip())
    first_line = (str(error).splitlines() or [""])[0]
    hint = "" if debug else "; run again with --debug for the trace"
    complain(f"internal error, please report it: {type(error).__name__}: {first_line}{hint}")
    return Status.OWN_FAULT
