"""MQT115 undelivered: a message did not reach a live subscriber.

Finds
    Messages whose topic matches a subscription that was live, and that the server did not send to it.

Why it matters
    Publisher and subscriber both see a healthy connection; only between them something is missing: an access rule
    that drops silently, a full queue, a filter that does not mean what was meant.

How it decides
    The subscription was granted (or carried over with a session) in the capture, the message was sent later and not
    refused, and no PUBLISH of the same topic and content went to that subscriber within 10 s (wait_s) while its
    connection was open and without gaps. One finding for each subscriber and filter (missing_least messages).

False alarms
    QoS 0 may be dropped by the server for a slow subscriber. A bridge or a cluster whose nodes have several
    addresses.

References
    MQTT 3.1.1 and 5.0: section 4.7 (filters), [MQTT-3.3.5-1] (3.1.1), section 4.6 (order), 4.8.2 (shared, 5.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import rows_of
from analyser.detectors.proof import Proof
from analyser.times import ms_text
from analyser.words import count, printable


def detect(frames: Frames, *, wait_s: float = 10.0, missing_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this subscriber and filter."""
    rows = rows_of(frames["mqtt_deliveries"])
    missing = [r for r in rows if r["status"] in ("missing", "left") and (r["waited_ms"] or 0) >= wait_s * 1000]
    if not missing or len(missing) < missing_least:
        return
    delivered = sum(r["status"] == "delivered" for r in rows)
    first = missing[0]
    topics = sorted({printable(r["topic"], 60) for r in missing})
    publishers = sorted({f"{r['client_id'] or '(no client id)'}@{r['client_address'] or '?'}" for r in missing})
    more = f" and {len(topics) - 3} more topics" if len(topics) > 3 else ""
    subscriber = (
        f"the group {printable(first['share_name'], 60)} of a shared subscription"
        if first["subscriber_flow_id"] is None and first["share_name"] is not None
        else f"client {printable(first['subscriber_client_id'] or '(no client id)', 80)} at "
        f"{first['subscriber_address']}"
    )
    yield DETECTOR.finding(
        subject={
            "server": first["server_address"],
            "subscriber": first["subscriber_flow_id"] or first["share_name"],
            "filter": first["topic_filter"],
        },
        sentence=(
            f"{count(len(missing), 'message')} on {', '.join(topics[:3])}{more} did not reach {subscriber}, which "
            f"subscribes to {printable(first['topic_filter'] or '?', 60)}; {delivered:,} others did. Published by "
            f"{', '.join(publishers[:4])}, and waited for {ms_text(max(r['waited_ms'] for r in missing))} at most."
        ),
        next_step=(
            "Look at the server's access rules for the publisher and the subscriber, at its queue limits, and at its "
            "log for dropped messages."
        ),
        proof=Proof(first["ts"], missing[-1]["ts"], (Evidence(None, None, r["message_id"]) for r in missing)),
        numbers={
            "missing": len(missing),
            "delivered": delivered,
            "topic_filter": first["topic_filter"],
            "share_name": first["share_name"],
            "topics": topics[:20],
            "publishers": publishers[:20],
            "where": topics[0],
            "clients": [
                {
                    "address": first["subscriber_address"],
                    "client_id": first["subscriber_client_id"],
                    "flow_id": first["subscriber_flow_id"],
                    "missing": len(missing),
                    "delivered": delivered,
                }
            ],
        },
    )


DETECTOR = Detector(
    code="MQT115",
    name="undelivered",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_deliveries": (
            "ts", "message_id", "topic", "client_id", "client_address", "subscriber_client_id", "subscriber_address",
            "status", "waited_ms",
        ),
    },
    partition_by=("server_address", "subscriber_flow_id", "share_name", "topic_filter"),
    detect=detect,
    suspects=(
        "SELECT server_address, subscriber_flow_id, share_name, topic_filter FROM r_mqtt_deliveries "
        "WHERE status IN ('missing', 'left') AND waited_ms >= 10000"
    ),
)  # fmt: skip
