"""Rows of what was changed by hand or by tools: topics, settings, rights, quotas, users, groups, records, the cluster.

In: a request of an admin API with its response (None when it was never answered). Out: kafka_admin_changes rows, one
for each thing that was to be changed. `CHANGES` says which function reads which API.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows import admin_cluster, admin_rights, admin_topics
from wirewitness.dissectors.kafka.rows.admin_change import Changes
from wirewitness.dissectors.kafka.rows.change_fields import ADMIN_CHANGES
from wirewitness.dissectors.kafka.rows.fields import Request, Response, placed_exchange_of
from wirewitness.dissectors.kafka.schema.api_keys import api_name

CHANGES: Mapping[int, Changes] = {
    19: admin_topics.create_topics,
    20: admin_topics.delete_topics,
    21: admin_topics.delete_records,
    30: admin_rights.create_acls,
    31: admin_rights.delete_acls,
    33: admin_cluster.alter_configs,
    34: admin_topics.alter_replica_log_dirs,
    37: admin_topics.create_partitions,
    38: admin_rights.create_token,
    39: admin_rights.renew_token,
    40: admin_rights.expire_token,
    42: admin_cluster.delete_groups,
    43: admin_topics.elect_leaders,
    44: admin_cluster.alter_configs,
    45: admin_topics.reassign,
    47: admin_cluster.delete_offsets,
    49: admin_rights.alter_quotas,
    51: admin_rights.alter_scram,
    57: admin_cluster.update_features,
    64: admin_cluster.unregister_broker,
    80: admin_cluster.add_voter,
    81: admin_cluster.remove_voter,
    91: admin_cluster.alter_share_offsets,
    92: admin_cluster.delete_share_offsets,
    94: admin_cluster.unregister_controller,
}


def change_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_admin_changes of one exchange."""
    rows = out.rows("kafka_admin_changes")
    asked = request.value
    if rows is None or asked is None:
        return
    answer = None if response is None else response.value
    same = {
        **placed_exchange_of(request, response),
        "client_id": request.client_id,
        "operation": api_name(request.api_key),
        "validate_only": bool(asked.get("validate_only", False)),
    }
    for change in CHANGES[request.api_key](asked, answer):
        rows.append(ADMIN_CHANGES.row(**same, **change._asdict()))
