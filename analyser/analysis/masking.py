"""Secrets in the columns of tables. In: a column as decoded. Out: the same with every secret in its texts masked.

Whatever is made of tables (reports, findings, spans, live, datasets) goes through here, so a secret that a system put
into a name or an error text is masked in all of it.
"""

from __future__ import annotations

import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.tables.model import Column
from wirewitness.dissectors.core.secrets import TRIGGER, is_suspicious, masked, masked_user

# Ids that are made here, addresses, words of protocols; and what applications sent, which is only there when asked for.
_LEFT_ALONE = frozenset(
    {
        "message_id", "flow_id", "exchange_id", "request_message_id", "response_message_id", "file", "request_file",
        "protocol", "operation", "version", "role", "direction", "status", "error_name", "client_address",
        "server_address", "src_address", "dst_address", "command", "query_shape", "shape_id", "key", "value", "headers",
        "request_document", "response_document",
    }
)  # fmt: skip
_USER = "user_name"
# Arrow makes the expression ready each time, which takes as long as to look through some hundred texts here.
_FEW = 100
# Of so many texts the first ones tell whether most are there more than once.
_SOME = 1 << 10


def masked_column(column: Column, array: pa.Array) -> pa.Array:
    """The array with its secrets masked; the same where there are none, as nearly always. It may have codes."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, masked_column(column, array.dictionary))
    if column.kind != "string" or column.name in _LEFT_ALONE or not pa.types.is_string(array.type):
        return array
    if column.name == _USER:
        return pa.array([None if text is None else masked_user(text) for text in array.to_pylist()], pa.string())
    if not _may_hold_secrets(array):
        return array
    hits = pc.match_substring_regex(array, TRIGGER)
    found = pc.filter(array, pc.fill_null(hits, False))
    shown = {text: masked(text) for text in pc.unique(found).to_pylist()}
    return pc.replace_with_mask(array, pc.fill_null(hits, False), pa.array([shown[t] for t in found.to_pylist()]))


def _may_hold_secrets(array: pa.Array) -> bool:
    if array.null_count == len(array):
        return False
    texts = _different(array)
    if len(texts) <= _FEW:
        return any(map(is_suspicious, pc.drop_null(texts).to_pylist()))
    found: bool = pc.any(pc.match_substring_regex(texts, TRIGGER)).as_py()
    return found


def _different(array: pa.Array) -> pa.Array:
    """The texts, each once where most repeat: to look through one takes six times as long as to know it again."""
    some = array.slice(0, _SOME)
    return array if 2 * len(pc.unique(some)) > len(some) else pc.unique(array)
