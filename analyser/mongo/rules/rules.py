"""The rules about MongoDB, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.mongo.rules import (
    mon101_slow_command,
    mon102_command_error,
    mon103_unanswered,
    mon104_cursor_leak,
    mon105_n_plus_one,
    mon106_streaming_hello,
    mon107_connection_churn,
    mon108_framing,
    mon109_compression,
    mon110_legacy_opcode,
    mon111_transaction_open,
    mon112_retried_write,
    mon113_large_reply,
    mon114_pool_saturated,
    mon115_stale_read,
    mon116_stood_still,
)

RULES: tuple[Detector, ...] = (
    mon101_slow_command.DETECTOR,
    mon102_command_error.DETECTOR,
    mon103_unanswered.DETECTOR,
    mon104_cursor_leak.DETECTOR,
    mon105_n_plus_one.DETECTOR,
    mon106_streaming_hello.DETECTOR,
    mon107_connection_churn.DETECTOR,
    mon108_framing.DETECTOR,
    mon109_compression.DETECTOR,
    mon110_legacy_opcode.DETECTOR,
    mon111_transaction_open.DETECTOR,
    mon112_retried_write.DETECTOR,
    mon113_large_reply.DETECTOR,
    mon114_pool_saturated.DETECTOR,
    mon115_stale_read.DETECTOR,
    mon116_stood_still.DETECTOR,
)
