"""What programs must have seen of a generated capture.

In: what the generator wrote. Out: functions that are given what a program counts, and raise CountsDiffer.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.bench.programs import Found
from tests.support.replay import Replayed

Check = Callable[[str, tuple[int, ...]], None]
WANTED_WHOLE = 0.95


class CountsDiffer(Exception):
    """A program saw another number of messages than the capture holds."""


def all_of(made: Replayed) -> Check:
    """Both messages of every exchange, no more and no less."""

    def check(name: str, found: tuple[int, ...]) -> None:
        if found != (made.exchanges, made.exchanges):
            raise CountsDiffer(f"{name} saw {found}, the capture holds {made.exchanges} exchanges")

    return check


def analysed(made: Replayed) -> Check:
    """A report that counts every exchange."""

    def check(name: str, found: tuple[int, ...]) -> None:
        if found[0] != made.exchanges:
            raise CountsDiffer(f"{name} counts {found[0]} exchanges, the capture holds {made.exchanges}")

    return check


def the_same() -> Check:
    """Some messages, as many in each run of a program, with one process or two."""
    counts: dict[str, int] = {}

    def check(name: str, found: tuple[int, ...]) -> None:
        program = name.split(maxsplit=1)[0]
        if not found[0] or counts.setdefault(program, found[0]) != found[0]:
            raise CountsDiffer(f"{name} saw {found[0]} messages, before {counts.get(program)}")

    return check


def some_analysed(made: Replayed) -> Check:
    """A report of a capture with loss, which makes none up."""

    def check(name: str, found: tuple[int, ...]) -> None:
        if not 0 < found[0] <= made.exchanges:
            raise CountsDiffer(f"{name} counts {found[0]} exchanges, the capture holds {made.exchanges}")

    return check


def some_publishes_analysed(made: Replayed) -> Check:
    """The same of publishes."""

    def check(name: str, found: tuple[int, ...]) -> None:
        if not 0 < found[1] <= made.exchanges:
            raise CountsDiffer(f"{name} counts {found[1]} publishes, {made.exchanges} were sent")

    return check


def publishes_analysed(made: Replayed) -> Check:
    """A report that counts every publish."""

    def check(name: str, found: tuple[int, ...]) -> None:
        if found[1] != made.exchanges:
            raise CountsDiffer(f"{name} counts {found[1]} publishes, the capture holds {made.exchanges}")

    return check


def messages_of(made: Replayed) -> Check:
    """All messages, and all publishes among them."""
    wanted = made.requests + made.responses, made.exchanges

    def check(name: str, found: tuple[int, ...]) -> None:
        if found != wanted:
            raise CountsDiffer(f"{name} saw {found} messages and publishes, the capture holds {wanted}")

    return check


def whole_messages_of(made: Replayed) -> Check:
    """Nearly all messages of which no byte is missing, and no more publishes than were sent."""
    wanted = made.requests + made.responses

    def check(name: str, found: tuple[int, ...]) -> None:
        messages, publishes = found
        if name != "tshark" and (messages > wanted or publishes > made.exchanges):
            raise CountsDiffer(f"{name} saw {found}, {wanted} messages are whole, {made.exchanges} publishes were sent")
        if messages < WANTED_WHOLE * wanted:
            raise CountsDiffer(f"{name} saw {messages} messages, {wanted} are whole")

    return check


def none_invented(made: Replayed) -> Check:
    """Exchanges of which something is left; tshark may take the rest of a broken message for another one."""

    def check(name: str, found: tuple[int, ...]) -> None:
        most = Found(made.exchanges, made.exchanges)
        if name != "tshark" and any(count > sent for count, sent in zip(found, most, strict=True)):
            raise CountsDiffer(f"{name} saw {found}, {most} were sent")
        if min(found) < made.exchanges // 2:
            raise CountsDiffer(f"{name} saw no more than {found} of {most}")

    return check


def equal(multiple: int) -> tuple[Check, list[tuple[int, ...]]]:
    """All find the same number, a multiple of what a batch holds; the second value keeps what was found."""
    counts: list[tuple[int, ...]] = []

    def check(name: str, found: tuple[int, ...]) -> None:
        counts.append(found)
        if found != counts[0] or not found[0] or found[0] % multiple:
            raise CountsDiffer(f"{name} saw {found} records, before {counts[0]}, in batches of {multiple}")

    return check, counts
