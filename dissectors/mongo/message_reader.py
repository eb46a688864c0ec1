"""Reads the parts of a message: numbers, names, documents. In: its bytes. Out: values; the first fault is kept."""

from __future__ import annotations

import struct

from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.mongo.bson_fields import Document, Fields, document
from wirewitness.dissectors.mongo.opcodes import MAX_DOCUMENT_BYTES

MAX_NAME_BYTES = 512

_int32 = struct.Struct("<i").unpack_from
_int64 = struct.Struct("<q").unpack_from


class MessageReader:
    """Reads the parts of a message one behind the other; the first thing that is wrong is kept."""

    __slots__ = ("at", "body", "body_at", "data", "end", "error", "remarks")

    def __init__(self, data: bytes, at: int, end: int, remarks: list[Remark]) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.remarks = remarks
        self.body: Fields | None = None
        self.body_at = at
        self.error: str | None = None

    def fail(self, error: str) -> None:
        """Something is wrong here: nothing more is read."""
        self.error = self.error or error
        self.at = self.end

    def int32(self) -> int:
        """The next number; 0 where it is not there."""
        if self.end - self.at < 4:
            self.fail("the message ends early")
            return 0
        self.at += 4
        return int(_int32(self.data, self.at - 4)[0])

    def int64(self) -> int:
        """The next number of 8 bytes; 0 where it is not there."""
        if self.end - self.at < 8:
            self.fail("the message ends early")
            return 0
        self.at += 8
        return int(_int64(self.data, self.at - 8)[0])

    def cstring(self) -> str:
        """The next text that a null ends; empty where it is not there."""
        end = self.data.find(0, self.at, self.end)
        if end < 0:
            self.fail("a name ends early")
            return ""
        value = self.data[self.at : min(end, self.at + MAX_NAME_BYTES)].decode("utf-8", "replace")
        self.at = end + 1
        return value

    def document(self, largest: int = MAX_DOCUMENT_BYTES) -> Document | None:
        """The next document; the first one becomes the body."""
        if self.error is not None or self.at >= self.end:
            return None
        start = self.at
        found = document(self.data, start, self.end)
        if self.body is None:
            self.body, self.body_at = found.fields, start
        self.at = found.end
        if found.error is not None:
            self.fail(found.error)
        if found.end - start > largest:
            self.too_large(found.end - start)
        return found

    def documents(self, end: int) -> int:
        """Step over documents that follow each other up to `end`; how many they are."""
        count = 0
        data, at = self.data, self.at
        while end - at >= 5:
            size = _int32(data, at)[0]
            behind = at + size
            if size < 5 or behind > end or data[behind - 1] != 0:
                break
            if size > MAX_DOCUMENT_BYTES:
                self.too_large(size)
            at = behind
            count += 1
        self.at = at
        if at != end:
            self.fail("a document does not fit into the message")
        return count

    def too_large(self, size: int) -> None:
        """Remark on a document that no server stores."""
        text = f"a document of {size:,} bytes; servers store none above 16 MiB"
        self.remarks.append(("warn", "protocol", "document_too_large", text))
