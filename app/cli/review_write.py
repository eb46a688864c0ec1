"""Entries into the file of a review. In: its text and new entries. Out: the text with them, all else as it was.

Entries stand in the order of rule and subject, so that two people who add some at the same time rarely write at the
same place, and comments stay where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wirewitness.app.cli.review_file import OPTION, TABLE, entries_of
from wirewitness.app.shared.failure import CallerError

if TYPE_CHECKING:
    from wirewitness.reports.base.questions.reviews import Entry

_HEAD = """\
# Findings that somebody has looked at: wirewitness folds them away until they grow.
# Change it as you like: `*` in a value stands for any text, and a pair of the subject that is left out is not compared.
"""
_BEGIN = re.compile(rf"^\[\[ *{TABLE} *\]\][^\n]*$", re.MULTILINE)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def with_entries(path: str, text: str, added: Sequence[Entry]) -> str:
    """The text with these entries, each in the place of an entry that has its key, else where it sorts.

    CallerError where the file is written so that nothing can be added to it by itself.
    """
    head, blocks = _blocks(text)
    entries = entries_of(path, text)
    if len(blocks) != len(entries):
        raise CallerError(f"{OPTION} {path}: nothing can be added to it: its entries do not all begin with [[{TABLE}]]")
    placed = [(entry.key, block) for entry, block in zip(entries, blocks, strict=True)]
    for entry in added:
        same = next((n for n, (key, _) in enumerate(placed) if key == entry.key), None)
        if same is not None:
            placed[same] = (entry.key, _comments(placed[same][1]) + block_of(entry))
            continue
        after = next((n for n, (key, _) in enumerate(placed) if key > entry.key), len(placed))
        placed.insert(after, (entry.key, block_of(entry)))
    told = "\n".join([(head or _HEAD).rstrip("\n") + "\n", *(block.rstrip("\n") + "\n" for _, block in placed)])
    if sorted(one.key for one in entries_of(path, told)) != sorted(key for key, _ in placed):
        raise CallerError(f"{OPTION} {path}: nothing can be added to it: write its entries as wirewitness does")
    return told


def block_of(entry: Entry) -> str:
    """An entry as the file has it."""
    subject = [(f"subject.{_key(name)}", _value(value)) for name, value in entry.subject.items()]
    lines = [
        ("rule", _value(entry.rule)),
        *subject,
        *([("who", _list(entry.who))] if entry.who else []),
        ("note", _value(entry.note)),
        ("by", _value(entry.by)),
        ("date", entry.date.isoformat()),
        ("severity", _value(entry.severity)),
        ("measure", _value(entry.measure)),
        ("size", str(entry.size)),
        *([("places", _list(entry.places))] if entry.places else []),
    ]
    return "\n".join([f"[[{TABLE}]]", *(f"{name} = {value}" for name, value in lines)]) + "\n"


def _blocks(text: str) -> tuple[str, list[str]]:
    """What stands before the first entry, and the entries, each with the comments right above it."""
    begins = [_with_comments(text, found.start()) for found in _BEGIN.finditer(text)]
    if not begins:
        return text, []
    return text[: begins[0]], [text[a:b] for a, b in zip(begins, [*begins[1:], len(text)], strict=True)]


def _with_comments(text: str, begin: int) -> int:
    """Where the comments begin that stand right above this place, without an empty line between."""
    while begin:
        line = text.rfind("\n", 0, begin - 1) + 1
        if not text[line:begin].startswith("#"):
            break
        begin = line
    return begin


def _comments(block: str) -> str:
    """Lines of an entry that are comments only, above the new one."""
    return "".join(f"{line}\n" for line in block.splitlines() if line.startswith("#"))


def _list(values: Sequence[str]) -> str:
    """On one line while it is short, else a line for each value: so that merges see single values."""
    line = f"[{', '.join(map(_value, values))}]"
    return line if len(line) <= 100 else "[\n" + "".join(f"    {_value(value)},\n" for value in values) + "]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(text: str) -> str:
    """A basic string of TOML: what nobody sees is spelled out."""
    return "".join(_spelled(json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)))


def _spelled(quoted: str) -> Iterator[str]:
    for letter in quoted:
        number = ord(letter)
        yield letter if letter.isprintable() else f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
