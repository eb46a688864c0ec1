"""`wirewitness detectors`: the rules that findings come from. Without a code the list; with one its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.output import listing, terminal_width, write_text
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.names import checked_name

if TYPE_CHECKING:
    from wirewitness.analyser.engine.rules.rule import Rule


@click.command()
@click.argument("code", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def detectors(code: str | None, form: str, debug: bool) -> Status:
    """List the detectors, or show the page of CODE: what it finds, how it decides, when it is wrong.

    \b
    Examples:
      wirewitness detectors
      wirewitness detectors KAF101
      wirewitness detectors offset-regression --format json
    """
    known = {rule.code: rule for rule in _registered()}
    selected = [known[_code(code, known)]] if code else list(known.values())
    if form == "json":
        write_text(json.dumps([_as_json(rule) for rule in selected], indent=2, ensure_ascii=False) + "\n")
    else:
        write_text(_page(selected[0]) if code else _list(selected))
    return Status.DONE


def _registered() -> list[Rule]:
    from wirewitness.analyser.analysis.all_rules import RULES

    return sorted(RULES.values(), key=lambda rule: rule.code)


def _code(text: str, known: dict[str, Rule]) -> str:
    by_name = {rule.name: code for code, rule in known.items()}
    if text.lower() in by_name:
        return by_name[text.lower()]
    return checked_name(text, known, "rule")


def _list(selected: list[Rule]) -> str:
    rows = ((d.code, d.name, d.severity, _first_sentence(d)) for d in selected)
    hint = "wirewitness detectors CODE shows how one decides and when it is wrong."
    return listing(("CODE", "NAME", "AT WORST", "FINDS"), rows, hint)


def _page(rule: Rule) -> str:
    from wirewitness.analyser.engine.rules.questions import QUESTIONS
    from wirewitness.reports.base.formats.pages import page_text

    thresholds = [f"    {name} = {default}" for name, default in rule.thresholds.items()] or ["    none"]
    reads = [f"    {table}: {', '.join(columns)}" for table, columns in rule.reads.items()]
    lines = [
        rule.page,
        "",
        "Question",
        f"    {QUESTIONS[rule.question]}",
        "",
        "Thresholds",
        *thresholds,
        "",
        "Reads",
        *reads,
    ]
    return page_text("\n".join(lines), terminal_width())


def _first_sentence(rule: Rule) -> str:
    """What stands under "Finds", up to its first full stop."""
    lines = rule.page.splitlines()
    start = lines.index("Finds") + 1 if "Finds" in lines else 0
    words: list[str] = []
    for line in lines[start:]:
        if not line.strip():
            break
        words.append(line.strip())
    return " ".join(words).partition(". ")[0].rstrip(".")


def _as_json(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "question": rule.question,
        "severity": rule.severity,
        "confidence": rule.confidence,
        "thresholds": rule.thresholds,
        "reads": {table: list(columns) for table, columns in rule.reads.items()},
        "page": rule.page,
    }
