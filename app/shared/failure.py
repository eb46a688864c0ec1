"""How the program ends: exit status and the one line on standard error that says why. No traceback without --debug."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from io import StringIO
from typing import Any, TextIO

import click

from wirewitness.app.shared.interrupts import interrupted, raise_no_more

# What commands find in their context when the process is this program's own, so that they may give its rights up.
OWN_PROCESS = object()


class Status(IntEnum):
    """Exit statuses; part of the contract."""

    DONE = 0
    FAIL_ON_MET = 1
    USAGE = 2
    SOME_INPUT_UNREAD = 3
    OWN_FAULT = 70
    INTERRUPTED = 130


class CallerError(click.ClickException):
    """The caller's mistake: what to mend, in one clear line; hints follow on lines of their own."""

    exit_code = Status.USAGE

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.hints = hints

    def show(self, file: Any = None) -> None:
        """The message and its hints on standard error."""
        complain(self.message)
        for hint in self.hints:
            say(hint)


class LimitError(CallerError):
    """Not all could be answered within a limit, of which nobody made a mistake."""

    exit_code = Status.SOME_INPUT_UNREAD


def complain(text: str) -> None:
    """One message on standard error, named as Unix tools do."""
    say(f"wirewitness: {text}")


def say(text: str) -> None:
    """A line on standard error, always one and of bounded length: names in it can neither begin another nor steer the
    terminal. When nobody reads it any more, that is no reason to fail."""
    from wirewitness.analyser.base.bounded import bounded
    from wirewitness.reports.base.formats.printable import visible

    _write_line(visible(bounded(text)))


def _write_line(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def _show(error: click.ClickException) -> None:
    """What click says of wrong usage, line by line; what was given and is quoted in it stays on its line. Help that is
    shown in place of a command quotes nothing."""
    from wirewitness.reports.base.formats.printable import visible

    told = StringIO()
    error.show(told)
    text = told.getvalue().rstrip("\n")
    if not isinstance(error, click.exceptions.NoArgsIsHelpError):
        text = text.replace(error.message, visible(error.message))
    for line in text.split("\n"):
        say(line)


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
    except SystemExit:
        result = Status.DONE  # click's own ending when help was written to a closed pipe
    except (click.Abort, KeyboardInterrupt):
        return _interrupted_status()
    except Exception as error:
        # What comes after a Ctrl-C comes of it, as a query that it broke off; or it was first and has yet to be raised.
        return _interrupted_status() if interrupted() or _broken_off(error) else _failed(_told(error), debug=debug)
    if interrupted():
        return _interrupted_status()
    return int(result) if isinstance(result, int) else Status.DONE


def _told(error: Exception) -> Exception:
    """What to tell of an error: of one where click writes help that standard output takes no more."""
    if isinstance(error, OSError) and _where(error) == click.echo.__module__:
        silence(sys.stdout)
        return CallerError(f"cannot write to standard output: {error.strerror}")
    return error


def _where(error: Exception) -> str | None:
    """The module that raised it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return None if last is None else last.tb_frame.f_globals.get("__name__")


def _broken_off(error: Exception) -> bool:
    if not isinstance(error, RuntimeError):
        return False
    from wirewitness.analyser.base.faults import DUCKDB_INTERRUPTED

    return str(error) == DUCKDB_INTERRUPTED


def _failed(error: Exception, *, debug: bool) -> int:
    if isinstance(error, CallerError):
        error.show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        _show(error)
        return Status.USAGE
    from wirewitness.analyser.base.faults import reaches_a_limit, told

    if reaches_a_limit(error):
        complain(told(error, "this command", "it could not end"))
        return Status.SOME_INPUT_UNREAD
    return _own_fault(error, debug=debug)  # the last resort: our own fault is a line and a status, not a traceback


def _interrupted_status() -> int:
    """Nothing is imported for the line: it comes at once, and once, whatever was broken off."""
    raise_no_more()
    _write_line("wirewitness: interrupted")
    return Status.INTERRUPTED


def _own_fault(error: Exception, *, debug: bool) -> int:
    from wirewitness.analyser.base.faults import described, trace_lines

    if debug:
        for line in trace_lines(error):
            say(line)
    hint = "" if debug else "; run again with --debug for the trace"
    complain(f"internal error, please report it: {described(error)}{hint}")
    return Status.OWN_FAULT
