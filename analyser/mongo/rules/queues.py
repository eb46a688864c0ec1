"""What rules about collections that are queues share: what takes a document, and which one.

In: nothing, or rows of mongo_commands. Out: SQL, ids of documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TAKES = ("findAndModify", "findandmodify")
# SQL on mongo_commands: it succeeded; of findAndModify that it gave a document, of which the _id is known.
DONE = "status = 'ok' AND ts_response IS NOT NULL"
TAKEN = f"{DONE} AND command IN {TAKES} AND n = 1 AND documents_returned = 1 AND len(document_ids) = 1"
PLACE = "server_address, server_port, database, collection"
PLACE_KEY = ("server_address", "server_port", "database", "collection")


def is_take(row: Mapping[str, Any]) -> bool:
    """Did this findAndModify give a document, and is it known which one?"""
    ids = row["document_ids"]
    return bool(row["command"] in TAKES and row["documents_returned"] and ids is not None and len(ids) == 1)


def document_of(take: Mapping[str, Any]) -> int:
    """The digest of the _id of the one document that a command gave, or writes."""
    return int(take["document_ids"][0])


def asks_by_id(row: Mapping[str, Any]) -> bool:
    """Does a findAndModify name the document that it wants?"""
    return (row["query_shape"] or "").startswith('{"query":{"_id":')
