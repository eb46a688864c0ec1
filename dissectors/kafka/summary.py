"""One line for people about a decoded message. In: the decoded value. Out: `key=value` words."""

from __future__ import annotations

from wirewitness.dissectors.kafka.error_codes import error_name
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.schema.primitives import Value

WORDS = (
    "group_id",
    "member_id",
    "generation_id",
    "generation_id_or_member_epoch",
    "member_epoch",
    "transactional_id",
    "client_software_name",
    "client_software_version",
    "acks",
    "session_id",
)
MAX_TOPICS = 3
# Where a message has its topics, and a topic its partitions.
TOPIC_FIELDS = ("topics", "topic_data", "responses")
PARTITION_FIELDS = ("partitions", "partition_data", "partition_responses", "partition_indexes")


def summary(value: Value | None, error_code: int | None) -> str | None:
    """What a reader wants to know first: group, member, topics with partition counts, and the error of a response."""
    if value is None:
        return None
    words = [f"{name}={value[name]}" for name in WORDS if value.get(name) not in (None, "")]
    for field in TOPIC_FIELDS:
        topics = value.get(field)
        if isinstance(topics, list) and topics and isinstance(topics[0], dict):
            words += [_topic(topic) for topic in topics[:MAX_TOPICS]]
            if len(topics) > MAX_TOPICS:
                words.append(f"and {len(topics) - MAX_TOPICS} more topics")
    if error_code is not None:
        words.append(f"error={error_code} {error_name(error_code) or ''}".rstrip())
    return " ".join(words) or None


def _topic(topic: Value) -> str:
    name, topic_id = topic_key(topic)
    for field in PARTITION_FIELDS:
        parts = topic.get(field)
        if isinstance(parts, list):
            return f"{name or topic_id}[{len(parts)}]"
    return name or topic_id or "?"
