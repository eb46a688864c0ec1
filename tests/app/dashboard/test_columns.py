"""One name for one column on every page of the dashboard; where the names differ, they say different things."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from wirewitness.app.dashboard import views
from wirewitness.reports.base.questions.columns import PAGE, Column

# Columns of one name in SQL that mean something else from table to table.
OTHER_MEANINGS = {
    "accepted": "commits of a group; acknowledged records of a share group",
    "client_address": "beside a server's address it is the client's",
    "client_id": "of a client; who committed last; with most errors; who published",
    "commands": "of a transaction; errors by command",
    "ended": "when a consumer ended; what ended a cursor",
    "error_name": "of an exchange; the answer to a CONNECT, which may be good; beside its code",
    "operation": "Kafka calls it an API",
    "request_bytes": "of one; of all",
    "response_bytes": "of one; of all",
    "ts": "what happened then",
    "ts_first": "of packets; of what was told",
    "ts_last": "of packets; of what was told",
    "leader_epoch": "of a change; of a partition",
}


def columns_in(value: Any, depth: int = 0) -> Iterator[Column]:
    if isinstance(value, Column):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for one in value.values():
            yield from columns_in(one, depth + 1)
    elif depth < 4 and isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from columns_in(one, depth + 1)


def titles() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for module in pkgutil.iter_modules(views.__path__):
        for value in vars(importlib.import_module(f"{views.__name__}.{module.name}")).values():
            for column in columns_in(value):
                if column.only in ("", PAGE):
                    found[column.name].add(column.title)
    return found


def test_a_column_has_one_name_on_every_page() -> None:
    found = titles()
    assert len(found) > 100
    differing = {name: sorted(said) for name, said in found.items() if len(said) > 1 and name not in OTHER_MEANINGS}
    assert differing == {}
