"""Whole documents as text, for who asks for payload: pymongo's bson to Extended JSON, credentials masked.

In: a decoded message. Out: one JSON text for its command or reply. Source: MongoDB Extended JSON v2 (relaxed).
"""

from __future__ import annotations

from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.json_util import RELAXED_JSON_OPTIONS, dumps

from wirewitness.dissectors.mongo.bson_fields import document
from wirewitness.dissectors.mongo.messages import Message, Sequence
from wirewitness.dissectors.mongo.secrets import MASK, is_secret

CODEC: CodecOptions[dict[str, Any]] = CodecOptions(
    document_class=dict,
    unicode_decode_error_handler="replace",
    datetime_conversion=DatetimeConversion.DATETIME_MS,
)
# Deeper than any server stores (100 levels); json goes one call deeper for each.
MAX_DEPTH = 200


def document_json(message: Message, command: str | None, limit: int) -> str | None:
    """Command or reply with its document sequences. None: there is none, it is damaged, or larger than `limit`."""
    if message.body is None or message.end - message.start > limit:
        return None
    try:
        value = _decoded(message, message.body_at)
        for sequence in message.sequences:
            value[sequence.name.decode("utf-8", "replace")] = _documents(message, sequence)
        legacy = message.legacy
        if legacy is not None and legacy.documents_at is not None and legacy.documents > 1:
            value = {"documents": bson.decode_all(message.data[legacy.documents_at : message.end], CODEC)}
        _mask(command, value)
        return dumps(value, json_options=RELAXED_JSON_OPTIONS, ensure_ascii=False)
    except Exception:  # bson and json raise what they like on broken values
        return None


def _decoded(message: Message, at: int) -> dict[str, Any]:
    end = document(message.data, at, message.end).end
    return bson.decode(message.data[at:end], CODEC)


def _documents(message: Message, sequence: Sequence) -> list[dict[str, Any]]:
    return bson.decode_all(message.data[sequence.start : sequence.end], CODEC)


def _mask(command: str | None, value: dict[str, Any]) -> None:
    """Replace credentials in place."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        keys, held = waiting.pop()
        if len(keys) > MAX_DEPTH:
            raise ValueError("nested too deep")
        if isinstance(held, dict):
            for key, inner in held.items():
                if is_secret(command, (*keys, key)):
                    held[key] = MASK
                elif isinstance(inner, dict | list):
                    waiting.append(((*keys, key), inner))
        else:
            waiting += [((*keys, "[]"), inner) for inner in held if isinstance(inner, dict | list)]
