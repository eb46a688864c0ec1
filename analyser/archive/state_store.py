"""What a run leaves for the next one, beside the parts and what the finish stage keeps of the flows.

In: what the decode stage left of each share. Out: the folder of the new state, whole when the change is committed. The
number of its files depends on the number of shares only.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.analyser.archive.dataset.dataset import Change
from wirewitness.analyser.archive.dataset.home import WORK
from wirewitness.analyser.archive.dataset.place import ANEW, DatasetError
from wirewitness.analyser.archive.dataset.state_files import check_files
from wirewitness.analyser.archive.dataset.store_home import BEGUN
from wirewitness.analyser.archive.decode.decode_stage import STATE_FILE, Left, share_name, told_file
from wirewitness.analyser.base.storage.exchange_files import copy_folder, files_below, move_files, those_there
from wirewitness.analyser.engine.facts.naming_tables import NAMED_BY


def check_state(change: Change) -> None:
    """DatasetError for a state that this version does not go on from: earlier ones kept objects that run as they are
    read; and for links and the like in the dataset."""
    state = change.previous_state
    check_files(change.root, state, [part.path for part in change.every_part()])
    if state is not None and any(name.endswith("/state.zst") for name in files_below(state)):
        raise DatasetError(f"{change.root} was made by an earlier version, whose state is not gone on from: {ANEW}.")


def keep_state(change: Change, folders: Mapping[int, Left]) -> None:
    """Move to the new state what the next run goes on from."""
    names = (STATE_FILE, *map(told_file, NAMED_BY))
    places = {left.place / name: change.state / share_name(share) / name for share, left in folders.items()
              for name in names}  # fmt: skip
    move_files({path: places[path] for path in those_there(places)})


def keep_state_as_it_is(change: Change) -> None:
    """Nothing is taken in: the next run goes on from where the last one ended."""
    if change.previous_state is not None:
        copy_folder(change.previous_state, change.state, (BEGUN, WORK))
