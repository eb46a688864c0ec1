"""Secrets inside text: what proves who somebody is, wherever systems put it.

In: names and texts from the wire. Out: the same texts with `***` where a secret stands, and where that is. Names decide
(settings, properties, pairs in URLs, JSON, JDBC and JAAS lines), and forms that are secrets by themselves (JWT, keys of
cloud providers, bearer tokens). Every repetition is bounded, so a text costs no more than its length.
Sources: RFC 3986 3.2.1 (user information), RFC 6750 and 7617 (Bearer, Basic), RFC 7519 (JWT), the providers' own pages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from wirewitness.dissectors.core.inspect import Hidden, Inspected, Node

MASK = "***"
# Longer ones are cut there by the patterns; what follows stays.
_VALUE = 2048
# Names are no longer.
_NAME_SIZE = 256
_NAME_WORDS = (
    r"passw|passphrase|secret|jaas|credential|auth[._-]?(?:header|token|key)|authorization|user[._]info|userinfo|"
    r"(?:api|access|account|private|shared|signing|encryption|client|sas)[._-]?key|cookie"
)
_NAME = re.compile(
    # The last letters of a word of the name: ssl.keystore.key, apiKey, ssl.truststore.certificates; not ...key.type.
    rf"{_NAME_WORDS}|(?:key|token|pwd|jwt|certificates?|certificate\.chain)(?:$|[._-])",
    re.IGNORECASE,
)
_PAIR_NAME = (
    rf"(?:{_NAME_WORDS}|pwd|token|jwt|sig|signature|x-amz-(?:security-token|signature|credential))[\w.-]{{0,32}}"
)
# Something of this stands in every text that holds a secret; nearly all texts have nothing and are done. It looks
# neither ahead nor behind, so that Arrow (RE2) takes it too.
TRIGGER = (
    rf"(?i)(?:://[^\s/:@]{{0,256}}:|{_PAIR_NAME}\\?[\"']?\s{{0,4}}[=:,]|eyj[\w-]{{6}}|a[ks]ia[0-9a-z]{{16}}|"
    r"(?:bearer|basic|negotiate|apikey|digest|token) [\w.~+/-]{6}|gh[pousr]_|github_pat_|xox[abprs]-|glpat-|hvs\.|"
    r"aiza|[rs]k_(?:live|test)_|sg\.[\w-]{16}|npm_|hooks\.slack\.com/|/api/webhooks/|jdbc:oracle:|"
    r"private key-----|invalid value |identified |password [\"'])"
)
_TRIGGER = re.compile(TRIGGER)
_TRIGGER_BYTES = re.compile(TRIGGER.encode())
# In binary formats nothing stands between name and value.
_NAME_BYTES = re.compile(_NAME.pattern.encode(), re.IGNORECASE)
# scheme://user: in front of a password, but no scheme://host:port/; and as far as a password may go.
_URL_USER = re.compile(r"://[^\s/:@?#\"']{0,256}+:(?!\d{1,5}/)")
_URL_PIECE = re.compile(r"[^\s\"',<>]*+")
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # {{"password": "x"}}, ["password", "x"], password='x'; also with escaped quotes
        rf"{_PAIR_NAME}\\?[\"']?\s{{0,4}}[=:,]\s{{0,4}}\\?(?P<quote>[\"'])(?P<hidden>[^\"'\\]{{1,{_VALUE}}})",
        # password=x, up to what ends a value in URLs, JDBC and lists
        rf"{_PAIR_NAME}\s{{0,4}}=\s{{0,4}}(?P<hidden>[^\s&;,\"'()\[\]{{}}]{{1,{_VALUE}}})",
        # token: x, where x is no word of a sentence
        rf"{_PAIR_NAME}[\"']?\s{{0,4}}:\s{{0,4}}(?P<hidden>(?=[^\s,;]{{0,64}}[\d=+/])[^\s&;,\"'()\[\]{{}}]{{6,{_VALUE}}})",
        # Authorization: Bearer x
        rf"\b(?:bearer|basic|negotiate|apikey|digest|token) (?P<hidden>(?=[\w.~+/-]{{0,256}}(?-i:[\d=A-Z]))"
        rf"[\w.~+/-]{{6,{_VALUE}}}={{0,2}})",
        # CREATE USER a IDENTIFIED BY 'x', ALTER ROLE a WITH PASSWORD 'x' (SQL)
        rf"\b(?:(?:user|to)\s[^;]{{1,128}}\sidentified (?:with [\w\"'`]{{1,64}} )?(?:by|as) (?:password )?|password )"
        rf"(?P<mark>[\"'])(?P<hidden>[^\"'\\]{{1,{_VALUE}}})",
        # jdbc:oracle:thin:user/x@//host, which has no name and no :// in front (Oracle JDBC developer's guide)
        rf"jdbc:oracle:[a-z]{{1,16}}:[^\s/@]{{1,128}}/(?P<hidden>[^\s@]{{1,{_VALUE}}}+)@",
        # who knows the address may post
        r"(?:hooks\.slack\.com/[a-z]{1,16}|discord(?:app)?\.com/api/webhooks/\d{1,32})/(?P<hidden>[\w/-]{8,255})",
    )
) + tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<hidden>\beyJ[\w-]{{6,{_VALUE}}}+\.[\w-]{{2,{_VALUE}}}+(?:\.[\w-]{{0,{_VALUE}}}+)?)",
        r"(?P<hidden>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)",
        r"(?P<hidden>\bgh[pousr]_[A-Za-z0-9]{20,255})",
        r"(?P<hidden>\bgithub_pat_\w{20,255})",
        r"(?P<hidden>\bxox[abprs]-[\w-]{10,255})",
        r"(?P<hidden>\bAIza[\w-]{35})",
        r"(?P<hidden>\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,255})",
        r"(?P<hidden>\bSG\.[\w-]{16,64}\.[\w-]{16,128})",
        r"(?P<hidden>\bnpm_[A-Za-z0-9]{36})",
        r"(?P<hidden>\bglpat-[\w-]{20,255})",
        r"(?P<hidden>\bhvs\.[\w-]{20,255})",
        rf"-----BEGIN [A-Z ]{{0,32}}PRIVATE KEY-----(?P<hidden>[^-]{{1,{8 * _VALUE}}})",
    )
)
# Invalid value x for configuration ssl.key.password (ConfigException of Kafka); x may be of several words.
_INVALID = re.compile(r"invalid value ", re.IGNORECASE)
_CONFIGURED = re.compile(
    rf" for configuration (?:[\w.-]{{0,64}}(?:{_NAME_WORDS})|"
    r"[\w.-]{0,64}(?:key|token|pwd|jwt|certificates?|certificate\.chain)(?![\w.-]))",
    re.IGNORECASE,
)
# What a word of the language does not look like: the case or kind of letter changes all the time.
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=.~-]{20,4096}\Z")


def is_secret_name(name: str) -> bool:
    """Does a setting, property or header field of this name hold a secret?"""
    return _NAME.search(name) is not None


def may_hold_secrets(data: bytes) -> bool:
    """Could there be a secret in these bytes? Quick, and rather once too often."""
    return _TRIGGER_BYTES.search(data) is not None or _NAME_BYTES.search(data) is not None


def is_suspicious(text: str) -> bool:
    """Does anything in the text stand for a secret? Rather once too often. Names that come again are known."""
    return _is_suspicious(text) if len(text) <= _NAME_SIZE else _TRIGGER.search(text) is not None


@lru_cache(maxsize=4096)
def _is_suspicious(name: str) -> bool:
    return _TRIGGER.search(name) is not None


def secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Characters from and to before which are secret, in no order."""
    if _TRIGGER.search(text) is None:
        return
    yield from _url_spans(text)
    yield from _refused_spans(text)
    for pattern in _PATTERNS:
        for found in pattern.finditer(text):
            start, end = found.span("hidden")
            if not text.startswith(MASK, start):
                yield start, end


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
        end = text.rfind("@", start + 1, min(piece_end, start + _VALUE + 1))
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


