"""Secrets in the texts of a message's tree. In: what a dissector gave. Out: the same with them masked, bytes too.

A dissector knows the fields that are credentials. Systems put credentials elsewhere too, into names, properties and
error texts; those are found by their form, the same way in all protocols.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.core.inspect import Hidden, Inspected, Node
from wirewitness.dissectors.core.secrets import (
    MASK,
    is_secret_name,
    looks_opaque,
    masked,
    may_hold_secrets,
    secret_spans,
)

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
