"""Findings that somebody has looked at now. In: what to accept, and findings. Out: entries, and the file with them."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirewitness.app.cli.output import check_output, whole_file
from wirewitness.app.cli.review_file import OPTION, read_review, text_of
from wirewitness.app.cli.review_write import with_entries
from wirewitness.app.shared.failure import CallerError, say
from wirewitness.app.shared.names import near_names

if TYPE_CHECKING:
    from wirewitness.reports.base.questions.causes import Finding
    from wirewitness.reports.base.questions.reviews import Review, Trouble

EVERYTHING = "all"
_MOST_LETTERS = 1000
_ID = re.compile(r"[0-9a-f]{16}")


def review_of(path: str | None, accepted: Sequence[str], note: str | None, captures: Sequence[str]) -> Review:
    """The review of a file, before captures are read. CallerError or a usage error for what does not go together.

    A file that is not there yet is empty where something is accepted.
    """
    from wirewitness.reports.base.questions.reviews import NO_REVIEW, Review

    if accepted and path is None:
        raise click.UsageError("--accept needs --review FILE: where it is written")
    if accepted and not (note or "").strip():
        raise click.UsageError("--accept needs --note TEXT: what whoever reads the file next should know")
    if note is not None and not accepted:
        raise click.UsageError("--note is for --accept RULE_OR_ID")
    if len(note or "") > _MOST_LETTERS:
        raise click.UsageError(f"--note has {len(note or ''):,} letters; at most {_MOST_LETTERS:,} are kept")
    if path is None:
        return NO_REVIEW
    if not accepted:
        return read_review(path)
    check_output(path, captures, OPTION)
    for name in accepted:
        _check_rule(name)
    return read_review(path) if os.path.exists(path) else Review((), os.path.basename(path))


def accept(
    path: str, review: Review, found: Sequence[Finding], accepted: Sequence[str], note: str, by: str | None
) -> Review:
    """The review with entries for what is accepted, written to its file. CallerError for an id that no finding has."""
    from wirewitness.reports.base.questions.reviews import Review, entry_of, troubles

    chosen: dict[int, Trouble] = {}
    every = list(enumerate(troubles(found)))
    for name in accepted:
        chosen |= dict(_named(name, every, found))
    today = datetime.now(UTC).date()
    entries = [entry_of(trouble, note.strip(), by or _user(), today) for trouble in chosen.values()]
    if not entries:
        say(f"note: nothing to accept: no finding of {', '.join(accepted)} in this capture")
        return review
    text = with_entries(path, text_of(path) if os.path.exists(path) else "", entries)
    try:
        with whole_file(path) as part:
            if os.path.exists(path):
                os.chmod(part, os.stat(path).st_mode & 0o777)
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CallerError(f"{OPTION} {path}: {error.strerror}") from error
    say(f"note: {len(entries)} {'entry' if len(entries) == 1 else 'entries'} written to {path}")
    return Review(read_review(path).entries, Path(path).name)


def _named(name: str, every: Sequence[tuple[int, Trouble]], found: Sequence[Finding]) -> Iterable[tuple[int, Trouble]]:
    """What a name accepts: all, those of a rule, or of a finding; of the first finding of a story all of the story."""
    if name.lower() == EVERYTHING:
        return every
    if not _ID.fullmatch(name.lower()):
        code = _check_rule(name)
        return [(number, trouble) for number, trouble in every if trouble.rule == code]
    wanted = name.lower()
    ids = {finding.finding_id for finding in found if wanted in (finding.finding_id, finding.story_id)}
    if not ids:
        raise CallerError(f"--accept {name}: no finding here has this id", "ids stand in the last line of each finding")
    return [(number, trouble) for number, trouble in every if any(one.finding_id in ids for one in trouble.findings)]


def _check_rule(name: str) -> str:
    """The code of a rule. CallerError for what is neither a rule nor an id."""
    if name.lower() == EVERYTHING or _ID.fullmatch(name.lower()):
        return name
    from wirewitness.analyser.analysis.all_rules import DETECTORS

    names = {detector.name: code for code, detector in DETECTORS.items()}
    code = names.get(name.lower(), name.upper())
    if code not in DETECTORS:
        raise CallerError(
            f"--accept {name}: neither a rule, nor the id of a finding, nor {EVERYTHING}"
            f"{near_names(name, (*DETECTORS, *names))}"
        )
    return code


def _user() -> str:
    """Who runs this, and not root for whom."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""
