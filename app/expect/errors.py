"""What is wrong with rules. In: a sentence. Out: an exception for whoever shows it."""

from __future__ import annotations


class RulesError(ValueError):
    """Rules that cannot be checked: one line on what to mend; hints follow on lines of their own."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.hints = hints
