"""Words that nobody chose: random letters and digits, as keys and tokens are.

In: text. Out: where in it a piece of at least 20 characters of the base64 alphabet stands that no name looks like. The
kind of letter changes all the time in such a piece: in random ones of upper case, lower case and digits at 0.62 of the
places, of lower case and digits at 0.4 (hex: 0.47), in names and words at 0.3 and less.
What is ordinary stays: UUIDs, ids of traces, numbers and words joined by signs, ids of MongoDB where they say what they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LEAST = 20
# For the quick check: every piece has this many.
RUN = rf"[A-Za-z0-9+/_=-]{{{_LEAST}}}"
_RUN = re.compile(rf"{RUN}[A-Za-z0-9+/_=-]*")
# The id of a trace and a span (W3C Trace Context, 3.2), by which messages are joined.
TRACEPARENT = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
_KNOWN = re.compile(
    rf"{TRACEPARENT}|[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}"
)
_PLAIN = re.compile(r"[A-Za-z0-9]{20,}")
# Ids that say that they are; the process id of Kafka Streams is a UUID without its lines.
_NAMED_ID = re.compile(r"""(?:ObjectId\(\\?['"]|"\$oid": ?"|"process_id": ?")\Z""")
_KINDS = str.maketrans(
    {**dict.fromkeys(map(chr, range(48, 58)), "d"), **dict.fromkeys(map(chr, range(65, 91)), "u"),
     **dict.fromkeys(map(chr, range(97, 123)), "l"), **dict.fromkeys("+/_=-", "")}
)  # fmt: skip
_CHANGE = re.compile("(?<=d)[ul]|(?<=u)[dl]|(?<=l)[du]")
# The part of the places at which the kind changes, from which on nobody chose it: with upper and lower case, or one.
_MIXED, _OF_ONE_CASE = 0.4, 0.15
# A word of fewer digits or letters is a word or a number.
_DIGITS = 3


def opaque_spans(text: str) -> Iterator[tuple[int, int]]:
    """Characters from and to before which nobody chose."""
    for run in _RUN.finditer(text):
        if _NAMED_ID.search(text, max(0, run.start() - 16), run.start()) is not None:
            continue
        at = run.start()
        for stop, behind in [*((known.span()) for known in _KNOWN.finditer(text, *run.span())), (run.end(), run.end())]:
            yield from _in_piece(text, at, stop)
            at = behind


def _in_piece(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if end - start < _LEAST:
        return
    if is_opaque(text[start:end]):
        yield start, end
        return
    for plain in _PLAIN.finditer(text, start, end):
        if is_opaque(plain[0]):
            yield plain.span()


def is_opaque(piece: str) -> bool:
    """Did nobody choose it? piece: of the base64 alphabet, of at least 20 characters."""
    kinds = piece.translate(_KINDS)
    if len(kinds) < _LEAST - 2:
        return False
    changes = sum(1 for _ in _CHANGE.finditer(kinds)) / len(kinds)
    digits, upper, lower = (kinds.count(kind) for kind in "dul")
    if min(upper, lower) >= 3:
        return changes >= _MIXED
    return len(piece) == len(kinds) and digits >= _DIGITS and upper + lower >= _DIGITS and changes >= _OF_ONE_CASE
