"""Verdicts as tables: by rule and by result. In: verdicts. Out: rows, Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.lab.incidents.verdict import Verdict

NAMED = ("named first", "named")
LONGEST_REASON = 260


def rules(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return a row for each rule: the incidents it is the first expected of, how many were named; its findings."""
    rows = []
    codes = {code for one in verdicts for code in (*one.expected[:1], *one.above_info) if not code.startswith("CAP")}
    for code in sorted(codes):
        meant = [one for one in verdicts if one.expected[:1] == [code]]
        named = [one for one in meant if one.result in NAMED]
        first = [one for one in meant if one.result == "named first"]
        right = sum(one.right.count(code) for one in verdicts)
        wrong = sum(reason.startswith(f"{code} ") for one in verdicts for reason in one.wrong)
        rows.append(
            {
                "code": code,
                "incidents": len(meant),
                "named_first": len(first),
                "named": len(named),
                "recall": len(named) / len(meant) if meant else None,
                "findings": right + wrong,
                "wrong": wrong,
                "precision": right / (right + wrong) if right + wrong else None,
            }
        )
    return rows


def share(value: float | None) -> str:
    """Return a share in per cent."""
    return "-" if value is None else f"{value:.0%}"


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the results, for plain captures and each kind of variant."""
    lines = []
    for variant in sorted({one.variant for one in verdicts}, key=str):
        of_kind = [one for one in verdicts if one.variant == variant]
        results = Counter(one.result for one in of_kind)
        wrong = sum(len(one.wrong) for one in of_kind)
        told = ", ".join(f"{number} {name}" for name, number in results.most_common())
        lines.append(f"- {variant or 'whole captures'}: {len(of_kind)} runs: {told}; {wrong} wrong accusations")
    return lines


def markdown(verdicts: Sequence[Verdict], table: Sequence[dict[str, Any]]) -> str:
    """Return everything as Markdown."""
    lines = ["# Judged", "", *summary(verdicts), "", "## Rules", "",
             "incidents: those whose first expected code it is; findings: above info", "",
             "| rule | incidents | named first | named | recall | findings | wrong | precision |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    lines += [rule_line(row) for row in table]
    lines += ["", "## Not named", ""]
    lines += [not_named(one) for one in verdicts if one.result in ("missed", "misled", "partly", "named", "fault")]
    lines += ["", "## Wrong accusations", ""]
    lines += sorted(f"- {reason[:LONGEST_REASON]} ({one.name})" for one in verdicts for reason in one.wrong)
    return "\n".join(lines) + "\n"


def not_named(one: Verdict) -> str:
    """Return the line of an incident whose culprit the first finding does not name."""
    expected, said = ",".join(one.expected), ",".join(one.codes[:6]) or "nothing"
    return f"- {one.result}: {one.name}: {one.fault}; expected {expected}, said {said}"


def rule_line(row: dict[str, Any]) -> str:
    """Return a rule's line of the table."""
    numbers = (row["incidents"], row["named_first"], row["named"], share(row["recall"]))
    return (
        f"| {' | '.join(map(str, (row['code'], *numbers, row['findings'], row['wrong'], share(row['precision']))))} |"
    )
