"""What the readers of admin APIs share: the value that they give, and how answers are found for what was asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from wirewitness.dissectors.kafka.schema.primitives import Value


class Change(NamedTuple):
    """One thing that was to be changed. The error is None while unanswered, or where the answer leaves it out."""

    resource_type: str
    resource_name: str | None
    change: str
    error_code: int | None
    error_message: str | None


# (request, answer) -> the changes that were asked for, in their order.
Changes = Callable[[Value, Value | None], Iterator[Change]]

Error = tuple[int | None, str | None]


def error_of(answer: Value | None) -> Error:
    """(code, message) of a struct that has an error code; both None where there is no answer."""
    if answer is None:
        return None, None
    return answer.get("error_code"), answer.get("error_message")


def errors_by(answers: Iterable[Value] | None, *fields: str) -> dict[Hashable, Error]:
    """Errors of the answered structs by one field, or by several as a tuple."""
    if len(fields) == 1:
        return {one[fields[0]]: error_of(one) for one in answers or ()}
    return {tuple(one[field] for field in fields): error_of(one) for one in answers or ()}


def partition_errors(topics: Iterable[Value] | None, topic: str, partitions: str = "partitions") -> dict[str, Error]:
    """By topic: the first error that is not 0 among the partitions answered."""
    found: dict[str, Error] = {}
    for one in topics or ():
        errors = [error_of(partition) for partition in one[partitions]]
        found[one[topic]] = next((error for error in errors if error[0]), (0, None))
    return found


def listed(values: Iterable[object]) -> str:
    """Numbers or names with commas."""
    return ",".join(map(str, values))
