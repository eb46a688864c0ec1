"""The rules about TLS, a line for each, in the order in which they run."""

from __future__ import annotations

from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.network.rules.tls import (
    tls101_handshake_failed,
    tls102_certificate,
    tls103_weak,
    tls104_slow_handshake,
    tls105_no_resumption,
    tls106_wrong_port,
    tls107_client_certificate,
)

RULES: tuple[Detector, ...] = (
    tls101_handshake_failed.DETECTOR,
    tls102_certificate.DETECTOR,
    tls103_weak.DETECTOR,
    tls104_slow_handshake.DETECTOR,
    tls105_no_resumption.DETECTOR,
    tls106_wrong_port.DETECTOR,
    tls107_client_certificate.DETECTOR,
)
