"""The rules about connections of all protocols, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.network.rules.net import net101_idle_dropped, net103_retry_storm, net104_reconnect_herd

RULES: tuple[Rule, ...] = (
    net101_idle_dropped.RULE,
    net103_retry_storm.RULE,
    net104_reconnect_herd.RULE,
)
