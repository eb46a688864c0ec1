"""Opcodes of the message header and their names.

Sources: MongoDB Wire Protocol (manual), OP_MSG and OP_COMPRESSED specifications; reserved ones: the servers' list.
"""

from __future__ import annotations

OP_REPLY = 1
OP_UPDATE = 2001
OP_INSERT = 2002
OP_QUERY = 2004
OP_GET_MORE = 2005
OP_DELETE = 2006
OP_KILL_CURSORS = 2007
OP_COMMAND = 2010
OP_COMMANDREPLY = 2011
OP_COMPRESSED = 2012
OP_MSG = 2013

OPCODES: dict[int, str] = {
    OP_REPLY: "OP_REPLY",
    1000: "OP_MSG_LEGACY",
    OP_UPDATE: "OP_UPDATE",
    OP_INSERT: "OP_INSERT",
    2003: "OP_RESERVED",
    OP_QUERY: "OP_QUERY",
    OP_GET_MORE: "OP_GET_MORE",
    OP_DELETE: "OP_DELETE",
    OP_KILL_CURSORS: "OP_KILL_CURSORS",
    2008: "OP_COMMAND_LEGACY",
    2009: "OP_COMMANDREPLY_LEGACY",
    OP_COMMAND: "OP_COMMAND",
    OP_COMMANDREPLY: "OP_COMMANDREPLY",
    OP_COMPRESSED: "OP_COMPRESSED",
    OP_MSG: "OP_MSG",
}
# What only servers send.
REPLIES = frozenset({OP_REPLY, OP_COMMANDREPLY})
# What only clients send.
REQUESTS = frozenset({OP_UPDATE, OP_INSERT, OP_QUERY, OP_GET_MORE, OP_DELETE, OP_KILL_CURSORS, OP_COMMAND})
# responseTo of requests; some old drivers fill it.
NO_RESPONSE_TO = frozenset({0, -1})
# What servers never answer.
ONE_WAY = frozenset({OP_UPDATE, OP_INSERT, OP_DELETE, OP_KILL_CURSORS})

HEADER_BYTES = 16
# maxMessageSizeBytes, which every server states as 48,000,000.
MAX_MESSAGE_BYTES = 48_000_000
# maxBsonObjectSize; commands and replies may take 16 KiB more (BSONObjMaxInternalSize).
MAX_DOCUMENT_BYTES = 16 << 20
MAX_BODY_BYTES = MAX_DOCUMENT_BYTES + (16 << 10)

CHECKSUM_PRESENT = 1 << 0
MORE_TO_COME = 1 << 1
EXHAUST_ALLOWED = 1 << 16
# The low 16 bits are required: who does not know one must not go on.
REQUIRED_FLAGS = 0xFFFF
KNOWN_FLAGS = CHECKSUM_PRESENT | MORE_TO_COME | EXHAUST_ALLOWED


def opcode_name(opcode: int) -> str:
    """Its name; unknown ones are shown by number."""
    return OPCODES.get(opcode) or f"Opcode {opcode}"
