"""Matching and changing documents: the few operators that the lab's clients use.

In: documents and filters, updates, pipelines as BSON gives them. Out: documents; CommandError 2 for other operators.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from tests.support.mongo_server.errors import CommandError

Document = dict[str, Any]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: value is not None and value > wanted,
    "$gte": lambda value, wanted: value is not None and value >= wanted,
    "$lt": lambda value, wanted: value is not None and value < wanted,
    "$lte": lambda value, wanted: value is not None and value <= wanted,
    "$in": lambda value, wanted: value in wanted,
}


def known(table: dict[str, Any], name: str) -> Any:
    """Return an operator's entry; CommandError for an unknown one."""
    if name not in table:
        raise CommandError(2, f"unknown operator: {name}")
    return table[name]


def matches(document: Document, wanted: Document) -> bool:
    """Tell whether a document is one that the filter WANTED takes."""
    for field, condition in wanted.items():
        if field == "$or":
            if not any(matches(document, one) for one in condition):
                return False
            continue
        if not (isinstance(condition, dict) and next(iter(condition), "").startswith("$")):
            condition = {"$eq": condition}
        value = document.get(field)
        if not all(known(COMPARISONS, name)(value, operand) for name, operand in condition.items()):
            return False
    return True


def changed(document: Document, update: Document) -> Document:
    """Return the document after an update with operators or with a replacement."""
    if not any(name.startswith("$") for name in update):
        return {"_id": document["_id"], **update}
    after = copy.deepcopy(document)
    for name, fields in update.items():
        for field, value in fields.items():
            if name == "$set":
                after[field] = value
            elif name == "$inc":
                after[field] = after.get(field, 0) + value
            elif name == "$unset":
                after.pop(field, None)
            else:
                raise CommandError(2, f"unknown operator: {name}")
    return after


def ordered(documents: list[Document], sort: Document) -> list[Document]:
    """Return the documents, which all have its fields, in the order that SORT asks for."""
    for field, direction in reversed(sort.items()):
        documents = sorted(documents, key=itemgetter(field), reverse=direction < 0)
    return documents


def grouped(documents: Iterable[Document], spec: Document) -> list[Document]:
    """Return $group by one field (or none) with $sum."""
    found: dict[Any, Document] = {}
    key = spec["_id"]
    for document in documents:
        group = document.get(key[1:]) if isinstance(key, str) else key
        row = found.setdefault(group, {"_id": group, **{name: 0 for name in spec if name != "_id"}})
        for name, accumulator in spec.items():
            if name != "_id":
                operand = accumulator["$sum"]
                row[name] += document.get(operand[1:], 0) if isinstance(operand, str) else operand
    return list(found.values())


STAGES: dict[str, Callable[[list[Document], Any], list[Document]]] = {
    "$match": lambda documents, operand: [one for one in documents if matches(one, operand)],
    "$sort": ordered,
    "$limit": lambda documents, operand: documents[:operand],
    "$skip": lambda documents, operand: documents[operand:],
    "$group": grouped,
    "$count": lambda documents, operand: [{operand: len(documents)}],
}


def aggregated(documents: list[Document], pipeline: list[Document]) -> list[Document]:
    """Return what a pipeline makes of the documents."""
    for stage in pipeline:
        ((name, operand),) = stage.items()
        documents = known(STAGES, name)(documents, operand)
    return documents
