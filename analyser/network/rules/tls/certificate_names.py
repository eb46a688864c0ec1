"""Is a certificate for the name that a client asks for? In: names of a certificate, a server name. Out: yes or no.

Source: RFC 9525, 6.3: a `*` stands for the whole first label and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable


def is_for(names: Iterable[str], wanted: str) -> bool:
    """Whether one of these names is the one wanted."""
    return any(_matches(name.lower().rstrip("."), wanted.lower().rstrip(".")) for name in names)


def _matches(name: str, wanted: str) -> bool:
    if name.startswith("*."):
        _, _, parent = wanted.partition(".")
        return bool(parent) and parent == name[2:]
    return name == wanted
