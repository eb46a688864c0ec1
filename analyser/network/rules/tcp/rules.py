"""The rules about TCP, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.network.rules.tcp import (
    tcp101_retransmissions,
    tcp102_zero_window,
    tcp103_reset,
    tcp104_handshake,
    tcp105_delayed_ack,
    tcp106_window_limited,
)

RULES: tuple[Detector, ...] = (
    tcp101_retransmissions.DETECTOR,
    tcp102_zero_window.DETECTOR,
    tcp103_reset.DETECTOR,
    tcp104_handshake.DETECTOR,
    tcp105_delayed_ack.DETECTOR,
    tcp106_window_limited.DETECTOR,
)
