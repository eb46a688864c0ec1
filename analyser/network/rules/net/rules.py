"""The rules about connections of all protocols, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.network.rules.net import net101_idle_dropped, net103_retry_storm, net104_reconnect_herd

RULES: tuple[Detector, ...] = (
    net101_idle_dropped.DETECTOR,
    net103_retry_storm.DETECTOR,
    net104_reconnect_herd.DETECTOR,
)
