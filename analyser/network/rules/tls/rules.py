"""The rules about TLS, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.network.rules.tls import (
    tls101_handshake_failed,
    tls102_certificate,
    tls103_weak,
    tls104_slow_handshake,
    tls105_no_resumption,
    tls106_wrong_port,
    tls107_client_certificate,
)

RULES: tuple[Rule, ...] = (
    tls101_handshake_failed.RULE,
    tls102_certificate.RULE,
    tls103_weak.RULE,
    tls104_slow_handshake.RULE,
    tls105_no_resumption.RULE,
    tls106_wrong_port.RULE,
    tls107_client_certificate.RULE,
)
