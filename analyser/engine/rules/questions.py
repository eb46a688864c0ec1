"""The questions that rules ask. Many faults, few questions: each rule names the one that it asks of the facts.

In: nothing. Out: QUESTIONS, by the word that a rule declares.
"""

from __future__ import annotations

QUESTIONS = {
    "stalled": "What does not move although it should?",
    "went back": "What went back?",
    "concurrent": "Who acts on one thing at the same time?",
    "refused": "Who was refused, and can it heal?",
    "repeated": "What is repeated without effect?",
    "ended": "Who ended it, and with what pending?",
    "waiting": "Who waits for whom?",
    "growing": "What grows or is wasted?",
    "differs": "Whose content or protocol differs?",
    "capture": "What can this capture not show?",
}
