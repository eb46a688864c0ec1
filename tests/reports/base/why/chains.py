"""Chains of samples and incidents, and what holds of every chain."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.base.times import ns_of
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.model import Chain, Link, Step
from wirewitness.reports.report.why.subjects import answer
from wirewitness.reports.report.why.tables import WHY_TABLES
from wirewitness.reports.report.why.walk import MOST_DEPTH, MOST_LINKS


@cache
def opened(name: str) -> Analysis:
    """A sample, or an incident by its name."""
    incident = SAMPLES / "incidents" / name / "capture.pcapng.zst"
    path = incident if incident.exists() else SAMPLES / f"{name}.pcapng"
    return wirewitness.read(str(path), tables=WHY_TABLES)


@cache
def truth(name: str) -> dict[str, Any]:
    """What the incident did, as those who made it wrote down."""
    found: dict[str, Any] = json.loads((SAMPLES / "incidents" / name / "truth.json").read_text())
    return found


@cache
def sample_facts(name: str) -> dict[str, Any]:
    """What the clients of a sample printed."""
    manifest = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())
    return next(one["facts"] for one in manifest["sample"] if one["file"] == f"{name}.pcapng")


def chains(name: str, *words: str, at_ns: int | None = None) -> list[Chain]:
    """What `why` answers."""
    return answer(Asking(opened(name), at_ns), words)


def culprit(name: str) -> str:
    """`client id@address` of who did it."""
    told = truth(name)["culprit"]
    return f"{told['client_id']}@{told['address']}"


def fault_ns(name: str) -> tuple[int, int | None]:
    """From when to when the fault lasted."""
    first, last = truth(name)["when"]
    return ns_of(first), None if last is None else ns_of(last)


def paths(step: Step) -> Iterator[tuple[Link, ...]]:
    """Every way from a link back to where its chain ends."""
    if not step.causes:
        yield (step.link,)
    for cause in step.causes:
        for path in paths(cause):
            yield step.link, *path


def kinds(chain: Chain) -> list[list[str]]:
    """The kinds of links of each way back."""
    return [[link.kind for link in path] for step in chain.steps for path in paths(step)]


def link(chain: Chain, kind: str) -> Link:
    """The first link of a kind."""
    return next(one for step in chain.steps for path in paths(step) for one in path if one.kind == kind)


def check(analysis: Analysis, chain: Chain) -> None:
    """What holds of every chain: it is bounded, goes back in time, and each link rests on rows that are there."""
    seen: list[tuple[object, ...]] = []

    def see(step: Step, depth: int) -> None:
        one = step.link
        seen.append((one.kind, *one.key))
        assert depth <= MOST_DEPTH
        assert one.rows or one.kind == "stored_offset", one
        assert (one.sure == "fact") == (not one.assumption), one
        assert step.causes or step.end or step.left_out, one
        for row in one.rows:
            found = analysis.sql(f"select count(*) as n from {row.table} where {row.where}").to_pylist()
            assert found[0]["n"] > 0, (one, row)
        for place in one.places:
            assert place.packet is not None or place.line is not None or place.message_id is not None, one
        for cause in step.causes:
            if cause.link.at_ns is not None and one.at_ns is not None:
                assert cause.link.at_ns <= max(one.at_ns, one.until_ns or 0) + 50_000_000, (one, cause.link)
            see(cause, depth + 1)

    for step in chain.steps:
        see(step, 0)
    assert len(seen) == len(set(seen)) <= MOST_LINKS
