"""All rules, of every protocol. In: nothing. Out: RULES by their codes, those about some protocols, what they read.

Here is the table of contents: families in the order in which they run; each lists its own in `rules.py`. The page of a
rule is the docstring of its module (`DETECTORS[code].page`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from wirewitness.analyser.engine.rules.rule import Rule

if TYPE_CHECKING:
    from wirewitness.analyser.engine.outliers.populations import Population

# How codes of a family begin -> its folder, and the protocol that it is about, None for any. Importing the rules of a
# protocol takes as long as they do on a small capture, so nobody pays for those of another one.
_FAMILIES: Mapping[str, tuple[str, str | None]] = MappingProxyType({
    "CAP": ("network.rules.capture", None),
    "TCP": ("network.rules.tcp", None),
    "TLS": ("network.rules.tls", None),
    "NET": ("network.rules.net", None),
    "KAF": ("kafka.rules", "kafka"),
    "MQT": ("mqtt.rules", "mqtt"),
    "MON": ("mongo.rules", "mongo"),
})  # fmt: skip
# Protocols that say what is compared (`facts/populations.py`).
_COMPARED = ("kafka", "mqtt", "mongo")


@cache
def _family(beginning: str) -> Mapping[str, Rule]:
    """The rules whose codes begin so; none for an unknown beginning."""
    if beginning not in _FAMILIES:
        return {}
    rules: Iterable[Rule] = import_module(f"wirewitness.analyser.{_FAMILIES[beginning][0]}.rules").RULES
    return {rule.code: rule for rule in rules}


class _Rules(Mapping[str, Rule]):
    """All rules by their codes, imported as they are asked for."""

    def __getitem__(self, code: str) -> Rule:
        return _family(code[:3])[code]

    def __iter__(self) -> Iterator[str]:
        return (code for beginning in _FAMILIES for code in _family(beginning))

    def __len__(self) -> int:
        return sum(len(_family(beginning)) for beginning in _FAMILIES)


RULES: Mapping[str, Rule] = _Rules()


def rules_about(protocols: Collection[str | None]) -> list[Rule]:
    """The rules about any of these protocols, and those about connections, whatever they carry."""
    wanted = {None, *protocols}
    return [
        rule for beginning, (_, protocol) in _FAMILIES.items() if protocol in wanted
        for rule in _family(beginning).values()
    ]  # fmt: skip


def populations(protocols: Collection[str | None] = _COMPARED) -> tuple[Population, ...]:
    """What is compared for the table `stands_out`, whatever the protocol, and of these."""
    places = ("network", *(one for one in _COMPARED if one in protocols))
    modules = [import_module(f"wirewitness.analyser.{place}.facts.populations") for place in places]
    return tuple(one for module in modules for one in module.POPULATIONS)


def question_of(code: str) -> str:
    """Which of `QUESTIONS` a rule asks; empty for one that is not known."""
    return RULES[code].question if code in RULES else ""


def tables_needed(codes: Iterable[str] | None = None) -> frozenset[str]:
    """Tables that these rules look at (None: all rules). KeyError for an unknown code."""
    chosen = list(RULES.values()) if codes is None else [RULES[code] for code in codes]
    return frozenset(table for rule in chosen for table in rule.needs)
