"""The highest commits between two others, against a look at each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.frame import numbered
from wirewitness.analyser.kafka.rules.commit_columns import Highest

COMMITS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5) | st.integers(2**62, 2**62 + 2)), min_size=2)


def plainly(committers: list[int], offsets: list[int], others: list[int], since: int, until: int) -> int:
    """Among these committers, the latest ones first, the highest; of one the later of equal ones."""
    best = -1
    for other in others:
        rows = [row for row in range(since + 1, until) if committers[row] == other]
        highest = max(rows, key=lambda row: (offsets[row], row), default=-1)
        if highest >= 0 and (best < 0 or offsets[highest] > offsets[best]):
            best = highest
    return best


@given(told=COMMITS, most=st.integers(1, 5), data=st.data())
def test_rows_between_two_commits(told: list[tuple[int, int]], most: int, data: st.DataObject) -> None:
    who: Integers = numbered(np.array([one for one, _ in told], np.int64))
    committers, offsets = who.tolist(), [offset for _, offset in told]
    until = sorted(data.draw(st.lists(st.integers(1, len(told) - 1), min_size=1)))
    since = [data.draw(st.integers(0, row - 1)) for row in until]
    asked = who[until], np.array(since, np.int64), np.array(until, np.int64)
    highest = Highest(who, np.array(offsets, np.int64))
    ways = [*zip(since, until, strict=True)]
    assert highest.by_themselves(*asked).tolist() == [
        plainly(committers, offsets, [committers[row]], after, row) for after, row in ways
    ]
    latest = [[*dict.fromkeys(one for one in reversed(committers[:row]) if one != committers[row])] for row in until]
    assert highest.by_others(*asked, most=most).tolist() == [
        plainly(committers, offsets, others[:most], after, row)
        for others, (after, row) in zip(latest, ways, strict=True)
    ]
