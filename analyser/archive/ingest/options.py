"""How a dataset is made, and what of that holds for all its runs.

In: what the user asked for, and the settings of a dataset that is there. Out: options for the next run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.place import REBUILD, DatasetError
from wirewitness.analyser.archive.dataset.state_files import STATE_FORMAT
from wirewitness.analyser.archive.ingest.arriving import Intake
from wirewitness.analyser.archive.ingest.ranges import RANGE_BYTES
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.folders import FolderPath

SHARDS, MOST_SHARDS = 32, 4096


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """How a dataset is made. What the first run was told holds for the later ones; names of topic ids are added to.

    tables: None for all. shards: into how many the connections are dealt; each is decoded by one task at a time.
    range_bytes: larger files are read in ranges of about this size. inline: payloads travel with the packets, for
    workers that do not see the files under the same paths. rebuild: begin with nothing. intake: which captures are
    taken now.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    tables: tuple[str, ...] | None = None
    shards: int = SHARDS
    range_bytes: int = RANGE_BYTES
    inline: bool = False
    rebuild: bool = False
    intake: Intake = field(default_factory=Intake)


def options_as_before(options: ArchiveOptions, change: Change) -> ArchiveOptions:
    """The options that the dataset was begun with. DatasetError when others were asked for."""
    if change.previous is None:
        return options
    settings = change.previous.settings
    told = settings_of(options)
    for name in ("tables", "enable", "decode_as", "payload", "payload_columns", "log_zone_ns"):
        if settings.get(name) != told[name]:
            raise DatasetError(f"{change.root} was made with other settings ({name}); {REBUILD}")
    if change.previous_state is None or settings.get("state_format") != STATE_FORMAT:
        raise DatasetError(f"{change.root} keeps no state that this program can go on from; {REBUILD}")
    check_settings(change.root, settings)
    topic_ids = {**settings.get("topic_ids", {}), **options.read.topic_ids}
    return replace(options, shards=int(settings["shares"]), read=replace(options.read, topic_ids=topic_ids))


def check_settings(root: FolderPath, settings: Mapping[str, Any]) -> None:
    """DatasetError for settings that no run leaves, as somebody else may have written them."""
    shards, names = settings.get("shares"), settings.get("topic_ids", {})
    known = type(shards) is int and 1 <= shards <= MOST_SHARDS
    if not known or not all(isinstance(name, str) for name in (*names, *names.values())):
        raise DatasetError(f"{root} has settings that no run goes on from; {REBUILD}")


def settings_of(options: ArchiveOptions) -> dict[str, Any]:
    """What later runs must find again."""
    read = options.read
    return {
        "shares": options.shards,
        "state_format": STATE_FORMAT,
        "tables": None if options.tables is None else sorted(options.tables),
        "enable": sorted(read.enable),
        "decode_as": {str(port): name for port, name in sorted(read.decode_as.items())},
        "topic_ids": dict(sorted(read.topic_ids.items())),
        "payload": read.payload,
        "payload_columns": sorted(read.payload_columns),
        "log_zone_ns": read.log_zone_ns,
    }
