"""Secrets inside text: what proves who somebody is, wherever systems put it.

In: names and texts from the wire. Out: the same texts with `***` where a secret stands, and where that is. Four things
tell one: names beside it (`secret_forms.py`), its own form (`secret_tokens.py`), user information in URLs and values
that Kafka refuses (here), and that nobody chose it (`opaque.py`). The last one is not asked of names: ids of clients,
groups and topics are made by programs, too. What is closed as a whole is in `closed.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from wirewitness.dissectors.core import opaque, secret_tokens
from wirewitness.dissectors.core.secret_forms import LAST_WORDS, NAME_WORDS, VALUE, WORDS, patterns

MASK = "***"
# Names are no longer.
_NAME_SIZE = 256
_NAME = re.compile(rf"{NAME_WORDS}|(?:{LAST_WORDS})(?:$|[._-])", re.IGNORECASE)
# Something of this stands in every text that holds a secret. Arrow takes it, too: first whether there is a piece that
# somebody may not have chosen, which is quick to see.
NAME_TRIGGER = f"{WORDS}|{secret_tokens.START}"
TRIGGER = f"{NAME_TRIGGER}|{opaque.RUN}"
_WORDS, _START, _WHOLE = re.compile(WORDS), re.compile(secret_tokens.START), re.compile(secret_tokens.WHOLE)
_RUN = re.compile(opaque.RUN)
_BYTES = tuple(re.compile(one.pattern.encode(), one.flags & re.IGNORECASE) for one in (_RUN, _NAME, _WORDS, _START))
# scheme://user: in front of a password, but no scheme://host:port/; and as far as a password may go.
_URL_USER = re.compile(r"://[^\s/:@?#\"']{0,256}+:(?!\d{1,5}/)")
_URL_PIECE = re.compile(r"[^\s\"',<>]*+")
# Invalid value x for configuration ssl.key.password (ConfigException of Kafka); x may be of several words.
_INVALID = re.compile(r"invalid value ", re.IGNORECASE)
_CONFIGURED = re.compile(
    rf" for configuration (?:[\w.-]{{0,64}}(?:{NAME_WORDS})|[\w.-]{{0,64}}(?:{LAST_WORDS})(?![\w.-]))", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Does a setting, property or header field of this name hold a secret?"""
    return _NAME.search(name) is not None


def may_hold_secrets(data: bytes) -> bool:
    """Could there be a secret in these bytes? Quick, and rather once too often."""
    return any(one.search(data) is not None for one in _BYTES)


def is_suspicious(text: str, *, is_name: bool = False) -> bool:
    """Does anything in the text stand for a secret? Rather once too often. Names that come again are known."""
    if not is_name and _RUN.search(text) is not None:
        return True
    return _is_suspicious(text) if len(text) <= _NAME_SIZE else _has_sign(text)


def _has_sign(text: str) -> bool:
    return _WORDS.search(text) is not None or _START.search(text) is not None


_is_suspicious = lru_cache(maxsize=4096)(_has_sign)


def secret_spans(text: str, *, is_name: bool = False) -> Iterator[tuple[int, int]]:
    """Characters from and to before which are secret, in no order. is_name: of a client, topic, group, collection."""
    if _WORDS.search(text) is not None:
        yield from _url_spans(text)
        yield from _refused_spans(text)
        lower = text.lower()
        for needle, pattern in patterns():
            for found in pattern.finditer(text) if needle in lower else ():
                start, end = found.span("hidden")
                if not text.startswith(MASK, start):
                    yield start, end
    if _START.search(text) is not None:
        for found in _WHOLE.finditer(text):
            yield found.span()
    if not is_name and _RUN.search(text) is not None:
        yield from opaque.opaque_spans(text)


def _url_spans(text: str) -> Iterator[tuple[int, int]]:
    """Passwords between scheme://user: and the last @ of the same piece. A pattern for both, tried at every ://, would
    read each time as far as a password may go, and back."""
    if "@" not in text:
        return
    at = piece_end = 0
    while (found := _URL_USER.search(text, at)) is not None:
        start = found.end()
        if piece_end <= start and (piece := _URL_PIECE.match(text, start)) is not None:
            piece_end = piece.end()
        end = text.rfind("@", start + 1, min(piece_end, start + VALUE + 1))
        if end > 0 and not text.startswith(MASK, start):
            yield start, end
        at = end + 1 if end > 0 else found.start() + 1


def _refused_spans(text: str) -> Iterator[tuple[int, int]]:
    """Values that Kafka refuses for settings whose names say that they are secret."""
    starts = [found.end() for found in _INVALID.finditer(text)]
    for found in _CONFIGURED.finditer(text) if starts else ():
        place = bisect_left(starts, found.start())
        if place and not text.startswith(MASK, starts[place - 1]):
            yield starts[place - 1], found.start()


def masked(text: str, *, is_name: bool = False) -> str:
    """The text with every secret in it as MASK; unchanged when there is none. is_name: see `secret_spans`."""
    done, at = [], 0
    for start, end in sorted(secret_spans(text, is_name=is_name)):
        if end <= at:
            continue
        done += [text[at : max(start, at)], "" if start < at else MASK]
        at = end
    return "".join([*done, text[at:]]) if done else text


def masked_value(name: str, value: str) -> str:
    """The value of a setting or property of that name."""
    return MASK if value and is_secret_name(name) else masked(value)
