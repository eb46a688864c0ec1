"""Spans that are asked in the order of time give what comparing each with each gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.engine.rules.sweeps import Spans

TIMES = st.integers(0, 12)
OWNERS = st.sampled_from(["a", "b", "c", None])


@given(st.lists(st.tuples(TIMES, TIMES, OWNERS), max_size=12), TIMES, TIMES, OWNERS)
def test_who_was_there_is_what_comparing_all_would_tell(
    spans: list[tuple[int, int, str | None]], after: int, before: int, besides: str | None
) -> None:
    """Spans of damaged clocks, which end before they begin, among them."""
    met = {whose for start, end, whose in spans if start < before and end > after}
    assert Spans(spans).meets(after, before) == bool(met)
    assert Spans(spans).meets(after, before, besides=besides) == bool(met - {besides})
