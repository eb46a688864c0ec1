"""Which detectors a scenario concerns, so that tests of hundreds of scenarios stay quick.

In: a scenario. Out: detectors.
"""

from __future__ import annotations

from analyser.context.stages import STAGE_OF
from analyser.detectors import DETECTORS
from analyser.detectors.framework import Detector
from tests.analyser.detectors.scenarios import Scenario


def concerned(scenario: Scenario) -> list[Detector]:
    """Detectors that read a table with rows; that the others are silent on empty tables is a test of its own."""
    filled = {table for table, rows in scenario.rows.items() if rows}
    filled |= {made for table in filled if table in STAGE_OF for made in STAGE_OF[table].makes}
    return [detector for detector in DETECTORS.values() if filled & set(detector.reads)]
