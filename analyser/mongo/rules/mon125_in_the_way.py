"""MON125 transaction-in-the-way: a transaction holds documents that others want to write.

Finds
    Transactions that had written a document when writes of other sessions to it were refused (WriteConflict) or waited
    until they ended, and who sent them.

Why it matters
    MON102 names who was refused and MON101 who waited; what keeps them is the transaction of somebody else that stays
    open. Each conflict throws away the work of a whole transaction.

How it decides
    A write is answered with WriteConflict (112), and a transaction of another session had written the same document
    (the same digest of _id), or the same collection where not both name documents by _id, between the begin of the
    write's own transaction and the refusal. Or a write of that document outside of transactions took 100 ms or more and
    was answered within 50 ms before to 250 ms after the transaction ended. A conflict of a collection counts only where
    one application alone had such transactions. Of each application one finding for each collection. A warning where a
    transaction stayed open for a second (held_s) after it had begun, or stood in the way of at least 10 writes
    (writes_least); else info, as withTransaction begins anew.

False alarms
    None known where documents are known; a collection that both write says less.

What it cannot tell
    Holders whose connections are not in the capture; documents that are not written by their _id.

References
    MongoDB manual: transactions and atomicity, in-progress transactions and write conflicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import server_text, who_is
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text, time_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import MAX_NAME, TITLE_NAME, client_numbers, namespace

CONFLICTS = "mongo_conflicts"
_NEXT = (
    "Keep that transaction short: no waiting for users, other services or large reads between its first write and its "
    "commit; write contended documents last, or use one update with operators instead of a transaction."
)


def detect(frames: Frames, *, held_s: float = 1.0, writes_least: int = 10) -> Iterator[Finding]:
    """One finding for each application that held documents of this collection."""
    rows = rows_of(frames[CONFLICTS])
    sure = {row["exchange_id"] for row in rows if row["same"] == "document"}
    holders: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["same"] == "document" or row["exchange_id"] not in sure:
            holders.setdefault(tuple(row[name] for name in _HOLDER), []).append(row)
    may_hold = Counter(one for own in holders.values() for one in {row["exchange_id"] for row in own})
    for own in holders.values():
        known = {row["exchange_id"] for row in own if row["same"] == "document"}
        guessed = {row["exchange_id"] for row in own} - known
        # Where several may hold it nobody is accused.
        mine = [row for row in own if row["exchange_id"] in known]
        mine += [row for row in own if row["exchange_id"] in guessed and may_hold[row["exchange_id"]] == 1]
        if mine:
            yield _finding(mine, held_s * 1000, writes_least)


_HOLDER = ("holder_address", "holder_app_name", "holder_driver")


def _held_ms(row: Row) -> float:
    """How long the transaction was open, until the write was answered where it is open still."""
    end = row["ts"] if row["ts_holder_ended"] is None else row["ts_holder_ended"]
    return float((end - row["ts_holder_started"]) / NS_PER_MS)


def _name(row: Row) -> str:
    """`session 5f1c, number 7, ` of the transaction, as far as it is known."""
    parts = (("session", row["holder_lsid"]), ("number", row["holder_txn_number"]))
    return "".join(f"{what} {one}, " for what, one in parts if one is not None)


def _finding(own: Sequence[Row], held_ms: float, writes_least: int) -> Finding:
    worst = max(own, key=lambda row: (_held_ms(row), row["exchange_id"]))
    writes = {row["exchange_id"]: row for row in own}
    refused = sum(row["kind"] == "refused" for row in writes.values())
    waiting = len(writes) - refused
    waited = [row["waited_ms"] for row in writes.values() if row["kind"] != "refused" and row["waited_ms"]]
    holders = {(row["holder_lsid"], row["holder_txn_number"]) for row in own}
    name = who_is(worst["holder_app_name"], worst["holder_address"], kind="application",
                  detail=printable(worst["holder_driver"] or "", MAX_NAME), most=MAX_NAME)  # fmt: skip
    victims = dict.fromkeys(
        who_is(row["app_name"], row["client_address"], kind="application", most=MAX_NAME) for row in own
    )
    ended = (
        f"{worst['holder_outcome'] or 'ended'} at {time_text(worst['ts_holder_ended'])}"
        if worst["ts_holder_ended"] is not None
        else "still open"
    )
    met = [f"{count(refused, 'write was', 'writes were')} refused (WriteConflict)"] if refused else []
    up_to = f" up to {ms_text(max(waited))}" if waited else ""
    met += [f"{count(waiting, 'write')} waited{up_to}"] if waiting else []
    what = "the same document" if worst["same"] == "document" else "the same collection"
    return RULE.finding(
        severity="warning" if _held_ms(worst) >= held_ms or len(writes) >= writes_least else "info",
        confidence="high" if worst["same"] == "document" else "medium",
        subject={
            "server": server_text(worst),
            "where": namespace(worst),
            "address": worst["holder_address"],
            "application": worst["holder_app_name"],
        },
        title=(
            f"Transaction of {printable(worst['holder_app_name'] or worst['holder_address'] or '?', TITLE_NAME)} in "
            f"the way of {count(len(writes), 'write')} of {printable(namespace(worst) or '?', TITLE_NAME)}"
        ),
        sentence=(
            f"{sentence_start(name)} held documents of {namespace(worst)} at {server_text(worst)} in "
            f"{count(len(holders), 'transaction')}, the longest for {ms_text(_held_ms(worst))} ({_name(worst)}begun at "
            f"{time_text(worst['ts_holder_started'])}, {ended}). Meanwhile {' and '.join(met)} that write {what}: "
            f"{names_text([*victims], 3)}."
        ),
        next_step=_NEXT,
        proof=Proof(
            min(row["ts_holder_started"] for row in own),
            max(row["ts"] + int((row["waited_ms"] or 0) * NS_PER_MS) for row in own),
            (Evidence(None, None, one) for one in dict.fromkeys(
                (worst["holder_exchange_id"], *(row["exchange_id"] for row in own)))),
        ),
        numbers={
            "where": namespace(worst),
            "transactions": len(holders),
            "lsid": worst["holder_lsid"],
            "txn_number": worst["holder_txn_number"],
            "held_ms": round(_held_ms(worst), 3),
            "outcome": worst["holder_outcome"],
            "requests_refused": refused,
            "waited": waiting,
            "longest_ms": round(max(waited, default=0.0), 3),
            "same": worst["same"],
            "clients": [
                {"address": worst["holder_address"], "client_id": worst["holder_app_name"],
                 "driver": worst["holder_driver"]}
            ],
            "victims": [client_numbers({**row, "driver_version": None}) for row in [*writes.values()][:20]],
            "lasted_s": round(max(row["ts"] for row in own) / NS_PER_S - min(row["ts"] for row in own) / NS_PER_S, 3),
        },
    )  # fmt: skip


RULE = Rule(
    code="MON125",
    question="concurrent",
    name="transaction-in-the-way",
    severity="warning",
    confidence="high",
    reads={
        CONFLICTS: (
            "ts", "client_address", "app_name", "driver", "exchange_id", "kind", "same", "waited_ms", "holder_lsid",
            "holder_txn_number", "holder_address", "holder_app_name", "holder_driver", "ts_holder_started",
            "ts_holder_ended", "holder_outcome", "holder_exchange_id",
        ),
    },
    partition_by=("server_address", "server_port", "database", "collection"),
    detect=detect,
)  # fmt: skip
