"""Requests that got no answer although one was due, as SQL over the selected rows.

A request has none at the end of the capture, in a flow with gaps or with one direction only: nothing is known of it.
One that waits for data or news, or only asks, is open whenever a client leaves: that is nothing. The handshake of an
MQTT publish goes on in the session's next connection.
"""

from __future__ import annotations

# A client that leaves does not wait for these: what they ask or wait for changes nothing.
_LEFT_OPEN = (
    "Fetch", "ShareFetch", "Metadata", "Heartbeat", "ConsumerGroupHeartbeat", "ListOffsets", "FindCoordinator",
    "JoinGroup", "SyncGroup", "OffsetFetch", "PINGREQ", "getMore", "hello", "isMaster", "ismaster",
)  # fmt: skip
_LEAVES_WITHIN_S = 5
_MOST_WAIT_S = 30

UNANSWERED = f"""
    select e.exchange_id, e.protocol, e.cluster_id, e.operation, e.client_id, e.client_address, e.ts
    from exchanges e join flows f on f.flow_id = e.flow_id
    where e.status = 'unanswered' and f.gap_bytes = 0
      and (f.bytes_to_client > 0 or f.handshake = 'complete')
      and case
        when f.ts_closed is null
          then e.awaitable is not true and epoch_ns(f.observed_until) - epoch_ns(e.ts) > {_MOST_WAIT_S}e9
        when f.closed_by = 'client' and e.operation in {_LEFT_OPEN}
          then epoch_ns(f.ts_closed) - epoch_ns(e.ts)
               > (case when e.awaitable then {_MOST_WAIT_S}e9 else {_LEAVES_WITHIN_S}e9 end)
        else not (e.protocol = 'mqtt' and e.operation = 'PUBLISH') end"""
# Of rows of exchanges: what NO ANSWER counts.
IS_UNANSWERED = f"exchange_id in (select exchange_id from ({UNANSWERED}) as missing)"
