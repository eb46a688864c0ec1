"""Which rules a sample must make fire, as MANIFEST.toml says.

In: an entry of the manifest. Out: codes; without those that have no rule, and none at all where nothing decodes the
sample's protocol, since the lab may know a protocol before the analyser does.
"""

from __future__ import annotations

from typing import Any

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.dissectors.registry import PROTOCOLS


def expected_codes(entry: dict[str, Any]) -> set[str]:
    """The codes above info that this sample must have, and no others."""
    return set(entry["expected_detectors"]) & set(RULES) if entry["protocol"] in PROTOCOLS else set()
