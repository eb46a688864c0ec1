"""The rules about TCP, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.network.rules.tcp import (
    tcp101_retransmissions,
    tcp102_zero_window,
    tcp103_reset,
    tcp104_handshake,
    tcp105_delayed_ack,
    tcp106_window_limited,
    tcp107_address_twice,
    tcp108_large_segments_lost,
)

RULES: tuple[Rule, ...] = (
    tcp101_retransmissions.RULE,
    tcp102_zero_window.RULE,
    tcp103_reset.RULE,
    tcp104_handshake.RULE,
    tcp105_delayed_ack.RULE,
    tcp106_window_limited.RULE,
    tcp107_address_twice.RULE,
    tcp108_large_segments_lost.RULE,
)
