"""axe-core, which looks for what people with disabilities cannot read or use. In: a page in a browser; out: faults."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from playwright.sync_api import Page

from tests.lab.clients.node import fetched

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
    """The script."""
    return (fetched("node_axe") / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
