"""One line for people about a packet that was read. In: the packet. Out: `key=value` words, secrets left out."""

from __future__ import annotations

from wirewitness.dissectors.core.closed import closed_text, closed_user
from wirewitness.dissectors.core.secrets import masked
from wirewitness.dissectors.mqtt.packet_types import SUBACK, UNSUBACK
from wirewitness.dissectors.mqtt.reason_codes import reason_name
from wirewitness.dissectors.mqtt.walk import Walked

_WORDS = ("client_id", "user_name", "keep_alive", "will_topic")
_PROPERTY_WORDS = (
    ("authentication_method", masked),
    ("assigned_client_identifier", str),
    ("reason_string", closed_text),
)
_MOST = 3


def publish_summary(topic: str | None, flags: int, payload_bytes: int | None) -> str:
    """Of a PUBLISH. flags: of its first byte (3.3.1). payload_bytes: None where nobody can tell."""
    words = f"topic={topic} qos={flags >> 1 & 3}"
    if payload_bytes is not None:
        words += f" payload_bytes={payload_bytes}"
    return words + " dup" * (flags >> 3) + " retain" * (flags & 1)


def summary(found: Walked) -> str | None:
    """What a reader wants to know first."""
    value = found.value
    value = {**value, "user_name": closed_user(value.get("user_name") or "")}
    words = [f"{name}={value[name]}" for name in _WORDS if value.get(name) not in (None, "")]
    flags = value.get("connect_flags")
    if flags is not None and flags["clean_start"]:
        words.append("clean_start")
    code = value.get("reason_code")
    if code is not None:
        words.append(f"reason={code} {reason_name(found.type, code, found.level) or ''}".rstrip())
    words += [f"{name}={show(found.properties[name])}" for name, show in _PROPERTY_WORDS if name in found.properties]
    each = value.get("each") or []
    if found.type in (SUBACK, UNSUBACK):
        codes = [str(element.get("reason_code")) for element in each]
        words += [f"reasons={','.join(codes[:10])}"] if codes else []
    else:
        words += [f"filter={element['topic_filter']}" for element in each[:_MOST] if "topic_filter" in element]
        if len(each) > _MOST:
            words.append(f"and {len(each) - _MOST} more filters")
    return " ".join(words) or None
