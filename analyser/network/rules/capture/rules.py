"""The rules about the capture itself, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.network.rules.capture import (
    cap101_gaps,
    cap102_one_sided_flows,
    cap103_snaplen_cuts,
    cap104_doubled_packets,
    cap105_kernel_drops,
    cap106_encrypted_share,
    cap107_undecoded_messages,
    cap108_clocks,
)

RULES: tuple[Detector, ...] = (
    cap101_gaps.DETECTOR,
    cap102_one_sided_flows.DETECTOR,
    cap103_snaplen_cuts.DETECTOR,
    cap104_doubled_packets.DETECTOR,
    cap105_kernel_drops.DETECTOR,
    cap106_encrypted_share.DETECTOR,
    cap107_undecoded_messages.DETECTOR,
    cap108_clocks.DETECTOR,
)
