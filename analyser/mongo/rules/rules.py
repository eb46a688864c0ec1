"""The rules about MongoDB, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Rule
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
    mon117_unreachable_hosts,
)

RULES: tuple[Rule, ...] = (
    mon101_slow_command.RULE,
    mon102_command_error.RULE,
    mon103_unanswered.RULE,
    mon104_cursor_leak.RULE,
    mon105_n_plus_one.RULE,
    mon106_streaming_hello.RULE,
    mon107_connection_churn.RULE,
    mon108_framing.RULE,
    mon109_compression.RULE,
    mon110_legacy_opcode.RULE,
    mon111_transaction_open.RULE,
    mon112_retried_write.RULE,
    mon113_large_reply.RULE,
    mon114_pool_saturated.RULE,
    mon115_stale_read.RULE,
    mon116_stood_still.RULE,
    mon117_unreachable_hosts.RULE,
)
