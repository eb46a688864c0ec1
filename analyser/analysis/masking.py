"""Secrets in the columns of tables. In: a column as decoded. Out: the same with every secret in its texts masked.

Whatever is made of tables (reports, findings, spans, live, datasets) goes through here, so a secret that a system put
into a name or an error text is masked in all of it. What a column holds decides how: see `docs/secrets.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.tables.tables import TABLES, Column
from wirewitness.dissectors.core.closed import closed_pairs, closed_text, closed_user
from wirewitness.dissectors.core.secrets import NAME_TRIGGER, TRIGGER, is_suspicious, masked

# Ids that are made here, addresses, words of protocols; and what applications sent, which is only there when asked for.
_LEFT_ALONE = frozenset(
    {
        "message_id", "flow_id", "exchange_id", "request_message_id", "response_message_id", "file", "request_file",
        "protocol", "version", "role", "direction", "status", "error_name", "client_address", "server_address",
        "src_address", "dst_address", "shape_id", "literals_id", "lsid", "key", "value", "headers", "request_document",
        "response_document", "client_container", "server_container", "opcode", "codec",
    }
)  # fmt: skip
# What names something, or is made of such names: programs make ids, too, so that nobody chose them tells nothing, and
# two of them have to stay two. Values of settings and names of users in `change` and `summary` are masked before.
_NAMES = frozenset(
    {
        "app_name", "change", "client_id", "cluster_id", "collection", "command", "database", "document_shape",
        "group_id", "group_instance_id", "leader_id", "matching_filter", "member_id", "operation", "query_shape",
        "resource_name", "response_topic", "share_name", "summary", "topic", "topic_filter", "topic_id", "topic_regex",
        "topics", "owned_partitions", "transactional_id", "transaction", "will_topic", "wire_cluster_id",
    }
)  # fmt: skip
_CLOSED: dict[str, Callable[[str], str]] = {
    "user_name": closed_user,
    "principal": closed_user,
    "reason": closed_text,
    "reason_string": closed_text,
    "disconnect_reason_string": closed_text,
    "response_information": closed_text,
    "user_properties": closed_pairs,
}
# Of one table only: other texts of errors are of brokers.
_CLOSED_OF_TABLE = {("kafka_authentications", "error_message"): closed_text}
FLOWS = "flows"
_OF_FLOWS = {column.name: column for column in TABLES[FLOWS].columns if column.kind == "string"}
# Arrow makes the expression ready each time, which takes as long as to look through some hundred texts here.
_FEW = 100
# Of so many texts the first ones tell whether most are there more than once.
_SOME = 1 << 10


def masked_column(table: str, column: Column, array: pa.Array, *, opens: bool = False) -> pa.Array:
    """The array with its secrets masked; the same where there are none, as nearly always. It may have codes.

    opens: content was asked for, so that closed columns are shown but for what looks like a secret in them.
    """
    if pa.types.is_dictionary(array.type):
        shown = masked_column(table, column, array.dictionary, opens=opens)
        return pa.DictionaryArray.from_arrays(array.indices, shown)
    if column.kind != "string" or column.name in _LEFT_ALONE or not pa.types.is_string(array.type):
        return array
    if array.null_count == len(array):
        return array
    closing = _CLOSED.get(column.name) or _CLOSED_OF_TABLE.get((table, column.name))
    if closing is not None and not opens:
        return _changed(array, closing)
    is_name = column.name in _NAMES
    trigger = NAME_TRIGGER if is_name else TRIGGER
    if not _may_hold_secrets(array, trigger, is_name=is_name):
        return array
    hits = pc.fill_null(pc.match_substring_regex(array, trigger), False)
    found = _changed(pc.filter(array, hits), partial(masked, is_name=is_name))
    return pc.replace_with_mask(array, hits, found)


def masked_flows(flows: pa.Table) -> pa.Table:
    """The table `flows`, which knows names of servers and owners of certificates, with its secrets masked."""
    for place, name in enumerate(flows.column_names):
        if name in _OF_FLOWS and flows.column(name).null_count < flows.num_rows:
            shown = [masked_column(FLOWS, _OF_FLOWS[name], chunk) for chunk in flows.column(name).chunks]
            flows = flows.set_column(place, flows.field(place), pa.chunked_array(shown))
    return flows


def _changed(array: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """Each text changed; it is done once for those that repeat."""
    shown = {text: change(text) for text in pc.drop_null(pc.unique(array)).to_pylist()}
    return pa.array([None if text is None else shown[text] for text in array.to_pylist()], pa.string())


def _may_hold_secrets(array: pa.Array, trigger: str, *, is_name: bool) -> bool:
    texts = _different(array)
    if len(texts) <= _FEW:
        return any(is_suspicious(text, is_name=is_name) for text in pc.drop_null(texts).to_pylist())
    found: bool = pc.any(pc.match_substring_regex(texts, trigger)).as_py()
    return found


def _different(array: pa.Array) -> pa.Array:
    """The texts, each once where most repeat: to look through one takes six times as long as to know it again."""
    some = array.slice(0, _SOME)
    return array if 2 * len(pc.unique(some)) > len(some) else pc.unique(array)
