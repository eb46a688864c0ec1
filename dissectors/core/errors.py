"""The one error that decoding may raise."""

from __future__ import annotations


class DecodeError(ValueError):
    """The bytes are not what the protocol's definition says. The text says what, never the bytes."""
