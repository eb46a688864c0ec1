"""What a report's head says of errors that no rule judged. In: kinds of errors; out: lines, and values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from wirewitness.analyser.base.times import moment_text
from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Paragraph
from wirewitness.reports.base.formats.rows import with_times
from wirewitness.reports.base.questions.unclassified import UnjudgedErrors

_SHOWN = 6


def unjudged_sentence(errors: Sequence[UnjudgedErrors]) -> str:
    """How many there are."""
    return f"{count(sum(one.exchanges for one in errors), 'error')} that no rule judges."


def unjudged_lines(errors: Sequence[UnjudgedErrors], shown: int = _SHOWN) -> list[str]:
    """`179 Produce NOT_ENOUGH_REPLICAS of client x at 10.0.0.1: no rule`, a line for each operation and error."""
    groups = _by_error(errors)
    lines = [_line(group) for group in groups[:shown]]
    if len(groups) > shown:
        left = sum(one.exchanges for group in groups[shown:] for one in group)
        lines.append(f"and {count(left, 'more error')} of {count(len(groups) - shown, 'other kind')}: no rule")
    return lines


def unjudged_blocks(errors: Sequence[UnjudgedErrors]) -> list[Paragraph]:
    """The lines as paragraphs; none without errors."""
    lines = unjudged_lines(errors)
    return [Paragraph(line, "errors", "warning") for line in lines]


def unjudged_values(errors: Iterable[UnjudgedErrors]) -> list[dict[str, Any]]:
    """For JSON."""
    return [with_times(asdict(one)) for one in errors]


def _by_error(errors: Iterable[UnjudgedErrors]) -> list[list[UnjudgedErrors]]:
    """Kinds of one operation and error together, most frequent first."""
    groups: dict[tuple[Any, ...], list[UnjudgedErrors]] = {}
    for one in errors:
        groups.setdefault((one.protocol, one.operation, one.status, one.error_code), []).append(one)
    return sorted(groups.values(), key=lambda group: -sum(one.exchanges for one in group))


def _line(group: Sequence[UnjudgedErrors]) -> str:
    first, total = group[0], sum(one.exchanges for one in group)
    what = f"{total:,} {first.operation or 'undecoded requests'} {_error(first)}"
    begin, end = min(one.first_ns for one in group), max(one.last_ns for one in group)
    times = moment_text(begin) if total == 1 else f"{moment_text(begin)} to {moment_text(end)}"
    return f"{what} of {_who(group)}, {times}: no rule"


def _error(one: UnjudgedErrors) -> str:
    if one.status == "unanswered":
        return "without a response"
    return one.error_name or (f"error {one.error_code}" if one.error_code is not None else "error")


def _who(group: Sequence[UnjudgedErrors]) -> str:
    first = group[0]
    name = f"client {first.client_id or '(no client id)'} at {first.client_address or '?'}"
    if len(group) == 1:
        return name
    return f"{count(len(group), 'client')}, {first.exchanges:,} of them of {name}"
