"""Rules about the values of a packet that was read: what is wrong with each, apart from its bytes.

In: a read packet. Out: (code of `rules.RULES`, words for people).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.mqtt.levels import LEVEL_3X, LEVEL_31, LEVEL_50, LEVEL_311, PROTOCOL_NAMES
from wirewitness.dissectors.mqtt.packet_types import (
    AUTH,
    DUP,
    MAY_REPEAT_IN_31,
    PUBLISH,
    SUBSCRIBE,
    TYPES,
    may_travel,
    operation_name,
)
from wirewitness.dissectors.mqtt.text import filter_problems, split_filter
from wirewitness.dissectors.mqtt.walk import Walked

LONGEST_CLIENT_ID_31 = 23
_FILTER_WORDS = {
    "empty_filter": "is empty",
    "malformed_hash_filter": "has a # that is not its whole last level",
    "malformed_plus_filter": "has a + that is not a whole level",
    "malformed_share": "has no share name and filter behind $share/",
    "empty_share_name": "has an empty share name",
}

Said = tuple[str, str]


def header_problems(found: Walked, direction: int) -> Iterator[Said]:
    """What is wrong with type and flags."""
    name = operation_name(found.type)
    level = found.level
    packet = TYPES.get(found.type)
    if packet is None or (found.type == AUTH and level is not None and level < LEVEL_50):
        yield "reserved_packet_type", f"packet type {found.type} is reserved"
        return
    if not may_travel(found.type, direction, level):
        yield "wrong_direction", f"{name} is sent by the {'server' if direction else 'client'}"
    if found.type == PUBLISH or level is None or found.flags == packet.flags:
        return
    if level in (LEVEL_31, LEVEL_3X) and found.type in MAY_REPEAT_IN_31 and found.flags & ~DUP == packet.flags:
        return
    yield "reserved_flags", f"the flag bits of {name} are {found.flags:04b}, not {packet.flags:04b}"


def connect_problems(found: Walked) -> Iterator[Said]:
    """What is wrong with the values of a CONNECT."""
    value, level = found.value, found.level
    name, byte = value.get("protocol_name"), value.get("protocol_level")
    if name is not None and name not in PROTOCOL_NAMES.values():
        yield "unknown_protocol", f"protocol name {name!r}"
    elif byte is not None and (level is None or PROTOCOL_NAMES[level] != name):
        yield "unknown_protocol_level", f"protocol level {byte} with the name {name}"
    flags = value.get("connect_flags")
    if flags is None:
        return
    if flags["reserved"]:
        yield "connect_reserved_flag", "the reserved flag is set"
    if flags["will_qos"] == 3:
        yield "invalid_will_qos", "the will has QoS 3"
    if not flags["will"] and flags["will_qos"]:
        yield "will_qos_without_will", f"QoS {flags['will_qos']} for a will that is not there"
    if not flags["will"] and flags["will_retain"]:
        yield "will_retain_without_will", "RETAIN for a will that is not there"
    if flags["password"] and not flags["user_name"] and level == LEVEL_311:
        yield "password_without_user_name", "a password without a user name"
    yield from _client_id_problems(value.get("client_id"), level, bool(flags["clean_start"]))


def _client_id_problems(client_id: str | None, level: int | None, clean: bool) -> Iterator[Said]:
    if client_id == "" and (level == LEVEL_31 or (level == LEVEL_311 and not clean)):
        yield "empty_client_id", "no client id" + ("" if level == LEVEL_31 else " and no clean session")
    if client_id is not None and level == LEVEL_31 and len(client_id) > LONGEST_CLIENT_ID_31:
        yield "client_id_length", f"a client id of {len(client_id)} characters, {LONGEST_CLIENT_ID_31} are allowed"


def connack_problems(found: Walked, clean_start: bool | None) -> Iterator[Said]:
    """What is wrong with the values of a CONNACK."""
    flags, code = found.value.get("acknowledge_flags"), found.value.get("reason_code")
    if flags is None or found.level in (None, LEVEL_31, LEVEL_3X):
        return
    if flags & ~1:
        yield "acknowledge_flags", f"acknowledge flags {flags:#04x}"
    if flags & 1 and code:
        yield "session_present_with_error", f"session present with code {code}"
    elif flags & 1 and clean_start:
        yield "session_present_after_clean_start", "session present although the client asked for a new one"


def filter_list_problems(found: Walked) -> Iterator[Said]:
    """What is wrong with the topic filters of a SUBSCRIBE or UNSUBSCRIBE."""
    elements = found.value.get("each")
    name = operation_name(found.type)
    if not elements and found.error is None:
        yield "no_filter", f"{name} without a topic filter"
    for element in elements or ():
        topic_filter = element.get("topic_filter")
        if topic_filter is None:
            continue
        for code in filter_problems(topic_filter):
            if found.level == LEVEL_50 or not code.endswith(("share", "share_name")):
                yield code, f"topic filter {topic_filter!r} {_FILTER_WORDS[code]}"
        if found.type == SUBSCRIBE and "options" in element:
            yield from _option_problems(element["options"], topic_filter, found.level)


def _option_problems(options: dict[str, int], topic_filter: str, level: int | None) -> Iterator[Said]:
    if options["requested_qos"] == 3:
        yield "requested_qos", f"QoS 3 is asked for with {topic_filter!r}"
    beyond_qos = any(options[name] for name in ("no_local", "retain_as_published", "retain_handling"))
    if options["reserved"] or (beyond_qos and level in (LEVEL_311, LEVEL_3X)):
        yield "subscription_options", f"reserved bits are set with {topic_filter!r}"
    if level == LEVEL_50 and options["retain_handling"] == 3:
        yield "retain_handling", f"retain handling 3 with {topic_filter!r}"
    if level == LEVEL_50 and options["no_local"] and split_filter(topic_filter)[0] is not None:
        yield "no_local_on_share", f"no local with the shared {topic_filter!r}"
