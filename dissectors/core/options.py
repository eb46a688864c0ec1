"""What a caller may ask of dissectors. In: a caller's choice. Out: one value that every conversation is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """Options of conversations.

    payload: put what applications sent (keys, values, headers of records) into rows; sizes are there in any case.
    payload_columns: with payload, only these of its columns; empty for all.
    """

    payload: bool = False
    payload_columns: tuple[str, ...] = ()
