"""Secrets in the texts of a message's tree. In: what a dissector gave. Out: the same with them masked, bytes too.

A dissector knows the fields that are credentials, and those that are closed. Systems put credentials elsewhere too,
into names and texts; those are found by their form, the same way in all protocols.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.core.inspect import Hidden, Inspected, Node
from wirewitness.dissectors.core.secrets import MASK, is_secret_name, is_suspicious, masked, secret_spans

_PAIR = "user_property"
# Fields that name something: programs make such ids, too, so that nobody chose them tells nothing. Elements of a list
# are called after it.
_NAMES = frozenset(
    {
        "assigned_client_identifier", "assigned_topic_partitions", "client_id", "cluster_id", "collection",
        "database", "directories", "directory_id", "endpoint_id", "full_collection_name", "group", "group_id",
        "group_instance_id", "groups", "groups_names", "incarnation_id", "leader", "leader_id", "log_dir", "member",
        "member_id", "member_ids", "name", "previous_broker_epoch", "process_id", "protocol_name", "resource_name",
        "response_topic", "session_id", "topic", "topic_filter", "topic_id", "topic_ids", "topic_name", "topic_names",
        "topics", "transactional_id", "transactional_ids", "voter_directory_id", "will_topic",
    }
)  # fmt: skip


def without_secrets(data: bytes, found: Inspected) -> Inspected:
    """The same tree, changed where a text holds a secret."""
    spans = [span for node in found.nodes for span in _masked(node, data)]
    if not spans:
        return Inspected(found.nodes, joined(found.hidden), found.error, found.error_at)
    hidden = joined([*found.hidden, *(Hidden(start, end, "secret") for start, end in spans if end > start)])
    return Inspected(found.nodes, hidden, found.error, found.error_at)


def _masked(top: Node, data: bytes) -> Iterator[tuple[int, int]]:
    """Masks the values of the tree below a node; the bytes of what is secret."""
    waiting = [(top, top.name)]
    while waiting:
        node, name = waiting.pop()
        waiting += [(child, name if child.name.startswith("[") else child.name) for child in node.children]
        if not isinstance(node.value, (str, bytes)) or node.children:
            continue
        value = node.value
        text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
        secrets, shown = _in_text(name, text)
        if not secrets:
            continue
        # Bytes are shown by their numbers, where a part of them would not be seen to be masked.
        node.value = shown if isinstance(value, str) else MASK
        for secret in secrets:
            raw = secret.encode("utf-8", "surrogateescape")
            at = data.find(raw, node.start, node.end)
            yield (at, at + len(raw)) if raw and at >= 0 else (node.start, node.end)


def _in_text(name: str, text: str) -> tuple[list[str], str]:
    """The secret parts of a value, and what is shown of it."""
    if name == _PAIR and ": " in text:
        key, value = text.split(": ", 1)
        if value and value != MASK and is_secret_name(key):
            return [value], f"{key}: {MASK}"
    is_name = name in _NAMES
    if not is_suspicious(text, is_name=is_name):
        return [], text
    spans = secret_spans(text, is_name=is_name)
    return [text[start:end] for start, end in spans], masked(text, is_name=is_name)


def joined(spans: list[Hidden]) -> list[Hidden]:
    """Rising and apart; what is secret in any of those that overlap is secret."""
    done: list[Hidden] = []
    for one in sorted(spans):
        if done and one.start < done[-1].end:
            last = done.pop()
            kind = last.kind if last.kind == one.kind else "secret"
            one = Hidden(last.start, max(last.end, one.end), kind)
        done.append(one)
    return done
