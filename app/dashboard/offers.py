"""Captures that can be opened: those of the command line, samples, recent ones, uploads. In: folders; out: `Offer`s.

A page names a capture by the id of an offer, never by a path: whoever can reach the server can open what is offered
and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from wirewitness.analyser.analysis.evidence.identity import content_key
from wirewitness.analyser.base.private_files import PREFIX, TemporaryFolder
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.files import absolute_name
from wirewitness.app.shared.samples import samples as installed_samples
from wirewitness.reports.base.formats.words import size

UPLOAD_LIMIT_MB = 500
UPLOADS = "uploads"
_UPLOAD_FOLDER = re.compile(rf"[^\s'\"]*/{PREFIX}{UPLOADS}-\w+/[0-9a-f]+/")
_RECENT = 12
_UPLOADS = 6


@dataclass(frozen=True, slots=True)
class Offer:
    """Captures that are opened together. options: `decode_as` (port -> protocol), `enable`, `processes`."""

    id: str
    title: str
    note: str
    paths: tuple[str, ...]
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> str:
        """How large it is on disk, in words; folders with what is directly in them. A store is not asked."""
        if any(address_of(path) is not None for path in self.paths):
            return "in an object store"
        return size(sum(_size(Path(path)) for path in self.paths))


def given_offer(paths: Sequence[str], options: Mapping[str, Any]) -> Offer:
    """The captures of the command line."""
    return Offer(content_id(paths), _title(paths), "", tuple(paths), "given", options)


def live_offer(folder: str, title: str) -> Offer:
    """Tables of a capture that goes on."""
    return Offer(_id([folder]), title, "", (folder,), "live")


def samples() -> list[Offer]:
    """The sample captures that come with the program."""
    return [
        Offer(name, one.path.name, one.shows, (str(one.path),), one.protocol)
        for name, one in installed_samples().items()
    ]


def recent() -> list[Offer]:
    """What was opened before and is still there, newest first."""
    found = [_recent_offer(entry) for entry in _recent_entries()]
    return [offer for offer in found if offer is not None]


def remember(offer: Offer) -> None:
    """Put the captures first among the recent ones; where that cannot be written, nothing is remembered."""
    if offer.kind not in ("given", "recent"):
        return
    path = _recent_file()
    if path is None:
        return
    paths = [absolute_name(name, resolved=True) for name in offer.paths]
    others = [entry for entry in _recent_entries() if entry.get("paths") != paths]
    entry = {"paths": paths, "options": dict(offer.options)}
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        part.write_text(json.dumps([entry, *others][:_RECENT]), encoding="utf-8")
        part.replace(path)


class Uploads:
    """Files that came from browsers, in a folder that goes with the server; the oldest go when there are many.

    Each is for those who uploaded it: who has the same file may upload it too, and finds the same address.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder(UPLOADS)
        self._offers: dict[tuple[str, str], Offer] = {}

    def add(self, name: str, content: memoryview, owner: str) -> Offer:
        """Keep a file under its own name. owner: whose it is."""
        digest = hashlib.blake2b(content, digest_size=6, key=owner.encode()[:64]).hexdigest()
        safe = Path(name).name.lstrip(".") or "capture"
        folder = Path(self._folder.name) / digest
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / safe.encode("utf-8", "replace")[-200:].decode("utf-8", "ignore")
        path.touch(mode=0o600)
        path.write_bytes(content)
        offer = Offer(content_id([str(path)]), safe, "", (str(path),), "upload")
        self._offers.pop((owner, offer.id), None)
        self._offers[owner, offer.id] = offer
        while len(self._offers) > _UPLOADS:
            self.drop(*next(iter(self._offers)))
        return offer

    def offers(self, owner: str) -> list[Offer]:
        """Those of that owner, newest first."""
        return [offer for (whose, _), offer in reversed(self._offers.items()) if whose == owner]

    def drop(self, owner: str, offer_id: str) -> None:
        """Offer that one no more."""
        gone = self._offers.pop((owner, offer_id), None)
        if gone is not None:
            Path(gone.paths[0]).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove them all."""
        self._folder.cleanup()


def without_folder(text: str) -> str:
    """A text that names uploads as their sender does: where they lie here says nothing to him."""
    return _UPLOAD_FOLDER.sub("", text)


def _recent_offer(entry: Mapping[str, Any]) -> Offer | None:
    paths = entry.get("paths")
    if not isinstance(paths, list) or not paths or not all(map(_may_be_there, paths)):
        return None
    options = entry.get("options")
    return Offer(
        content_id(paths), _title(paths), _folder_of(paths[0]), tuple(paths), "recent",
        options if isinstance(options, dict) else {},
    )  # fmt: skip


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] if address_of(path) is not None else str(Path(path).parent)


def _may_be_there(path: object) -> bool:
    """Object stores are not asked before somebody wants what is in them."""
    return isinstance(path, str) and (address_of(path) is not None or Path(path).exists())


def _recent_entries() -> list[dict[str, Any]]:
    path = _recent_file()
    if path is None:
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _recent_file() -> Path | None:
    """XDG_STATE_HOME/wirewitness/recent.json or the same in ~/.local/state; None where there is no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if base and Path(base).is_absolute():
        return Path(base) / "wirewitness" / "recent.json"
    try:
        return Path.home() / ".local" / "state" / "wirewitness" / "recent.json"
    except RuntimeError:
        return None


def content_id(paths: Sequence[str]) -> str:
    """Names captures in an address: who opens the same files, wherever they lie, sees the same under it.

    Folders, and objects of a store, go by their path: what lies in folders changes, and a store is not asked here. A
    file that grows keeps its name until the server ends.
    """
    return _digest(sorted(_known_by(absolute_name(path, resolved=True)) for path in paths))


@lru_cache(maxsize=256)
def _known_by(path: str) -> str:
    try:
        return content_key(Path(path)) if Path(path).is_file() else path
    except OSError:  # it says why when it is opened
        return path


def _id(paths: Sequence[str]) -> str:
    return _digest([absolute_name(path, resolved=True) for path in paths])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


def _title(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{Path(paths[0]).name or paths[0]}{more}"


def _size(path: Path) -> int:
    with suppress(OSError):
        if path.is_dir():
            return sum(entry.stat().st_size for entry in path.iterdir() if entry.is_file())
        return path.stat().st_size
    return 0