def masked(text: str) -> str:
    """The text with every secret in it as MASK; unchanged when there is none."""
    done, at = [], 0
    for start, end in sorted(secret_spans(text)):
        if end <= at:
            continue
        done += [text[at : max(start, at)], "" if start < at else MASK]
        at = end
    return "".join([*done, text[at:]]) if done else text


def masked_value(name: str, value: str) -> str:
    """The value of a setting or property of that name."""
    return MASK if value and is_secret_name(name) else masked(value)


def masked_user(name: str) -> str:
    """A user name; MASK where a token stands in its place, as clouds and brokers of things have it."""
    return MASK if looks_opaque(name) else masked(name)


def looks_opaque(text: str) -> bool:
    """Is it a token rather than a name: long, of one piece, upper and lower case and digits in no order?"""
    if _OPAQUE.match(text) is None:
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "" for c in text]
    kinds = [kind for kind in kinds if kind]
    changes = sum(a != b for a, b in pairwise(kinds))
    return {*kinds} == {"d", "u", "l"} and changes * 3 >= len(kinds)


# Secrets in the texts of a message's tree. In: what a dissector gave. Out: the same with them masked, bytes too.
#
# A dissector knows the fields that are credentials. Systems put credentials elsewhere too, into names, properties and
# error texts; those are found by their form, the same way in all protocols.

_USER, _PAIR = "user_name", "user_property"


def without_secrets(data: bytes, found: Inspected) -> Inspected:
    """The same tree, changed where a text holds a secret."""
    spans = [span for node in found.nodes for span in _masked(node, data)]
    if not spans:
        return found
    hidden = _joined([*found.hidden, *(Hidden(start, end, "secret") for start, end in spans)])
    return Inspected(found.nodes, hidden, found.error, found.error_at)


def _masked(top: Node, data: bytes) -> Iterator[tuple[int, int]]:
    """Masks the values of the tree below a node; the bytes of what is secret."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if not isinstance(node.value, str) or node.children:
            continue
        secrets, shown = _in_text(node.name, node.value)
        if not secrets:
            continue
        node.value = shown
        for secret in secrets:
            raw = secret.encode("utf-8", "surrogateescape")
            at = data.find(raw, node.start, node.end)
            yield (at, at + len(raw)) if raw and at >= 0 else (node.start, node.end)


def _in_text(name: str, text: str) -> tuple[list[str], str]:
    """The secret parts of a value, and what is shown of it."""
    if name == _USER and looks_opaque(text):
        return [text], MASK
    if name == _PAIR and ": " in text:
        key, value = text.split(": ", 1)
        if value and is_secret_name(key):
            return [value], f"{key}: {MASK}"
    if not may_hold_secrets(text.encode("utf-8", "surrogateescape")):
        return [], text
    return [text[start:end] for start, end in secret_spans(text)], masked(text)


def _joined(spans: list[Hidden]) -> list[Hidden]:
    """Rising and apart; what is secret in any of those that overlap is secret."""
    done: list[Hidden] = []
    for one in sorted(spans):
        if done and one.start < done[-1].end:
            last = done.pop()
            kind = last.kind if last.kind == one.kind else "secret"
            one = Hidden(last.start, max(last.end, one.end), kind)
        done.append(one)
    return done
