"""Files that people write for this program. In: a path. Out: the text, or what is wrong with the file."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

from wirewitness.app.shared.local_files import ELSEWHERE, is_elsewhere

MOST_NAMES = 100
# What a text of TOML has of strings, comments, keys and the rest, each to its end or that of the text: nothing is read
# twice. Names within each other, joined by dots, are the square of their number to tomllib.
_NAME = r"""(?:"(?:[^"\\\n]|\\.)*+(?:"|$)|'[^'\n]*+(?:'|$)|[\w-]++)"""
_DOT = r"[ \t]*+\.[ \t]*+"
_TOKENS = re.compile(
    rf"""
    \"{{3}}(?s:[^\\]|\\.)*?(?:"{{3,5}}|\Z) | '{{3}}(?s:.)*?(?:'{{3,5}}|\Z) | \#.*
    | (?P<deep>{_NAME}(?:{_DOT}{_NAME}){{{MOST_NAMES}}}) | {_NAME}(?:{_DOT}{_NAME})*+ | [^\w"'\#-]++
    """,
    re.MULTILINE | re.VERBOSE,
)


class NoSuchText(ValueError):
    """A file that cannot be what is asked for: the end of a sentence that begins with its name."""


def small_text(path: str, most_bytes: int) -> str:
    """The text of a regular file of at most so many bytes, in UTF-8. Raises NoSuchText."""
    if is_elsewhere(path):
        raise NoSuchText(ELSEWHERE)
    try:
        if not os.path.isfile(path):
            raise NoSuchText("that is no file" if os.path.exists(path) else "no such file")
        with open(path, "rb") as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise NoSuchText(f"larger than {most_bytes >> 20} MB, so somebody else's file")
        return data.decode()
    except OSError as error:
        raise NoSuchText(f"{error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NoSuchText(f"not UTF-8 at byte {error.start}, so it is no TOML") from error


def toml_of(text: str) -> dict[str, Any]:
    """What a text of TOML says. Raises NoSuchText, also for what is nested too deeply or has numbers without end."""
    if any(token["deep"] for token in _TOKENS.finditer(text)):
        raise NoSuchText(f"a key of more than {MOST_NAMES} names within each other")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NoSuchText(str(error)) from error
    except (RecursionError, ValueError) as error:
        raise NoSuchText(f"no TOML that can be read: {error}") from error
