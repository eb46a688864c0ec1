"""MON137 default-database: an application works in the database test, where its likes work in another one.

Finds
    Applications that send everything to the database test, which drivers and shells take where the settings name none,
    while others use the same collections, with the same documents, in a database of their own.

Why it matters
    All writes succeed, and nobody finds them: reports and other instances look at the other database.

How it decides
    All commands on data of an application (address, name, driver) go to test, at least 10 (least). At least two others
    (others_least) work in one other database, and none of them in test: they insert into a collection of the same name
    documents with the same fields and types, or send the same shape of find, update or delete there.

False alarms
    A copy of the application that works on test data on purpose, at the server of the others.

What it cannot tell
    What the settings say.

References
    Connection string: defaultauthdb; drivers: the database test is the default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import TITLE_NAME, client_text, client_title, listed
from wirewitness.analyser.mongo.rules.use import DATA, SERVER_KEY, USE, USE_COLUMNS, client_of, use_finding

_DEFAULT = "test"
_Who = tuple[Any, ...]
# Of two applications in whole: collection, command, and what is sent to it.
_Does = set[tuple[str | None, str, str]]


def detect(frames: Frames, *, least: int = 10, others_least: int = 2) -> Iterator[Finding]:
    """One finding for each application of this server that works in test."""
    clients: dict[_Who, list[Row]] = {}
    for row in rows_of(frames[USE]):
        clients.setdefault(client_of(row), []).append(row)
    does = {who: _does(own) for who, own in clients.items()}
    for who, own in clients.items():
        if {row["database"] for row in own} != {_DEFAULT} or sum(row["commands"] for row in own) < least:
            continue
        likes = _likes(who, clients, does)
        if len(likes) >= others_least and len({row["database"] for row in likes}) == 1:
            yield _finding(own, likes)


def _does(own: Sequence[Row]) -> _Does:
    found: _Does = set()
    for row in own:
        if row["document_shapes"]:
            shapes = [one["shape"] for one in json.loads(row["document_shapes"])]
        else:
            shapes = [row["query_shape"]] if row["query_shape"] else []
        found |= {(row["collection"], row["command"], shape) for shape in shapes}
    return found


def _likes(who: _Who, clients: Mapping[_Who, Sequence[Row]], does: Mapping[_Who, _Does]) -> list[Row]:
    """A row of each other application that does the same elsewhere, and nothing in test."""
    return [
        own[0]
        for other, own in clients.items()
        if other != who
        and len({row["database"] for row in own}) == 1
        and own[0]["database"] not in (None, _DEFAULT)
        and 2 * len(does[who] & does[other]) > len(does[who])
    ]


def _finding(own: Sequence[Row], likes: Sequence[Row]) -> Finding:
    rows = sorted(own, key=lambda row: (row["ts"], row["exchange_id"]))
    first, database = rows[0], likes[0]["database"] or "?"
    commands = sum(row["commands"] for row in rows)
    names = names_text([client_title(row) for row in likes], 3)
    return use_finding(
        RULE,
        rows,
        severity="warning",
        title=f"{client_title(first)} works in the database test, others in {printable(database, TITLE_NAME)}",
        sentence=(
            f"{sentence_start(client_text(first))} sent all its {commands:,} commands to the database test at "
            f"{server_text(first)} ({listed(row['collection'] for row in rows)}); {names} do the same in "
            f"{printable(database, 80)}. Drivers take test where the settings name no database."
        ),
        next_step=(
            "Look whether the connection string or the settings of this instance name the database; move what it wrote "
            "to test where it belongs."
        ),
        numbers={
            "database": _DEFAULT,
            "others_database": database,
            "others": len(likes),
            "commands": commands,
            "breaches": commands,
        },
    )


RULE = Rule(
    code="MON137",
    question="differs",
    name="default-database",
    severity="warning",
    confidence="medium",
    reads={USE: (*USE_COLUMNS, "document_shapes")},
    partition_by=SERVER_KEY,
    detect=detect,
    rows={USE: f"command IN {DATA} AND command <> 'getMore' AND succeeded > 0"},
    suspects=AnyRow(USE, f"database = '{_DEFAULT}'"),
)
