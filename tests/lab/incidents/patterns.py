"""Incidents as patterns judge them, which need no code: `python -m tests.lab.incidents.patterns MADE OUTPUT`.

In: folders of incidents with capture.pcapng and truth.json. Out: OUTPUT/NAME.pcapng.zst for each and OUTPUT/
expected.json: name -> {"named": patterns, each in a finding above info, "not_named": patterns in none} or, where
nothing is wrong, {"silent": true}. Incidents whose truth has codes and no patterns are left out: `judge` knows them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.incidents.staged import accusing


def expected_of(truth: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a report must say of an incident, None where only codes say it."""
    if truth["healthy"]:
        return {"silent": True}
    if "must_say" not in truth:
        return None
    forbidden = [*truth["must_not_say"], *beside(truth)]
    return {"named": truth["must_say"], **({"not_named": forbidden} if forbidden else {})}


def beside(truth: Mapping[str, Any]) -> list[str]:
    """Return a pattern for findings that accuse the clients without a part in it; none where all feel it."""
    if truth.get("cluster_wide"):
        return []
    with_part = {(one["client_id"], one["address"]) for one in truth["affected"]["clients"]}
    known = [tuple(one.rsplit("@", 1)) for one in truth["facts"]["broker"]["clients"]]
    others = [client_id for client_id, address in known if (client_id, address) not in with_part]
    return [accusing(*others)] if others else []


def main(made: Path, output: Path) -> None:
    """Pack captures and write what is expected of them."""
    expected = {}
    output.mkdir(parents=True, exist_ok=True)
    for path in sorted(made.rglob("truth.json")):
        wanted = expected_of(json.loads(path.read_text()))
        if wanted is None:
            continue
        expected[path.parent.name] = wanted
        packed = output / f"{path.parent.name}.pcapng.zst"
        capture = path.parent / "capture.pcapng"
        if packed.exists() and packed.stat().st_mtime >= capture.stat().st_mtime:
            continue
        subprocess.run(["zstd", "-q", "-f", str(capture), "-o", str(packed)], check=True)
    (output / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
