"""What this session may open: captures of the command line, samples, and on this machine what was opened before.

In: the script's argument, the URL; out: `Offer`s.
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import NamedTuple

import streamlit as st

from wirewitness.app.dashboard import server_state
from wirewitness.app.dashboard.live import live_runs
from wirewitness.app.dashboard.offers import Offer, given_offer, recent, samples

# Captures of the command line, as one argument of the script.
GIVEN = "--given="


class Given(NamedTuple):
    """What the command line named. compare: two offers, to be looked at side by side."""

    offers: tuple[Offer, ...]
    private: bool
    compare: bool


def given() -> Given:
    """What the command line named, if anything."""
    told = next((one.removeprefix(GIVEN) for one in sys.argv[1:] if one.startswith(GIVEN)), "{}")
    found = _given(told)
    if told != "{}":
        st.session_state["ww_private"] = found.private
    return found


@lru_cache(maxsize=4)
def _given(told: str) -> Given:
    """Asked for in every run of a page."""
    order = json.loads(told)
    paths, options, compare = order.get("paths", []), order.get("options", {}), order.get("compare", False)
    together = [[path] for path in paths] if compare else [paths] if paths else []
    offers = tuple(given_offer(one, options) for one in together)
    return Given(offers, order.get("private", False), compare)


def offered() -> list[Offer]:
    """All that this session may open; of uploads its own."""
    before = recent() if server_state.private() else []
    return [*given().offers, *samples(), *live_runs().offers(), *server_state.own_uploads(), *before]


def offer_of(capture: str) -> Offer | None:
    """The capture that the URL names by this id, if it is offered."""
    return next((offer for offer in offered() if offer.id == capture), None)
