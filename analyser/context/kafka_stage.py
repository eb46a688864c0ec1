"""The context of Kafka: owners, log ends and groups of commits and fetches; see `enrich.py`."""

from __future__ import annotations

from analyser.context.enrich import enrich
from analyser.context.stage import Stage

KAFKA_STAGE = Stage(
    makes=("kafka_offset_commits", "kafka_fetch_partitions"),
    reads=(
        "kafka_assignments",
        "kafka_group_events",
        "kafka_list_offsets",
        "kafka_produce_batches",
        "kafka_transactions",
        "kafka_partitions",
        "kafka_admin_changes",
    ),
    uses=("exchanges", "expert_infos"),
    run=enrich,
)
