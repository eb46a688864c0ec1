"""What the members of share groups (KIP-932) were given and what they said of it. In: conditions. Out: SELECTs.

Records are counted by the ranges of offsets that answers name. An acknowledgement counts where it was accepted.
"""

from __future__ import annotations

_SPAN = "(last_offset - first_offset + 1)"
_TOLD = f"""
    select client_id, client_address, coalesce(topic, topic_id) as topic, partition, records_count as fetched,
           case when delivery_count > 1 then records_count else 0 end as redelivered, delivery_count,
           0 as accepted, 0 as released, 0 as rejected, (coalesce(error_code, 0) <> 0)::integer as failed
    from kafka_share_fetches where {{where}}
    union all
    select client_id, client_address, coalesce(topic, topic_id), partition, 0, 0, null,
           case when acknowledge_type = 'accept' and error_code = 0 then {_SPAN} else 0 end,
           case when acknowledge_type = 'release' and error_code = 0 then {_SPAN} else 0 end,
           case when acknowledge_type = 'reject' and error_code = 0 then {_SPAN} else 0 end,
           (coalesce(error_code, 0) <> 0)::integer
    from kafka_share_acknowledges where {{where}}"""
_SUMS = """
           coalesce(sum(fetched), 0)::bigint as fetched, coalesce(sum(redelivered), 0)::bigint as redelivered,
           coalesce(sum(accepted), 0)::bigint as accepted, coalesce(sum(released), 0)::bigint as released,
           coalesce(sum(rejected), 0)::bigint as rejected, coalesce(sum(failed), 0)::bigint as errors"""

# One row: sums over the rows that fit `{where}`.
SHARE_COUNTS = f"select {_SUMS} from ({_TOLD}) as told"
_DELIVERIES = f"""
    select client_id, client_address, topic, partition, max(delivery_count) as most_deliveries, {_SUMS}
    from ({_TOLD}) as told group by client_id, client_address, topic, partition"""


def deliveries_of(where: str) -> str:
    """A SELECT: one row for each client and partition. where: which group, as `commits.of_group` says it."""
    return _DELIVERIES.format(where=where)
