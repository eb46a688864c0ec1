"""Contracts that come along. In: a name. Out: the expectations of its file in `ready/`."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from wirewitness.app.expect.errors import RulesError
from wirewitness.app.expect.kinds import Expectation
from wirewitness.app.expect.rules import expectations_of
from wirewitness.app.shared.names import near_names

_SUFFIX = ".toml"


class Ready(NamedTuple):
    """A contract: its name, the line that its file begins with, and its TOML."""

    name: str
    line: str
    text: str


def ready_contracts() -> dict[str, Ready]:
    """All of them by name."""
    found = {}
    for file in sorted(files("wirewitness.app.expect").joinpath("ready").iterdir(), key=lambda file: file.name):
        if file.name.endswith(_SUFFIX):
            text, name = file.read_text(encoding="utf-8"), file.name.removesuffix(_SUFFIX)
            found[name] = Ready(name, text.partition("\n")[0].removeprefix("#").strip(), text)
    return found


def ready_contract(name: str) -> list[Expectation]:
    """The expectations of one. RulesError for a name that none has."""
    known = ready_contracts()
    if name not in known:
        raise RulesError(
            f"{name}: neither a file nor a contract that comes along{near_names(name, known)}",
            f"known: {', '.join(known)}",
        )
    return expectations_of(name, name, known[name].text)
