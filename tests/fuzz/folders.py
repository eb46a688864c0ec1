"""Folders that somebody else wrote: a file of one is changed, and a command reads the folder as a user would.

In: a byte that chooses the command, one that chooses the file, then what the file holds. Out: AssertionError where a
command ends with 70 or shows a trace. `DATASETS`, `CACHES` and `SHARED` are such folders: a dataset, what `show` keeps
of a capture, what `live --share` leaves.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.fuzz import commands
from tests.fuzz.checks import folder
from tests.fuzz.file_changes import changed_file
from tests.fuzz.pieces import SAMPLES
from wirewitness.analyser.archive.dataset.delta import LOG
from wirewitness.analyser.archive.dataset.place import MANIFEST
from wirewitness.analyser.tables.tables import TABLES

SAMPLE = SAMPLES / "kafka_admin.pcapng"
HEAD_BYTES = 2
_MOST_BYTES = 60_000
_PLACE = "FOLDER"


class Kept(NamedTuple):
    """make: fills a new folder. files: those of it that are changed, or put there. read: what reads it, by number."""

    make: Callable[[Path], object]
    files: Callable[[Path], Sequence[str]]
    read: Sequence[Callable[[Path], object]]

    def check(self, data: bytes) -> None:
        """Read the folder with one file as DATA has it."""
        template, files = _template(self.make, self.files)
        place = folder() / "changed"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(template, place, symlinks=True)
        command, chosen = (*data[:HEAD_BYTES], 0, 0)[:HEAD_BYTES]
        path = place / files[chosen % len(files)]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data[HEAD_BYTES:])
        self.read[command % len(self.read)](place)

    def seeds(self) -> Iterator[bytes]:
        """Every file as it is, or as its name makes one expect; each with another command."""
        template, files = _template(self.make, self.files)
        for number, name in enumerate(files):
            held = (template / name).read_bytes() if (template / name).exists() else b"{}"
            yield bytes([number % len(self.read), number]) + held

    def change(self, data: bytes, dice: Random) -> bytes:
        """Another command, or the file with other values, other types or damage; now and then another file."""
        template, files = _template(self.make, self.files)
        command, chosen = (*data[:HEAD_BYTES], 0, 0)[:HEAD_BYTES]
        held = data[HEAD_BYTES:]
        if dice.random() < 0.3 or len(held) > _MOST_BYTES:
            chosen = dice.randrange(len(files))
            name = template / files[chosen]
            held = name.read_bytes() if name.exists() else b"{}"
        if dice.random() < 0.5:
            command = dice.randrange(len(self.read))
        return bytes([command % 256, chosen % 256]) + changed_file(held, dice)


@cache
def _template(make: Callable[[Path], object], files: Callable[[Path], Sequence[str]]) -> tuple[Path, Sequence[str]]:
    place = folder() / f"kept-{make.__name__}"
    make(place)
    return place, files(place)


def _dataset(place: Path) -> None:
    from tests.support.datasets import make_dataset

    make_dataset(place, [SAMPLE, SAMPLES / "mqtt_qos2_stuck.pcapng"])


def _dataset_files(place: Path) -> list[str]:
    """The manifest often, a part of each table, and what says which parts count."""
    parts: dict[str, str] = {}
    for path in sorted(place.rglob("*.parquet")):
        name = str(path.relative_to(place))
        parts.setdefault(name.split("/", maxsplit=1)[0], name)
    logs = sorted(str(path.relative_to(place)) for path in place.rglob(f"{LOG}/*.json"))
    return [*[MANIFEST] * 12, *parts.values(), *logs]


def _index(place: Path) -> None:
    """What `show` keeps of the sample."""
    place.mkdir()
    commands.run_cli("show", str(SAMPLE), "--packet", "5", cache=place)


def _index_files(place: Path) -> list[str]:
    return [str(path.relative_to(place)) for path in sorted(place.rglob("*")) if path.is_file()]


def _shared(place: Path) -> None:
    """What `live --share` leaves."""
    import wirewitness
    from wirewitness.app.dashboard.snapshots import SHARED_TABLES, Snapshots

    shared = Snapshots(place, "lo", {})
    with wirewitness.read(SAMPLE, tables=SHARED_TABLES) as analysis:
        shared.write(analysis)
    shared.end()
    os.close(shared.descriptor)


def _shared_files(place: Path) -> list[str]:
    found = [str(path.relative_to(place)) for path in sorted(place.rglob("*")) if path.is_file()]
    return [*[name for name in found if not name.endswith(".parquet")] * 4, *found]


def _command(*words: str) -> Callable[[Path], object]:
    def run(place: Path) -> None:
        out = folder() / "out"
        commands.run_cli(*({_PLACE: str(place), "OUT": str(out)}.get(word, word) for word in words))
        out.unlink(missing_ok=True)

    return run


def _of_index(*words: str) -> Callable[[Path], object]:
    return lambda place: commands.run_cli("show", str(SAMPLE), *words, cache=place)


def _exchange(place: Path) -> None:
    said = commands.run_cli("table", "messages", str(SAMPLE), "--columns", "message_id", "--format", "jsonl")
    one = json.loads(said.splitlines()[3])["message_id"]
    commands.run_cli("show", str(SAMPLE), one, "--exchange", "--format", "json", cache=place)


def _extracted(place: Path) -> None:
    """Packets of a connection, from the captures that the dataset names."""
    said = commands.run_cli("table", "flows", str(place), "--columns", "flow_id", "--format", "jsonl")
    out = folder() / "out.pcapng"
    for line in said.splitlines()[:1]:
        one = str(json.loads(line)["flow_id"])
        commands.run_cli("extract", str(place), f"--flow={one}", "--redact", "--output", str(out))
    out.unlink(missing_ok=True)


def _extract(place: Path) -> None:
    said = commands.run_cli("table", "flows", str(SAMPLE), "--columns", "flow_id", "--format", "jsonl")
    one, out = json.loads(said.splitlines()[0])["flow_id"], folder() / "out.pcapng"
    commands.run_cli("extract", str(SAMPLE), "--flow", one, "--redact", "--output", str(out), cache=place)
    out.unlink(missing_ok=True)


def _followed(place: Path) -> None:
    """As the dashboard reads it: what is captured, whether it still is, the newest tables, and questions about them."""
    from wirewitness.analyser.base.options import ReadOptions
    from wirewitness.analyser.tables.queries import QueryError, UnreadableRows
    from wirewitness.app.dashboard.opened import Opened, Selected, TablesGone, version_of
    from wirewitness.app.dashboard.snapshots import is_live, is_running, newest, title_of
    from wirewitness.reports.report.contents import report

    assert is_live(place)
    assert isinstance(is_running(place), bool)
    title_of(place).encode("utf-8", "replace")
    found = newest(place)
    if found is None:
        return
    version_of(found)
    try:
        opened = Opened.kept(found)
    except TablesGone:
        return
    try:
        report(Selected(opened, ReadOptions()))
    except (TablesGone, QueryError, UnreadableRows):
        pass
    finally:
        opened.close()


def _shared_again(place: Path) -> None:
    """A new capture into the same folder."""
    commands.run_cli("live", "-r", str(SAMPLES / "mongo_show_databases.pcapng"), "--share", str(place))


DATASETS = Kept(
    _dataset,
    _dataset_files,
    [
        _command("analyse", _PLACE, "--format", "json"),
        _command("analyse", _PLACE, "--format", "html"),
        _command("groups", _PLACE),
        _command("groups", _PLACE, "--rebalances"),
        _command("topics", _PLACE, "--partitions"),
        _command("clients", _PLACE),
        _command("brokers", _PLACE),
        _command("records", _PLACE, "--format", "jsonl"),
        _command("show", _PLACE, "--packet", "5"),
        _extracted,
        _command("query", _PLACE, "select count(*), max(ts) from messages"),
        _command("otel", _PLACE, "--output", "OUT"),
        *(_command("table", name, _PLACE, "--format", "jsonl") for name in TABLES),
    ],
)
CACHES = Kept(
    _index, _index_files, [_of_index("--packet", "5"), _of_index("--packet", "9", "--payload"), _exchange, _extract]
)
SHARED = Kept(_shared, _shared_files, [_followed] * 6 + [_shared_again])
