"""Which values lie apart. In: a population and its rows; out: candidates for lines, each with how sure it is.

A value is compared with the median of its likes: by their median absolute deviation and by its ratio to them; or with
what the row says to be usual. Sources: Iglewicz and Hoaglin, How to Detect and Handle Outliers (modified z-score).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from wirewitness.analyser.engine.outliers.populations import MANY_LIKES, Measure, Population

# The deviation of a normal distribution is so many times its median absolute deviation.
_DEVIATION = 1.4826
_LEAST_Z = 6.0
# With one other, and with two or three.
_RATIO_OF_TWO, _RATIO_OF_FEW = 10.0, 5.0
_SAMPLES_OF_FEW = 20
# Those furthest from the others, on either side of likes: more of them would be a group of its own.
_CANDIDATES = 3
_HIGHEST = 1_000.0

Row = Mapping[str, Any]


class Candidate(NamedTuple):
    """A value that lies apart. others: likes that it was compared with, 0 where with the subject's own usual value."""

    population: Population
    measure: Measure
    row: Row
    value: float
    usual: float
    others: int
    score: float


def candidates(population: Population, rows: Sequence[Row]) -> Iterator[Candidate]:
    """All values of these rows that lie apart."""
    for measure in population.measures:
        alike: dict[str, list[Row]] = {}
        for row in rows:
            alike.setdefault(str(row[measure.likes]), []).append(row)
        for likes in alike.values():
            counted = [row for row in likes if _counts(row, measure)]
            found = _with_own(measure, counted) if measure.usual else _among_likes(measure, counted)
            for row, value, usual, others, ratio in found:
                yield Candidate(
                    population, measure, row, value, usual, others, _score(measure, ratio, row["samples"], others)
                )


def _counts(row: Row, measure: Measure) -> bool:
    value, usual = row[measure.value], row[measure.usual] if measure.usual else 0
    known = value is not None and usual is not None and math.isfinite(value) and math.isfinite(usual)
    return known and row["samples"] >= measure.samples


def _with_own(measure: Measure, rows: Iterable[Row]) -> Iterator[tuple[Row, float, float, int, float]]:
    for row in rows:
        value, usual = float(row[measure.value]), float(row[measure.usual])
        ratio = _ratio(value, usual, measure.floor)
        if value - usual > measure.floor and ratio > measure.ratio:
            yield row, value, usual, 0, ratio


def _among_likes(measure: Measure, rows: Sequence[Row]) -> Iterator[tuple[Row, float, float, int, float]]:
    if len(rows) < 2:
        return
    ordered = sorted(rows, key=lambda row: float(row[measure.value]))
    values = [float(row[measure.value]) for row in ordered]
    highest = [*range(len(values))][-_CANDIDATES:]
    lowest = [*range(len(values))][:_CANDIDATES] if measure.low else []
    for place in dict.fromkeys((*reversed(highest), *lowest)):
        value, others = values[place], values[:place] + values[place + 1 :]
        usual = median(others)
        ratio = _ratio(max(value, usual), min(value, usual), measure.floor)
        apart = abs(value - usual) > measure.floor and ratio > _ratio_needed(measure, rows)
        if apart and (value > usual or measure.low) and _z(value, usual, others, measure.floor) > _LEAST_Z:
            yield ordered[place], value, usual, len(others), ratio


def _ratio_needed(measure: Measure, rows: Sequence[Row]) -> float:
    """How far apart a value has to be; without end where there is too little behind the few values."""
    others, behind = len(rows) - 1, min(row["samples"] for row in rows)
    if others >= MANY_LIKES:
        return measure.ratio
    if others == 1:
        return max(_RATIO_OF_TWO, measure.ratio) if behind >= measure.two else math.inf
    return max(_RATIO_OF_FEW, measure.ratio) if behind >= min(_SAMPLES_OF_FEW, measure.two) else math.inf


def _ratio(high: float, low: float, floor: float) -> float:
    return min(high / max(low, floor / 10, 1e-9), 1e9)


def _z(value: float, usual: float, others: Sequence[float], floor: float) -> float:
    """In deviations of the others; likes that are all the same deviate by a twentieth, or the floor's third, anyway."""
    deviation = _DEVIATION * median(abs(one - usual) for one in others)
    return abs(value - usual) / max(deviation, 0.05 * abs(usual), 0.3 * floor, 1e-9)


def _score(measure: Measure, ratio: float, samples: int, others: int) -> float:
    """How sure: the further apart and the more behind it, the surer."""
    apart, behind = min(ratio, _HIGHEST), min(samples + 10 * others, _HIGHEST)
    return round(measure.weight * math.log10(1 + apart) * math.log10(1 + behind), 3)
