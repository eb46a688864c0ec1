"""What a run leaves for the next one, beside the parts.

In: what the stages left of each share. Out: the folder of the new state, whole when the change is committed.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path

from analyser.archive.change import Change
from analyser.archive.decode_run import result_of
from analyser.archive.decode_stage import RAW_FILE, STATE_FILE, Raw, share_name
from analyser.archive.manifest import Part

PARTS_FILE = "parts.pickle"
# Which settled rows each part has: share, run and table.
PartsOf = dict[tuple[int, str, str], list[Part]]


def parts_before(change: Change) -> PartsOf:
    """Which settled rows the parts of the previous runs have."""
    if change.previous_state is None:
        return {}
    before: PartsOf = pickle.loads((change.previous_state / PARTS_FILE).read_bytes())
    return before


def keep_state(change: Change, folders: Mapping[int, Path], parts_of: PartsOf) -> None:
    """Move to the new state what the next run goes on from."""
    state, previous = change.state, change.previous_state
    for share, folder in folders.items():
        own = state / share_name(share)
        os.replace(folder / STATE_FILE, own / STATE_FILE)
        raw = own / f"raw-{change.run}"
        os.replace(folder / "settled", raw)
        settled: Mapping[str, Raw] = result_of(folder).settled
        (raw / RAW_FILE).write_bytes(pickle.dumps(dict(settled)))
        if previous is not None:
            for earlier in sorted((previous / share_name(share)).glob("raw-*")):
                shutil.copytree(earlier, own / earlier.name, copy_function=_linked)
    (state / PARTS_FILE).write_bytes(pickle.dumps(parts_of))


def _linked(source: str, target: str) -> None:
    """A hard link where the file system has them."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
