"""A part of a report that fails is left out and says so; the others stand.

In: what makes the part. Out: what it made, or something in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from wirewitness.analyser.base.faults import told
from wirewitness.analyser.capture import CaptureError
from wirewitness.reports.base.formats.document import Paragraph, Section

Made = TypeVar("Made")


def part(what: str, make: Callable[[], Made], instead: Callable[[str], Made]) -> Made:
    """What `make` gives; where that is a fault of our own, what stands instead of it, given a sentence about it."""
    try:
        return make()
    except CaptureError:  # rows of a dataset that cannot be read: the caller's to mend
        raise
    except Exception as error:
        return instead(told(error, what, "this part is left out"))


def left_out(text: str) -> list[Section]:
    """What stands in place of sections."""
    return [Section("", (Paragraph(text, tone="warning"),))]
