"""What a program of its own needs to judge a report: captures beside expected.json, and the truth to read.

In: a folder of incidents (NAME/capture.pcapng, NAME/truth.json). Out: beside them NAME.pcapng.zst for each,
expected.json (NAME: patterns that a finding must fit, patterns that none above info may fit, silent) and TRUTH.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

from tests.lab.incidents import told


def strangers(truth: Mapping[str, Any]) -> list[str]:
    """Return a pattern of all clients and groups that have no part in the incident, if there are any."""
    if truth.get("cluster_wide"):
        return []  # all of them feel it
    facts, affected = truth["facts"], truth["affected"]
    own = {one["client_id"] for one in (*facts.get("clients", ()), *affected["clients"])}
    own |= {"admin-tool", "setup", "lab-look", "None"}
    clients = sorted({one.rpartition("@")[0] for one in facts["broker"]["clients"]} - own)
    if "question" in truth:  # of MQTT and MongoDB: what others suffer may be told, too
        return [told.accusing(*clients)] if clients else []
    groups = {one["group"] for one in facts["clients"] if one["group"]} | set(affected["groups"])
    names = [*clients, *sorted(set(truth["member_ids"]) - groups)]
    return [told.in_sentence(told.any_of(*told.called(*names)))] if names else []


def expected(truth: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is expected of a report; None: the truth has no patterns."""
    if truth["healthy"]:
        return {"silent": True}
    if "must_say" not in truth:
        return None
    never = [one if one.startswith("(?i)^") else told.in_sentence(one) for one in truth["must_not_say"]]
    never += strangers(truth)
    least = {} if truth.get("least", "warning") == "warning" else {"least": truth["least"]}
    return {"named": truth["must_say"], **({"not_named": never} if never else {}), **least}


def paragraph(name: str, truth: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Return the truth of an incident for people."""
    clients = [
        f"{one['client_id']} ({one['library']}, {one['address']}, group {one['group']}, {', '.join(one['topics'])})"
        for one in truth["facts"].get("clients", ())
    ]
    lines = [
        f"## {name}", "", f"- what happened: {truth['fault']}", f"- when: {truth['when']} of {truth['capture']}",
        f"- culprit: {json.dumps(truth['culprit'])}", f"- clients of the incident: {'; '.join(clients) or 'none'}",
        f"- must be said: {'nothing above info' if truth['healthy'] else wanted['named']}",
        f"- must not be said: {wanted.get('not_named', 'any accusation')}",
    ]  # fmt: skip
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.incidents expect", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(words).folder
    found, paragraphs = {}, []
    for path in sorted(folder.glob("*/truth.json")):
        name, truth = path.parent.name, json.loads(path.read_text())
        wanted = expected(truth)
        if wanted is None:
            continue
        found[name] = wanted
        paragraphs.append(paragraph(name, truth, wanted))
        packed = folder / f"{name}.pcapng.zst"
        if not packed.exists():
            packed.write_bytes(zstandard.compress((path.parent / "capture.pcapng").read_bytes(), 10))
    (folder / "expected.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "TRUTH.md").write_text("# What happened\n\n" + "\n\n".join(paragraphs) + "\n")
    print(f"{len(found)} incidents, {sum('silent' in one for one in found.values())} of them healthy")
    return 0
