"""Names of commands: the first key of a command's document. In: that key. Out: text that may be shown."""

from __future__ import annotations

from functools import lru_cache

from wirewitness.dissectors.mongo.handshake import is_hello

MAX_NAME = 128


@lru_cache(maxsize=1024)
def named(key: bytes) -> tuple[str, bool]:
    """A command's name, and whether it is a hello; others than printable names are shown escaped."""
    name = key.decode("utf-8", "replace")
    name = name if name.isprintable() and name else repr(name)[1:-1] or "?"
    return name, is_hello(name)


def command_name(key: bytes) -> str:
    """The name of a command, of which this is the first key."""
    return named(key[:MAX_NAME])[0]
