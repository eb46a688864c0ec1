"""Names that a caller may have mistyped: lookup with a suggestion in the error."""

from __future__ import annotations

import os
from collections.abc import Collection
from difflib import get_close_matches

from wirewitness.app.shared.failure import CallerError


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
    near = [lower[match] for match in get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def checked_columns(columns: str | None, table: str) -> list[str]:
    """Columns of a comma separated list, all columns for None. CallerError for unknown or doubled ones."""
    from wirewitness.analyser.tables.tables import ALL_TABLES

    known = ALL_TABLES[table].column_names()
    if columns is None:
        return list(known)
    names = [checked_name(part.strip(), known, f"column of {table}") for part in columns.split(",") if part.strip()]
    if not names:
        raise CallerError("--columns needs at least one column")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise CallerError(f"--columns names {', '.join(doubled)} twice")
    return names


def checked_table(name: str) -> str:
    """A registered table's name. CallerError otherwise."""
    from wirewitness.analyser.tables.tables import ALL_TABLES

    if name not in ALL_TABLES and os.path.exists(name):
        raise CallerError(f"{name!r} is a file; the table's name comes first: wirewitness table NAME CAPTURE...")
    return checked_name(name, ALL_TABLES, "table")
