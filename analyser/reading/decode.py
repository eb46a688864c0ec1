"""Captures to raw rows, by this process alone or with helpers. In: opened sources. Out: `Decoded`."""

from __future__ import annotations

from analyser.capture import Source
from analyser.options import ProgressCallback, ReadOptions
from analyser.reading.helpers import Helpers
from analyser.reading.pipeline import Decoded, Pipeline
from analyser.reading.processes import SharedReading
from analyser.reading.share import Share
from analyser.rows.store import RawStore
from dissectors.registry import dissectors


def decode_captures(
    sources: list[Source],
    wanted: list[str],
    options: ReadOptions,
    progress: ProgressCallback | None,
    helpers: Helpers,
) -> Decoded:
    """The raw rows of these tables, read by this process and the helpers. The caller closes the store.

    helpers: one less than the processes that the options ask for.
    """
    known = dissectors(options.enable)
    if options.processes == 1:
        return Pipeline(known, wanted, options).run(sources, progress)
    if not all(source.path is not None and source.path.is_file() for source in sources):
        decoded = Pipeline(known, wanted, options).run(sources, progress)
        decoded.remarks.append("standard input and pipes can be read once only: one process did all the work")
        return decoded
    store = RawStore()
    try:
        others = SharedReading(helpers.children)
        others.start(sources, wanted, options, store.folder)
        share = Share(0, options.processes)
        decoded = Pipeline(known, wanted, options, share=share, store=store).run(sources, progress)
        others.collect(decoded)
    except BaseException:
        store.close()
        raise
    return decoded
