"""Captures to raw rows, by this process alone or with helpers. In: opened sources. Out: `Decoded`."""

from __future__ import annotations

from functools import partial

from wirewitness.analyser.base.options import ProgressCallback, ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.run.child import Child
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.processes import SharedReading
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors


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
    keys = None
    if options.keylogs:
        from wirewitness.analyser.decoding.run.keys import Keys

        keys = Keys(options.keylogs)
    limits, store = Limits(), RawStore()
    try:
        others = SharedReading([*map(Child, helpers.children)], helpers.areas)
        others.start(wanted, options, store.folder, keys)
        dealing = partial(others.dealing, limits.capture)
        decoded = Pipeline(known, wanted, options, limits, dealing, store, keys).run(sources, progress)
        others.collect(decoded)
        helpers.decoded()
    except BaseException:
        store.close()
        raise
    return decoded
