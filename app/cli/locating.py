"""Captures of the command line to an index of their messages. In: paths and options; out: an open `Index`.

Standard input and pipes can be read once only, so they are copied to a temporary file first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirewitness.app.shared.failure import CallerError, complain
from wirewitness.app.shared.options import read_options
from wirewitness.app.shared.reading import check_standard_input, progress_shown

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.analyser.base.options import ReadOptions
    from wirewitness.analyser.capture import Source


@contextmanager
def open_located(captures: Sequence[str], locating: dict[str, Any]) -> Iterator[tuple[Index, bool]]:
    """The index, and whether inputs are missing from it. CallerError when no input could be read."""
    quiet, use_cache = locating.pop("quiet"), not locating.pop("no_index")
    locating.pop("debug")
    options = read_options(**locating, protocol=(), from_ns=None, to_ns=None)
    from wirewitness.analyser.capture.errors import CaptureError

    with ExitStack() as stack:
        try:
            index = _dataset_index(captures, options)
            some_missing = False
            if index is None:
                sources, some_missing = _sources(captures, stack)
                index = _index(sources, options, use_cache=use_cache, quiet=quiet)
            yield stack.enter_context(index), some_missing
        except CaptureError as error:  # of a dataset also when its captures are not there any more
            raise CallerError(str(error)) from error


def _dataset_index(captures: Sequence[str], options: ReadOptions) -> Index | None:
    from wirewitness.analyser.archive.dataset.place import one_dataset

    dataset = one_dataset(captures)
    if dataset is None:
        return None
    from wirewitness.analyser.archive.dataset.index import open_dataset_index

    return open_dataset_index(dataset, options.keylogs)


def _index(sources: list[Source], options: ReadOptions, *, use_cache: bool, quiet: bool) -> Index:
    from wirewitness.analyser.analysis.evidence.index import open_index

    with progress_shown(quiet) as progress:
        return open_index(sources, options, progress, use_cache=use_cache)


def _sources(captures: Sequence[str], stack: ExitStack) -> tuple[list[Source], bool]:
    from wirewitness.analyser.capture import CaptureError, in_time_order, open_captures

    check_standard_input(captures)
    sources: list[Source] = []
    unread: list[str] = []
    for given in captures:
        try:
            sources += [_readable_twice(source, stack) for source in open_captures([given])]
        except CaptureError as error:
            unread.append(str(error))
    if not sources:
        raise CallerError(" ".join(unread) or "no capture was given")
    for reason in unread:
        complain(f"cannot read {reason}")
    return in_time_order(sources), bool(unread)


def _readable_twice(source: Source, stack: ExitStack) -> Source:
    if source.path is not None and source.path.is_file():
        return source
    from wirewitness.analyser.base.private_files import TemporaryFolder
    from wirewitness.analyser.capture.opening import probed

    path = Path(stack.enter_context(TemporaryFolder())) / "capture"
    with source.open() as stream, path.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    return probed(replace(source, path=path, stream=None))
