"""Strings from the wire made safe for a terminal. In: any text; out: text without control characters.

Client ids, topics and error texts come from whoever sent the packets. A terminal obeys escape sequences and
text direction marks in them, so both are spelled out as `\\x1b` or `\\u202e` in everything that people read.
"""

from __future__ import annotations

import pyarrow as pa

from wirewitness.analyser.base import compute
from wirewitness.analyser.base.bounded import both_ends
from wirewitness.analyser.base.words import is_unsafe
from wirewitness.reports.base.formats.arrow import ArrowColumn

# As `is_unsafe` says, for Arrow; a column cannot hold surrogates.
UNSAFE_PATTERN = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"


def visible(text: str) -> str:
    """The text with every unsafe character spelled out; unchanged when there is none."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if is_unsafe(char) else char for char in text)


def visible_strings(column: ArrowColumn) -> ArrowColumn:
    """`visible` for a string column. Columns without unsafe characters (nearly all) come back as they are."""
    unsafe = compute.any(compute.match_substring_regex(column, UNSAFE_PATTERN))
    if not unsafe.as_py():
        return column
    return pa.array([None if value is None else visible(value) for value in column.to_pylist()], pa.string())


def shortened(text: str, width: int) -> str:
    """At most `width` characters, the middle replaced by `..`; start and end tell member ids apart."""
    return both_ends(text, max(width, 4), max(width - 2, 2) // 2, "..") if len(text) > width else text


def _spelled(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
