"""Ctrl-C that always arrives: raised where Python passes an exception on, and again where it was dropped.

In: SIGINT. Out: KeyboardInterrupt in the main thread. What is raised in a destructor or in a callback, Python prints
and drops, and an import that is broken off leaves modules half made, whose errors then look like faults of the program.
So within an import, and after one was dropped, it is raised a little later.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_S = 0.01
_INTERRUPTED = 130
_LINE = b"wirewitness: interrupted\n"
_IMPORTING = "importlib._bootstrap"

_interrupts: list[int] = []


def end_at_once(_: int = signal.SIGINT, __: FrameType | None = None) -> None:
    """A handler of SIGINT for where there is nothing to tidy up."""
    try:
        os.write(2, _LINE)
    finally:
        os._exit(_INTERRUPTED)


def note_interrupts() -> None:
    """Has Ctrl-C counted and raised from now on; not where who started the program has it ignored."""
    if signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, end_at_once):
        return
    before = sys.unraisablehook

    def dropped(what: UnraisableHookArgs) -> None:
        if what.exc_type is KeyboardInterrupt:
            _again()
        else:
            before(what)

    sys.unraisablehook = dropped
    signal.signal(signal.SIGALRM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)


def interrupted() -> bool:
    """Whether Ctrl-C was pressed, wherever it arrived."""
    return bool(_interrupts)


def raise_no_more() -> None:
    """What of Ctrl-C was still to be raised is not: the program ends because of it already."""
    if _interrupts:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupted(number: int, frame: FrameType | None) -> None:
    _interrupts.append(number)
    if _importing(frame):
        _again()
    else:
        signal.default_int_handler(number, frame)


def _again() -> None:
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == _IMPORTING:
            return True
        frame = frame.f_back
    return False
