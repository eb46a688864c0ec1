"""One line for people about a decoded message. In: the decoded value. Out: `key=value` words."""

from __future__ import annotations

from dissectors.kafka.error_codes import error_name
from dissectors.kafka.errors_in import error_plan, first_error
from dissectors.kafka.group_rows import topic_key
from dissectors.kafka.rows import Value

_WORDS = (
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
_MAX_TOPICS = 3


def summary(api_key: int, version: int, value: Value | None, is_response: bool) -> str | None:
    """What a reader wants to know first: group, member, topics with partition counts, error."""
    if value is None:
        return None
    words = [f"{name}={value[name]}" for name in _WORDS if value.get(name) not in (None, "")]
    for field in ("topics", "topic_data", "responses"):
        topics = value.get(field)
        if isinstance(topics, list) and topics and isinstance(topics[0], dict):
            words += [_topic(topic) for topic in topics[:_MAX_TOPICS]]
            if len(topics) > _MAX_TOPICS:
                words.append(f"and {len(topics) - _MAX_TOPICS} more topics")
    if is_response:
        code = first_error(value, error_plan(api_key, version))
        words.append(f"error={code} {error_name(code) or ''}".rstrip())
    return " ".join(words) or None


def _topic(topic: Value) -> str:
    name, topic_id = topic_key(topic)
    for field in ("partitions", "partition_data", "partition_responses", "partition_indexes"):
        parts = topic.get(field)
        if isinstance(parts, list):
            return f"{name or topic_id}[{len(parts)}]"
    return name or topic_id or "?"
