"""Payloads as text for tables. In: bytes. Out: text and how it is written."""

from __future__ import annotations


def shown(raw: bytes, most: int) -> tuple[str, str]:
    """(text, encoding): utf8, or hex where it is none; utf8_cut and hex_cut for the first `most` bytes of more."""
    cut = "_cut" if len(raw) > most else ""
    raw = raw[:most]
    try:
        return raw.decode("utf-8"), f"utf8{cut}"
    except UnicodeDecodeError as error:
        if cut and error.reason == "unexpected end of data":  # cut inside a character
            return raw[: error.start].decode("utf-8"), f"utf8{cut}"
    return raw.hex(), f"hex{cut}"
