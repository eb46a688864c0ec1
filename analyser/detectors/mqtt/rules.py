"""The rules about MQTT, a line for each, in the order in which they run."""

from __future__ import annotations

from analyser.detectors.detector import Detector
from analyser.detectors.mqtt import (
    mqt101_not_connected,
    mqt102_takeover_loop,
    mqt103_keep_alive,
    mqt104_ping_unanswered,
    mqt105_qos_incomplete,
    mqt106_dup_misuse,
    mqt107_resend,
    mqt108_in_flight,
    mqt109_packet_too_large,
    mqt110_topic_alias,
    mqt111_refused,
    mqt112_bad_topic,
    mqt113_packet_id,
    mqt114_will_fires,
    mqt115_undelivered,
    mqt116_retained_storm,
    mqt117_malformed,
    mqt119_session_lost,
)

RULES: tuple[Detector, ...] = (
    mqt101_not_connected.DETECTOR,
    mqt102_takeover_loop.DETECTOR,
    mqt103_keep_alive.DETECTOR,
    mqt104_ping_unanswered.DETECTOR,
    mqt105_qos_incomplete.DETECTOR,
    mqt106_dup_misuse.DETECTOR,
    mqt107_resend.DETECTOR,
    mqt108_in_flight.DETECTOR,
    mqt109_packet_too_large.DETECTOR,
    mqt110_topic_alias.DETECTOR,
    mqt111_refused.DETECTOR,
    mqt112_bad_topic.DETECTOR,
    mqt113_packet_id.DETECTOR,
    mqt114_will_fires.DETECTOR,
    mqt115_undelivered.DETECTOR,
    mqt116_retained_storm.DETECTOR,
    mqt117_malformed.DETECTOR,
    mqt119_session_lost.DETECTOR,
)
