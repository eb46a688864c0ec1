"""Names that a caller may have mistyped: lookup with a suggestion in the error."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from wirewitness.analyser.base.near_names import NearNames
from wirewitness.app.shared.failure import CallerError, say


def checked_name(name: str, known: Collection[str], kind: str) -> str:
    """The known name that equals `name`, letter case aside. CallerError with suggestion and list otherwise."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    found = by_lower.get(name.lower())
    if found is not None:
        return found
    raise CallerError(*unknown_name(name, known, kind))


def unknown_name(name: str, known: Collection[str], kind: str) -> tuple[str, str]:
    """Lines about an unknown name: what is near, and what there is."""
    listing = ", ".join(sorted(known)) or "none in this version"
    return f"unknown {kind} {name!r}{near_names(name, known)}", f"known: {listing}"


def near_names(name: str, known: Collection[str]) -> str:
    """`; did you mean A or B?`, empty where no name is near."""
    lower = {candidate.lower(): candidate for candidate in known}
    near = [lower[match] for match in NearNames().near(name.lower(), lower, 3, 0.6)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def checked_columns(columns: str | None, table: str) -> list[str]:
    """Columns of a comma separated list, all columns for None. CallerError for unknown or doubled ones."""
    from wirewitness.analyser.tables.renamed import column_note
    from wirewitness.analyser.tables.tables import readable_table

    known = readable_table(table).column_names()
    if columns is None:
        return list(known)
    wanted = [part.strip() for part in columns.split(",") if part.strip()]
    for part in wanted:
        now = column_note(part, [table])
        if now is not None:
            raise CallerError(now)
    names = [checked_name(part, known, f"column of {table}") for part in wanted]
    if not names:
        raise CallerError("--columns needs at least one column")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise CallerError(f"--columns names {', '.join(doubled)} twice")
    return names


def checked_table(name: str, *, quiet: bool = False) -> str:
    """A registered table's name; of a renamed one that of now, and a note. CallerError otherwise."""
    from wirewitness.analyser.tables.renamed import table_now

    return table_now(readable_name(name, quiet=quiet))


def readable_name(name: str, *, quiet: bool = False) -> str:
    """The name of a table to read; an old one stays, and a note says that of now. CallerError otherwise."""
    from wirewitness.analyser.tables.renamed import RENAMED_TABLES
    from wirewitness.analyser.tables.tables import ALL_TABLES

    if name.lower() in RENAMED_TABLES:
        say_renamed([name.lower()], quiet=quiet)
        return name.lower()

    if name not in ALL_TABLES and os.path.exists(name):
        raise CallerError(f"{name!r} is a file; the table's name comes first: wirewitness table NAME CAPTURE...")
    return checked_name(name, ALL_TABLES, "table")


def say_renamed(old_names: Iterable[str], *, quiet: bool = False) -> None:
    """A note on standard error for each table that was called by its old name."""
    from wirewitness.analyser.tables.renamed import table_note

    if not quiet:
        for old in old_names:
            say(f"note: {table_note(old)}")
