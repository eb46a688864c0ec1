"""Where results go: standard output or a file. Results are bytes; remarks never come here.

A file is written beside its place under another name and renamed when whole, so that nobody reads half a result.
A reader that closes the pipe has what it wanted: writing stops without a word and the status is that of the work done.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from wirewitness.app.shared.failure import CallerError, silence
from wirewitness.app.shared.local_files import check_is_local

Write = Callable[[bytes], object]
_DEFAULT_WIDTH = 100
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _ReaderGone(BaseException):
    """Standard output was closed by who reads it. Whatever works meanwhile does not take it for a fault of its own."""


class _NotWritten(BaseException):
    """Standard output takes no more, such as on a full disk; the text says why. As _ReaderGone."""


@contextmanager
def result_sink(output: str | None, *, text: bool = False) -> Iterator[Write]:
    """A function that writes pieces of the result.

    output: path of a file, or None for standard output. text: for people, so written in the terminal's encoding.
    """
    if output is None:
        try:
            yield _standard_output(text=text)
            flush_output()
        except _ReaderGone:
            silence(sys.stdout)
        except _NotWritten as error:
            silence(sys.stdout)
            raise CallerError(f"cannot write to standard output: {error}") from error
        return
    with whole_file(output) as file:
        yield file.write


def listing(headings: Sequence[str], rows: Iterable[Sequence[str]], hint: str) -> str:
    """What there is by name, as wide as the terminal, and how to go on. The last column wraps."""
    from wirewitness.reports.base.formats.document import Cells, Paragraph, Section
    from wirewitness.reports.base.formats.text import render

    cells = Cells(tuple(headings), tuple(map(tuple, rows)), wrapped=(len(headings) - 1,))
    return render([Section("", (cells, Paragraph(hint)))], terminal_width())


@contextmanager
def whole_file(output: str) -> Iterator[BinaryIO]:
    """A stream to write to; its file becomes `output` at the end, or vanishes when writing fails. CallerError for a
    place that came to be none to write to, and for a full disk."""
    from wirewitness.analyser.base.written_files import Refused, written

    try:
        with written(output) as file:
            yield file
    except Refused as error:
        raise CallerError(f"{output}: {error.strerror}") from error
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise CallerError(f"cannot write to {output}: {error.strerror}") from error


def check_output(output: str | None, captures: Sequence[str], option: str = "--output") -> None:
    """CallerError for a place that cannot be written or that is a capture; before the captures are read.

    option: what the place was given with.
    """
    if output is None:
        return
    from wirewitness.analyser.base.written_files import place_of

    check_is_local(output, option)
    try:
        place = place_of(output)
    except OSError as error:
        raise CallerError(f"{option} {output}: {error.strerror or error}") from error
    if not os.access(place.path if place.is_stream else place.path.parent, os.W_OK):
        raise CallerError(f"{option} {output}: no permission to write in {place.path.parent}")
    if place.path.exists() and any(os.path.exists(c) and place.path.samefile(c) for c in captures):
        raise CallerError(f"{option} {output}: that is one of the captures")


def write_text(text: str) -> None:
    """A whole result for people on standard output."""
    with result_sink(None, text=True) as write:
        write(text.encode("utf-8", "backslashreplace"))


def terminal_width() -> int:
    """Columns to write for: COLUMNS, else the terminal's, else 100."""
    return max(shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns, 40)


def width_limit() -> int | None:
    """Columns that rows have to fit; None where a program or a pager reads them."""
    return terminal_width() if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal() else None


def colour_wanted(output: str | None) -> bool:
    """Colours only for a terminal and only when NO_COLOR (https://no-color.org) is not set."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return output is None and sys.stdout.isatty() and not refused


def _standard_output(*, text: bool) -> Write:
    stream = sys.stdout.buffer
    encoding = sys.stdout.encoding.lower() if text else "utf-8"

    def write(piece: bytes) -> None:
        data = piece if encoding in {"utf-8", "utf8"} else piece.decode().encode(encoding, "backslashreplace")
        _checked(lambda: _write_all(stream, data))

    return write


def _write_all(stream: BinaryIO, data: bytes) -> None:
    """Without Python's buffer (PYTHONUNBUFFERED) a write that a signal interrupts takes only a part."""
    left = memoryview(data)
    while left:
        left = left[stream.write(left) :]


def flush_output() -> None:
    """What was written so far leaves this program; for a sink that stays open."""
    _checked(sys.stdout.flush)


def _checked(action: Callable[[], object]) -> None:
    try:
        action()
    except BrokenPipeError:
        raise _ReaderGone from None
    except OSError as error:
        raise _NotWritten(error.strerror) from error
