"""What requests and replies of one connection tell, as far as rows of `mongo_commands` need it.

In: messages that were read. Out: facts by column. What a hello told of client and server belongs to all later commands;
documents that wait for a reply are bounded.
"""

from __future__ import annotations

from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.json_util import RELAXED_JSON_OPTIONS, dumps

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.mongo.bson_fields import Fields, document
from wirewitness.dissectors.mongo.commands import Command, command_facts
from wirewitness.dissectors.mongo.handshake import CONNECTION, hello_facts, server_facts
from wirewitness.dissectors.mongo.legacy import legacy_facts
from wirewitness.dissectors.mongo.messages import Message, Sequence
from wirewitness.dissectors.mongo.opcodes import OP_REPLY, opcode_name
from wirewitness.dissectors.mongo.pending import Pending
from wirewitness.dissectors.mongo.read_message import Received
from wirewitness.dissectors.mongo.replies import (
    Outcome,
    duplicate_key,
    error_message,
    outcome,
    reply_facts,
    stopped_at,
)
from wirewitness.dissectors.mongo.rows import Facts
from wirewitness.dissectors.mongo.secrets import MASK, is_secret

# Whole documents as text, for who asks for payload: pymongo's bson to Extended JSON, credentials masked.
#
# In: a decoded message. Out: one JSON text for its command or reply. Source: MongoDB Extended JSON v2 (relaxed).

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


def of_client(data: bytes, fields: Fields) -> Facts:
    """What a hello tells that belongs to all later commands."""
    return {column: value for column, value in hello_facts(data, fields).items() if column in CONNECTION}


def of_server(message: Message, found: Outcome) -> Facts:
    """What the reply to a hello tells that belongs to all later commands."""
    if message.body is None or not found.ok:
        return {}
    return {column: value for column, value in server_facts(message.data, message.body).items() if value is not None}


class ConnectionFacts:
    """Picklable. connection: what is known of client and server."""

    __slots__ = ("_held_payload", "_limits", "_options", "connection")

    def __init__(self, limits: Limits, options: DecodeOptions) -> None:
        self._limits = limits
        self._options = options
        self._held_payload = 0
        self.connection: Facts = {}

    def hello(self, command: Command, received: Received) -> None:
        """What a client says of itself."""
        self.connection = {**self.connection, **of_client(received.message.data, command.fields)}

    def hello_answered(self, received: Received, found: Outcome) -> None:
        """What a server says of itself."""
        self.connection = {**self.connection, **of_server(received.message, found)}

    def of_request(self, received: Received, command: Command) -> tuple[Facts, bool]:
        """The facts of a request; was its document left out, because too many wait?"""
        message = received.message
        facts = legacy_facts(message) if command.name is None else command_facts(command, message)
        facts["opcode"] = opcode_name(message.opcode)
        facts["compressor"] = received.compressor
        facts["checksum_ok"] = message.checksum_ok
        facts["request_uncompressed_bytes"] = received.uncompressed_bytes
        if not self._options.payload:
            return facts, False
        shown = document_json(message, command.name, self._limits.max_payload_bytes)
        if shown is None:
            return facts, False
        if self._held_payload + len(shown) > self._limits.max_held_records_bytes:
            return facts, True
        facts["request_document"] = shown
        self._held_payload += len(shown)
        return facts, False

    def let_go(self, facts: Facts) -> None:
        """A request waits no longer."""
        self._held_payload -= len(facts.get("request_document") or "")

    def add_reply(self, pending: Pending, facts: Facts, received: Received, found: Outcome) -> None:
        """What a reply, counted already, adds to the facts of its request."""
        message, first = received.message, pending.replies == 1
        new = reply_facts(facts.get("command"), message, found, pending.name is not None)
        for column in ("documents_returned", "n"):
            if not first and facts.get(column) is not None and new.get(column) is not None:
                new[column] += facts[column]
        facts.update(new)
        if facts.get("untried") is not None and facts.get("documents_sent"):
            at = stopped_at(message)
            facts["untried"] = 0 if at is None else max(facts["documents_sent"] - at - 1, 0)
        if message.checksum_ok is not None:
            facts["checksum_ok"] = message.checksum_ok and facts.get("checksum_ok") is not False
        if first:
            facts["response_compressor"] = received.compressor
        if self._options.payload:
            if first:
                limit = self._limits.max_payload_bytes
                facts["response_document"] = document_json(message, pending.name, limit)
            facts["error_message"] = error_message(message)
        elif facts.get("error_code") or facts.get("write_error_codes"):
            facts["error_message"] = duplicate_key(error_message(message))

    def of_orphan(self, received: Received) -> Facts:
        """The facts of a reply whose request is not in the capture."""
        message = received.message
        to_command = message.opcode != OP_REPLY or b"ok" in (message.body or {})
        facts: Facts = {
            **reply_facts(None, message, outcome(message, to_command), to_command),
            "checksum_ok": message.checksum_ok,
            "response_compressor": received.compressor,
        }
        if self._options.payload:
            facts["response_document"] = document_json(message, None, self._limits.max_payload_bytes)
        return facts
