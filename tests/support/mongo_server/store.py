"""The documents of the test server, its sessions and its transactions.

In: reads and writes by namespace, each perhaps in a transaction. Out: documents; CommandError 11000 for duplicates, 112
where two transactions change one document, 251 for a transaction that is not open. One lock guards all of it.
"""

from __future__ import annotations

import copy
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import bson

from tests.support.mongo_server.documents import Document
from tests.support.mongo_server.errors import CommandError

TRANSIENT = ("TransientTransactionError",)


def key_of(value: Any) -> bytes:
    """Return a value, most often an _id, as a key of a dictionary."""
    return bson.encode({"": value})


def duplicate(namespace: str, names: list[str], values: list[Any]) -> CommandError:
    """Return the error of a value that is there already."""
    shown = ", ".join(f"{name}: {value!r}" for name, value in zip(names, values, strict=True))
    return CommandError(11000, f"E11000 duplicate key error collection: {namespace} dup key: {{ {shown} }}")


@dataclass
class Transaction:
    """Changes that wait for commitTransaction: per namespace and key the document, or None for a deleted one."""

    number: int
    changes: dict[str, dict[bytes, Document | None]] = field(default_factory=dict)
    state: str = "open"
    began: float = field(default_factory=time.monotonic)


@dataclass
class Session:
    """A logical session: its transaction, and what its last retryable write was answered."""

    transaction: Transaction | None = None
    write_number: int = -1
    write_reply: Document | None = None


class Store:
    """All namespaces ("database.collection") and sessions."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.indexes: dict[str, list[Document]] = {}
        self._documents: dict[str, dict[bytes, Document]] = {}
        self._put_at: dict[tuple[str, bytes], float] = {}
        self._sessions: dict[bytes, Session] = {}
        self.transaction_s: float | None = None  # how long one may be open

    def session(self, lsid: Document) -> Session:
        """Return the session of this id."""
        return self._sessions.setdefault(key_of(lsid), Session())

    def transaction_of(self, command: Document) -> Transaction | None:
        """Return the transaction that a command names, begun if it says so; None outside of transactions."""
        if "autocommit" not in command:
            return None
        session, number = self.session(command["lsid"]), command["txnNumber"]
        if command.get("startTransaction"):
            session.transaction = Transaction(number)
        transaction = session.transaction
        if transaction is not None and transaction.state == "open" and self.expired(transaction):
            self.abort(transaction)
        if transaction is None or transaction.number != number or transaction.state == "aborted":
            raise CommandError(251, f"Given transaction number {number} does not match any in-progress", TRANSIENT)
        return transaction

    def expired(self, transaction: Transaction) -> bool:
        """Tell whether a transaction has been open for longer than is allowed."""
        return self.transaction_s is not None and time.monotonic() - transaction.began > self.transaction_s

    def namespaces(self) -> list[str]:
        """Return the namespaces that hold documents or indexes, in order."""
        return sorted(self._documents.keys() | self.indexes.keys())

    def read(self, namespace: str, transaction: Transaction | None = None) -> list[Document]:
        """Return a namespace's documents as a transaction sees them, in the order of their insertion."""
        changes = {} if transaction is None else transaction.changes.get(namespace, {})
        found = {**self._documents.get(namespace, {}), **changes}
        return [copy.deepcopy(document) for document in found.values() if document is not None]

    def insert(self, namespace: str, document: Document, transaction: Transaction | None) -> None:
        """Add a document; CommandError 11000 if its _id or a unique index's value is there already."""
        changes = {} if transaction is None else transaction.changes.get(namespace, {})
        key = key_of(document["_id"])
        # By its key: a look at all documents would make each insert into a large collection slow.
        if changes.get(key, None if key in changes else self._documents.get(namespace, {}).get(key)) is not None:
            raise duplicate(namespace, ["_id"], [document["_id"]])
        for names in [list(index["key"]) for index in self.indexes.get(namespace, ()) if index.get("unique")]:
            values = [document.get(name) for name in names]
            if any([one.get(name) for name in names] == values for one in self.read(namespace, transaction)):
                raise duplicate(namespace, names, values)
        self.put(namespace, document["_id"], document, transaction)

    def put(self, namespace: str, identity: Any, document: Document | None, transaction: Transaction | None) -> None:
        """Store a document or, with None, delete it; CommandError 112 if another transaction has changed it."""
        key = key_of(identity)
        for session in self._sessions.values():
            other = session.transaction
            if other is None or other is transaction or other.state != "open" or self.expired(other):
                continue
            if key in other.changes.get(namespace, {}):
                message = "Caused by :: Write conflict during plan execution and yielding is disabled."
                raise CommandError(112, message, TRANSIENT if transaction else ())
        if transaction is not None:
            transaction.changes.setdefault(namespace, {})[key] = document
        elif document is None:
            self._documents.get(namespace, {}).pop(key, None)
        else:
            self._documents.setdefault(namespace, {})[key] = document
            self._put_at.setdefault((namespace, key), time.monotonic())
        self.changed.notify_all()

    def commit(self, transaction: Transaction) -> None:
        """Make a transaction's changes everybody's; a second commit changes nothing."""
        if transaction.state == "open":
            for namespace, changes in transaction.changes.items():
                documents = self._documents.setdefault(namespace, {})
                for key, document in changes.items():
                    if document is None:
                        documents.pop(key, None)
                    else:
                        documents[key] = document
        transaction.state = "committed"
        self.changed.notify_all()

    def abort(self, transaction: Transaction) -> None:
        """Forget a transaction's changes."""
        transaction.state = "aborted"

    def drop(self, namespace: str) -> bool:
        """Remove a namespace; tells whether it was there."""
        there = namespace in self.namespaces()
        self._documents.pop(namespace, None)
        self.indexes.pop(namespace, None)
        return there


class Late(Store):
    """The store of a secondary: that of the primary, of which it sees what is new only later."""

    def __init__(self, store: Store, lag_s: float) -> None:
        super().__init__()
        self.lock, self.changed, self.indexes = store.lock, store.changed, store.indexes
        self._documents, self._put_at, self.lag_s = store._documents, store._put_at, lag_s

    def read(self, namespace: str, transaction: Transaction | None = None) -> list[Document]:
        """Return a namespace's documents as of some time ago."""
        until = time.monotonic() - self.lag_s
        found = self._documents.get(namespace, {})
        return [copy.deepcopy(one) for key, one in found.items() if self._put_at.get((namespace, key), 0.0) <= until]
