"""The rules about Kafka, a line for each, in the order in which they run."""

from __future__ import annotations

from analyser.detectors.detector import Detector
from analyser.detectors.kafka import (
    kaf101_dual_committer,
    kaf102_stuck_committer,
    kaf103_offset_regression,
    kaf104_non_owner_commit,
    kaf105_fenced_commits,
    kaf106_simple_consumer,
    kaf114_resume_behind_commit,
    kaf118_commit_rejected,
    kaf119_poison_loop,
    kaf121_records_skipped,
    kaf201_producer_sequence,
    kaf203_transaction_stuck,
    kaf205_produce_rejected,
    kaf206_transactional_id_twice,
    kaf207_late_end_of_transaction,
    kaf307_corrupt_batch,
    kaf309_admin_change,
    kaf316_topic_recreated,
)

RULES: tuple[Detector, ...] = (
    kaf101_dual_committer.DETECTOR,
    kaf102_stuck_committer.DETECTOR,
    kaf103_offset_regression.DETECTOR,
    kaf104_non_owner_commit.DETECTOR,
    kaf105_fenced_commits.DETECTOR,
    kaf106_simple_consumer.DETECTOR,
    kaf114_resume_behind_commit.DETECTOR,
    kaf118_commit_rejected.DETECTOR,
    kaf119_poison_loop.DETECTOR,
    kaf121_records_skipped.DETECTOR,
    kaf201_producer_sequence.DETECTOR,
    kaf203_transaction_stuck.DETECTOR,
    kaf205_produce_rejected.DETECTOR,
    kaf206_transactional_id_twice.DETECTOR,
    kaf207_late_end_of_transaction.DETECTOR,
    kaf307_corrupt_batch.DETECTOR,
    kaf309_admin_change.DETECTOR,
    kaf316_topic_recreated.DETECTOR,
)
