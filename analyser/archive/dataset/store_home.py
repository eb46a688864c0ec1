"""Where a dataset lives, for a change of it: an object store or HDFS, without locks.

In: an address. Out: the steps in which a change becomes whole there. A run takes a number that nobody else has. So its
objects have names of their own, whoever else writes, and its workers put parts where they are to count, and state and
what they leave to each other below that number; its versions of tables are looked at when they are made; and the
manifest is put only in place of the one that the run began with. What a run leaves that was killed, or came second,
counts for nobody: its parts go with the others that no version has, after KEPT_HOURS, all else with the next run.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from wirewitness.analyser.archive.dataset.delta import DeltaFolder, check_address, in_folders
from wirewitness.analyser.archive.dataset.garbage import STATE
from wirewitness.analyser.archive.dataset.home import OWN, WORK, Begun, Staged
from wirewitness.analyser.archive.dataset.lock import DatasetBusy
from wirewitness.analyser.archive.dataset.manifest import Manifest, read_manifest
from wirewitness.analyser.archive.dataset.part import HIDDEN, Part
from wirewitness.analyser.archive.dataset.place import MANIFEST, DatasetError
from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.faults import NameTaken
from wirewitness.analyser.base.storage.folders import StorePath
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at, objects_below
from wirewitness.analyser.base.storage.stores import NoStorage
from wirewitness.analyser.base.storage.writing import names_below, put_text, remove_objects
from wirewitness.analyser.capture.sources import explain
from wirewitness.analyser.tables.tables import ALL_TABLES, OLD_TABLES

# Says who took the number of a run; it stays while the number could be taken again.
BEGUN = "begun.json"
_AGAIN = "run the command again."


class StoreHome:
    """An address in an object store. Of those who change it at once, the first that puts its manifest wins."""

    def __init__(self, root: StorePath) -> None:
        self.root = root
        self._manifest: ObjectPath | None = None
        self._has_decided = False

    @contextmanager
    def begun(self, *, create: bool, rebuild: bool) -> Iterator[Begun]:
        """Take a number that nobody has. DatasetError, DatasetBusy; where another run came first, whatever goes wrong
        in the block is DatasetBusy: that run may have removed what this one goes on from."""
        with self._faults(), self._came_first():
            self._manifest = object_at((self.root / MANIFEST).address)
            if self._manifest is None:
                self._check_place(create=create)
            elif not self._manifest.state.tag:
                raise DatasetError(f"{self.root} is in a store that gives no tags, which a change of a dataset needs.")
            previous = read_manifest(self.root) if self._manifest is not None and not rebuild else None
            self._check_alone()
            run = self._taken_number(previous)
            state = self.root / STATE / run
            old_state = previous.state if previous is not None else None
            yield Begun(previous, run, self.root, state, state / WORK, self.root / old_state if old_state else None)

    def drop(self, begun: Begun, parts: Iterable[str]) -> None:
        """See `Home`. Once something was written the number is taken for good: a task may still be at work."""
        with suppress(OSError):
            remove_objects([self.root / path for path in parts], self.root)
            state = self.root / STATE / begun.run
            if self._has_decided:
                remove_objects(objects_below((state / WORK).address), self.root)
                return
            own = [*objects_below(state.address)]
            remove_objects(own if len(own) == 1 else [one for one in own if one.name != BEGUN], self.root)

    def check_new(self, begun: Begun, path: str) -> None:
        """See `Home`. The number of the run is in its name, so there is no other; whoever wrote it was told that the
        store has it."""

    def make_versions(self, begun: Begun, staged: Staged) -> dict[DeltaFolder, int]:
        """See `Home`. A version follows whatever others left, and has what is to count and nothing else."""
        with self._faults():
            wanted = in_folders(self.root, staged.every)
            changed = {*in_folders(self.root, (*staged.added.values(), *staged.removed))}
            if begun.previous is None:
                changed |= {*self._tables_there()}
            self._check_alone()
            order = sorted(changed, key=lambda folder: folder.prefix)
            return {folder: self._version(folder, {*wanted.get(folder, ())}, begun.run) for folder in order}

    def decide(self, begun: Begun, text: str) -> None:
        """See `Home`. DatasetBusy where another one came first."""
        _ = begun
        with self._faults():
            try:
                put_text(self.root / MANIFEST, text, self._manifest)
            except NameTaken as error:
                raise self._busy() from error
        self._has_decided = True

    def tidy(self, begun: Begun, changed: Mapping[DeltaFolder, int]) -> None:
        """See `Home`. States of earlier numbers are nobody's any more: who has one of them comes second."""
        with suppress(OSError):
            below = (self.root / STATE).address
            own = int(begun.run)
            remove_objects((one for one in objects_below(below) if _number(one, below) < own), self.root)
        for folder, version in changed.items():
            if version:  # a first one leaves no other behind
                with suppress(OSError, DatasetError):
                    folder.vacuum()

    def _version(self, folder: DeltaFolder, wanted: set[Part], run: str) -> int:
        """A version that has these parts and no others."""
        latest = folder.latest()
        there = set() if latest is None else {*folder.parts(latest)}
        if latest is not None and there == wanted:
            return latest
        try:
            version = folder.commit(sorted(wanted - there), sorted(there - wanted), run)
        except DatasetError:
            self._check_alone()
            raise
        if {*folder.parts(version)} != wanted:
            raise self._busy()
        return version

    def _tables_there(self) -> Iterator[DeltaFolder]:
        """Tables that a dataset which is replaced leaves, or a first run that was killed."""
        for hidden, place in ((False, self.root), (True, self.root / HIDDEN)):
            for table in (ALL_TABLES.keys() | OLD_TABLES.keys()) & {*names_below(place)}:
                folder = DeltaFolder(self.root, table, hidden)
                if folder.latest() is not None:
                    if not folder.has_columns_of_now():
                        raise DatasetError(
                            f"{self.root}/{folder.prefix} is of another version of this program: remove what is below "
                            f"{self.root} with a tool of the store, or name another address."
                        )
                    yield folder

    def _check_place(self, *, create: bool) -> None:
        """A dataset is not made among somebody's objects."""
        if not create:
            raise DatasetError(f"{self.root} is no dataset: it holds no {MANIFEST}.")
        check_address(self.root)
        if not self.root.address.key.strip("/"):
            what = "the whole of a file system" if self.root.address.scheme == "hdfs" else "a whole bucket"
            raise DatasetError(f"{self.root} is {what}: name an address in it, such as {self.root}traffic.")
        # A first change that was killed leaves a number, and maybe tables.
        names = {*names_below(self.root)}
        own = OWN | ALL_TABLES.keys() | OLD_TABLES.keys() if STATE in names else OWN
        if not names <= own:
            raise DatasetError(f"{self.root} is no dataset and not empty; name an address with nothing below it.")

    def _taken_number(self, previous: Manifest | None) -> str:
        """The name of this run."""
        last = [int(previous.runs[-1].name)] if previous is not None and previous.runs else []
        numbers = [int(name) for name in names_below(self.root / STATE) if name.isdecimal() and len(name) <= 12]
        number = max([0, *last, *numbers])
        since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        who = {"process": os.getpid(), "host": socket.gethostname(), "since": since, "is": uuid.uuid4().hex}
        while True:
            number += 1
            with suppress(NameTaken):
                put_text(self.root / STATE / f"{number:06d}" / BEGUN, json.dumps(who), None)
                return f"{number:06d}"

    def _check_alone(self) -> None:
        """DatasetBusy where the manifest is another one than at the beginning."""
        if self._is_other():
            raise self._busy()

    def _is_other(self) -> bool:
        now = object_at((self.root / MANIFEST).address)
        return (None if now is None else now.state.tag) != (
            None if self._manifest is None else self._manifest.state.tag
        )

    @contextmanager
    def _came_first(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not isinstance(error, DatasetBusy) and not self._has_decided:
                is_other = False
                with suppress(OSError):
                    is_other = self._is_other()
                if is_other:
                    raise self._busy() from error
            raise

    def _busy(self) -> DatasetBusy:
        return DatasetBusy(
            f"{self.root} was changed by another run meanwhile, and nothing of this one counts; {_AGAIN}"
        )

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """What the store answers, as a line."""
        try:
            yield
        except OSError as error:
            name = str(error.filename or "")
            if isinstance(error, NoStorage):
                raise DatasetError(f"{self.root}: {error.strerror}") from error
            if not name.startswith(f"{self.root.address.scheme}://"):
                raise
            raise DatasetError(explain(name, error)) from error


def _number(state_file: ObjectPath, states: Address) -> int:
    """The number of the run whose state a file belongs to; a very high one for what is none."""
    name = state_file.address.key.removeprefix(f"{states.key}/").partition("/")[0]
    return int(name) if name.isdecimal() and len(name) <= 12 else 10**12
