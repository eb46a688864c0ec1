"""Scenarios of MON145: writes that are sent outside of the transactions to which they belong."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.build_mongo import alone, command
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_STOCK = '{"updates":[{"q":{"_id":"?string"},"u":{"$inc":{"left":"?number"}}}]}'


def sales(
    times: int = 12, every: float = 1.0, aborts: int = 3, beside: int | None = None, stock: str = "stock",
    of_others: int = 3, at_s: float = 0.2, twice: bool = False, elsewhere: int = 0, threads: int = 1,
) -> list[Row]:  # fmt: skip
    """Transactions of one application that insert a sale, with an update of the stock outside of `beside` of them; the
    first `aborts` are aborted. of_others: transactions of another application that update stock within. at_s: when in
    a transaction that update is sent. twice: two of them. elsewhere: such updates while no transaction is open."""
    rows = []
    for n in range(times):
        for thread in range(threads):
            start = 10 + every * n + 0.01 * thread
            its = {"lsid": f"s{thread}", "txn_number": n + 1, "autocommit": False, "flow": f"t{thread}"}
            end = "abortTransaction" if n < aborts else "commitTransaction"
            rows += [
                command(start, "insert", **its, start_transaction=True, collection="sales", n=1),
                command(start + 0.1, "insert", **its, collection="lines", n=1),
                command(start + 0.4, end, **its, database="admin", collection=None),
            ]
        if n < (times if beside is None else beside):
            rows += [_update(10 + every * n + at_s + 0.03 * k, stock) for k in range(1 + twice)]
    rows += [_update(10.6 + every * n, stock) for n in range(elsewhere)]
    who: dict[str, Any] = {"client_address": "10.3.0.2", "app_name": "web", "flow": "w"}
    for n in range(of_others):
        its = who | {"lsid": "other", "txn_number": n + 1, "autocommit": False}
        rows += [
            _update(40 + n, "stock", **its, start_transaction=True),
            command(40.1 + n, "commitTransaction", **its, database="admin", collection=None),
        ]
    return rows


def _update(seconds: float, collection: str, **more: Any) -> Row:
    usual = {"n": 1, "n_modified": 1, "query_shape": _STOCK, "shape_id": "stock", "lsid": "own", "flow": "o"}
    return command(seconds, "update", **{**usual, "collection": collection, **more})


TRANSACTIONS_FIRES: list[Scenario] = [
    fires("MON145", "warning", "the stock of a sale that is aborted stays", **alone(*sales())),
    fires("MON145", "info", "none is aborted", **alone(*sales(aborts=0))),
    fires("MON145", "info", "an audit trail that nobody writes within", **alone(*sales(stock="audit"))),
]
TRANSACTIONS_NEAR_MISSES: list[Scenario] = [
    silent("MON145", "seven transactions", **alone(*sales(7))),
    silent("MON145", "in some of them only", **alone(*sales(beside=9))),
    silent("MON145", "behind their ends", **alone(*sales(at_s=0.6))),
    silent("MON145", "while a command of the transaction waits", **alone(*sales(at_s=0.0995))),
    silent("MON145", "two each time", **alone(*sales(twice=True))),
    silent("MON145", "as often while none is open", **alone(*sales(elsewhere=12))),
    silent("MON145", "two transactions at once", **alone(*sales(threads=2))),
]
