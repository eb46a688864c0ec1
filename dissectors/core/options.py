"""What a decoder is told when it begins. In: a caller's choice, and what is known of the flow. Out: one value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """Options of decoders.

    payload: put what applications sent (keys, values, headers of records) into rows; sizes are there in any case.
    payload_columns: with payload, only these of its columns; empty for all.
    transport: what the flow's bytes travel in: tcp, or the name of a carrier (websocket). A fact, not a choice.
    closed: closed places stay closed with payload too, as redaction needs it (`closed.py`).
    whole: both streams of the flow are seen from their first byte; false where that is not known.
    """

    payload: bool = False
    payload_columns: tuple[str, ...] = ()
    transport: str = "tcp"
    whole: bool = False
    closed: bool = False

    @property
    def opens(self) -> bool:
        """Are texts of closed places shown?"""
        return self.payload and not self.closed
