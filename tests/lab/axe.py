"""axe-core, which looks for what people with disabilities cannot read or use. In: a page in a browser; out: faults."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any, NamedTuple

from playwright.sync_api import Page

from tests.lab.clients import CLIENTS_DIR
from tests.lab.places import WORK_DIR
from tests.lab.processes import LabError, run

_SOURCE = CLIENTS_DIR / "node_axe"
_WORK = WORK_DIR / "node-axe"
_RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ html, any, all, none }) => {
      const why = [...any, ...all, ...none].map((one) => one.message);
      return [id, impact, html.slice(0, 200), why[0] || ""];
    }));
}"""


class Fault(NamedTuple):
    """rule: of axe-core. impact: minor, moderate, serious, critical. element: its markup. why: a sentence."""

    rule: str
    impact: str
    element: str
    why: str


def faults(page: Page) -> list[Fault]:
    """What axe-core finds on the page as it is now."""
    page.evaluate(axe_script())
    found: list[list[Any]] = page.evaluate(_RUN)
    return [Fault(*map(str, one)) for one in found]


@cache
def axe_script() -> str:
    """The script; npm fetches exactly what the lock file names."""
    _WORK.mkdir(parents=True, exist_ok=True)
    script = _WORK / "node_modules" / "axe-core" / "axe.min.js"
    lock, stamp = _SOURCE / "package-lock.json", _WORK / "lock.stamp"
    if not (script.is_file() and stamp.exists() and stamp.read_text() == lock.read_text()):
        for path in _SOURCE.iterdir():
            shutil.copy(path, _WORK / path.name)
        run(["npm", "ci"], cwd=_WORK)
        stamp.write_text(lock.read_text())
    if not script.is_file():
        raise LabError("npm has not fetched axe-core")
    return script.read_text("utf-8")
