"""Some incidents judged whole, with the start cut away and with 1 % loss, and the table of it: for `make lab-test`.

In: a folder of incidents, a name. Out: verdicts; WORK_DIR/judged/NAME.md has the table.
"""

from __future__ import annotations

from pathlib import Path

from tests.lab.incidents import judge, vary
from tests.lab.incidents.rules_table import markdown, rules
from tests.lab.incidents.verdict import Verdict
from tests.lab.places import WORK_DIR

JUDGED = WORK_DIR / "judged"
VARIANTS = ("start-cut", "lossy")


def tried(folder: Path, name: str, seed: int = 1) -> list[Verdict]:
    """Judge what is in FOLDER, and variants made of it beside it; the table replaces that of the last time."""
    whole = judge.incidents([folder])
    varied = folder.with_name(f"{folder.name}-varied")
    for source in whole:
        for variant in VARIANTS:
            vary.make(source, variant, varied, seed)
    verdicts = [one for each in (*whole, *judge.incidents([varied])) for one in judge.judged(each)]
    JUDGED.mkdir(parents=True, exist_ok=True)
    (JUDGED / f"{name}.md").write_text(markdown(verdicts, rules(verdicts)))
    return verdicts


def table_of(name: str) -> str:
    """Return the table that was written last."""
    return (JUDGED / f"{name}.md").read_text()
