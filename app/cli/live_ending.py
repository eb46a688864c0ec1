"""What a live analysis still does after somebody ended it. In: a session; out: a line now and then until it is over.

One thread reads everything, and says nothing while it works out the last findings or writes the report; so another one
does. It begins when no copy of the process is made any more, and no right is left to give up: a copy has one thread
alone, and the kernel takes rights from the thread that asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wirewitness.reports.base.formats.words import size

if TYPE_CHECKING:
    from wirewitness.analyser.live.session import Session

FIRST_S, EVERY_S = 3.0, 10.0


class Ending:
    """Says what a session still does. say: takes a line, from another thread."""

    def __init__(self, say: Callable[[str], None], first_s: float = FIRST_S, every_s: float = EVERY_S) -> None:
        self._say, self._first_s, self._every_s = say, first_s, every_s
        self._session: Session | None = None
        self._asked = False
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    def of(self, session: Session) -> None:
        """This session is meant; it may have been asked to end already."""
        self._session = session
        if self._asked:
            self.begin()

    def begin(self) -> None:
        """The session is to end. More than once, and from the handler of a signal, does no harm."""
        self._asked = True
        if self._session is not None and self._watch is None and not self._over.is_set():
            self._watch = threading.Thread(target=self._tell, args=(self._session,), daemon=True)
            self._watch.start()

    def over(self) -> None:
        """All is done: no line comes any more."""
        self._over.set()
        if self._watch is not None:
            self._watch.join()

    def _tell(self, session: Session) -> None:
        waited, next_s = 0.0, self._first_s
        while not self._over.wait(next_s):
            waited, next_s = waited + next_s, self._every_s
            self._say(f"{doing(session)} ({waited:.0f} s so far)")


def doing(session: Session) -> str:
    """What a session that is to end does."""
    if session.is_read:
        return "still putting the results together: the last findings, and the report"
    held = session.state.backlog_bytes
    left = f", of which {size(held)} are left" if held else ""
    return f"still reading what was captured{left}: Ctrl-C again leaves that out"
