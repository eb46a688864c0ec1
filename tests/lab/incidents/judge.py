"""Judge wirewitness by incidents: was the culprit named, was anybody accused who did nothing.

In: folders of incidents (capture.pcapng, or .pcapng.zst, and truth.json). Out: a line for each incident, a table of
rules; --json for programs. What counts is said by `verdict.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import wirewitness
from tests.lab.incidents.rules_table import markdown, rules
from tests.lab.incidents.sides import guilty
from tests.lab.incidents.verdict import Said, Verdict, verdict, wrong_with
from wirewitness.reports.base.questions.causes import Finding, causes, findings


def incidents(paths: Iterable[Path]) -> list[Path]:
    """Return the folders with a capture and a truth, below PATHS."""
    return sorted(truth.parent for path in paths for truth in path.rglob("truth.json") if capture_of(truth.parent))


def capture_of(folder: Path) -> Path | None:
    """Return an incident's capture, None where it has none."""
    return next((path for suffix in ("", ".zst") if (path := folder / f"capture.pcapng{suffix}").exists()), None)


def said_of(capture: Path) -> list[Said]:
    """Return what the report says of a capture, in its order: worst cause first."""
    with wirewitness.read(capture) as analysis:
        found = [finding for cause in causes(findings(analysis)) for finding in cause.findings]
        if analysis.failures:
            raise analysis.failures[0].error
    return [Said(one.code, one.severity, whole_text(one), one.sentence) for one in found]


def whole_text(one: Finding) -> str:
    """Return all words and numbers of a finding."""
    return f"{one.subject}\n{one.sentence}\n{json.dumps(one.numbers, default=str)}"


def judged(folder: Path) -> list[Verdict]:
    """Judge one incident, or the two in one capture; a fault of wirewitness itself is a verdict, too."""
    truth = json.loads((folder / "truth.json").read_text())
    capture = capture_of(folder)
    assert capture is not None, f"{folder} has no capture"
    try:
        said = said_of(capture)
    except Exception as error:  # whatever it is, it is told
        return [
            Verdict(
                folder.name, truth["fault"], truth.get("variant"), "fault", [], [], [repr(error)], truth["expected"], []
            )
        ]
    if "second" not in truth:
        return [verdict(folder.name, truth, said)]
    first, other = truths_of_two(truth)
    second = verdict(folder.name, other, of_this(other, first, said))
    return [verdict(folder.name, first, of_this(first, other, said)), second._replace(wrong=[])]


def truths_of_two(truth: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the truths of two incidents in one capture; what comes first may be the other's, and blame its side."""
    sides = sorted(guilty(truth) | guilty(truth["second"]))
    return {**truth, "sides": sides}, {**truth["second"], "variant": truth["variant"], "sides": sides}


def of_this(truth: dict[str, Any], other: dict[str, Any], said: Sequence[Said]) -> list[Said]:
    """Return what is said of one of two incidents: what is true of the other alone is left out."""
    return [one for one in said if wrong_with(other, one) or not wrong_with(truth, one)]


def all_verdicts(folders: Sequence[Path], processes: int) -> Iterator[list[Verdict]]:
    """Judge incidents, some at a time, in their order."""
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(judged, folders)


def line(one: Verdict) -> str:
    """Return an incident's line."""
    wrong = f"  WRONG {'; '.join(one.wrong)}" if one.wrong else ""
    said, expected = ",".join(one.codes[:4]) or "-", ",".join(one.expected) or "-"
    return f"{one.result:14} {one.name:34} said {said:28} expected {expected}{wrong}"


def main(words: Sequence[str]) -> int:
    """Run the command line; exit status 1 when anybody was accused wrongly or missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.incidents judge", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", type=Path, help="write tables to this file, too")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(words)
    verdicts: list[Verdict] = []
    for several in all_verdicts(incidents(options.folders), options.processes):
        verdicts += several
        for one in several if not options.json else ():
            print(line(one), flush=True)
    table: list[dict[str, Any]] = rules(verdicts)
    text = markdown(verdicts, table)
    if options.markdown:
        options.markdown.write_text(text)
    print(
        json.dumps({"incidents": [one._asdict() for one in verdicts], "rules": table}, indent=1)
        if options.json
        else text
    )
    return 1 if any(one.wrong or one.result in ("missed", "misled", "fault") for one in verdicts) else 0
