"""What a report must say of an incident, in patterns, where no codes of rules are known yet.

In: names, partitions, clients, and words of a class of fault. Out: regular expressions over a finding's whole text.
Any right wording is to fit: a pattern asks for the culprit's name and for one of many words for what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

SENTENCE = r'(?:[^{"]*|\{.*"sentence": "[^"]*)'  # up to a word of it: a finding's text begins with it; or as JSON
REPLICAS = "replica lags"  # what is wrong where a broker is alone


class Named(Protocol):
    """A client of an incident."""

    @property
    def client_id(self) -> str: ...
    @property
    def address(self) -> str: ...


def name(word: str) -> str:
    """Return a pattern of a name, not as a part of a longer one."""
    return rf"(?<![\w.-]){re.escape(word)}(?![\w-]|\.\w)"


def partition(topic: str, *numbers: int) -> str:
    """Return a pattern of any of these partitions, said as topic-number or in two fields."""
    which = "|".join(map(str, numbers))
    spelled = rf"(?<![\w.-]){re.escape(topic)}-(?:{which})(?!\d)"
    return rf"(?:{spelled}|{name(topic)}.*\"partition\": (?:{which})\b)"


def client(one: Named) -> str:
    """Return a pattern of a client's id or address."""
    return any_of(name(one.client_id), name(one.address))


def any_of(*patterns: str) -> str:
    """Return a pattern of any of these."""
    return f"(?:{'|'.join(patterns)})"


def sentence(who: Sequence[str], what: str) -> str:
    """Return a pattern of a finding that says all of WHO, and WHAT in its sentence, in any order.

    Names of files stand among a finding's numbers, so that words there say nothing.
    """
    return "(?i)^" + "".join(f"(?=.*(?:{one}))" for one in who) + f"(?={SENTENCE}(?:{what}))"


def called(*words: str) -> list[str]:
    """Return the patterns of names."""
    return [name(word) for word in words]


def saying(*needed: str | Sequence[str]) -> str:
    """Return a pattern for a finding that says of each in NEEDED one wording, each a regular expression."""
    wordings = [[one] if isinstance(one, str) else one for one in needed]
    return "(?i)" + "".join(f"(?=.*{any_of(*ways)})" for ways in wordings)


def accusing(*words: str) -> str:
    """Return a pattern for a finding whose sentence begins with one of these names: it is said to have done it."""
    return rf"(?i)^\w+ (?:\S+ ){{0,2}}{any_of(*called(*words))}"


def in_sentence(pattern: str) -> str:
    """Return a pattern that fits in a finding's sentence alone, not in its subject or numbers."""
    return rf'{"(?i)" if "(?i)" in pattern else ""}^[^{{"]*(?:{pattern.replace("(?i)", "")})'


def fits(pattern: str, text: str) -> bool:
    """Tell whether a finding's text fits a pattern."""
    return re.search(pattern, text.replace("\n", " ")) is not None
