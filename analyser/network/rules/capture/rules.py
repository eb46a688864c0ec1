"""The rules about the capture itself, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Rule
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

RULES: tuple[Rule, ...] = (
    cap101_gaps.RULE,
    cap102_one_sided_flows.RULE,
    cap103_snaplen_cuts.RULE,
    cap104_doubled_packets.RULE,
    cap105_kernel_drops.RULE,
    cap106_encrypted_share.RULE,
    cap107_undecoded_messages.RULE,
    cap108_clocks.RULE,
)
