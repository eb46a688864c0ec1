"""Text that is no UTF-8. In: the first bytes of a stream, and the stream. Out: the same text as UTF-8.

PowerShell's `>` writes UTF-16 with a byte order mark; without one, ASCII in UTF-16 has a zero in every other byte.
"""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, cast

_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# So many bytes tell, where there is no mark.
_LEAST_BYTES, _TELLING_BYTES = 16, 64
_READ_BYTES = 1 << 16


def utf_16_of(head: bytes) -> str | None:
    """Which UTF-16 a text begins with; None for anything else."""
    if head[:2] in _MARKS and len(head) > len(codecs.BOM_UTF16_LE):
        return _MARKS[head[:2]]
    even, odd = head[0:_TELLING_BYTES:2], head[1:_TELLING_BYTES:2]
    if len(head) < _LEAST_BYTES:
        return None
    if not any(odd) and _is_ascii(even):
        return "utf-16-le"
    return "utf-16-be" if not any(even) and _is_ascii(odd) else None


def _is_ascii(data: bytes) -> bool:
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data)


class AsUtf8(io.RawIOBase):
    """A stream of such a text as UTF-8, without its byte order mark. What is no text becomes U+FFFD."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = cast(Any, stream)
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""
        self._buffer = bytearray(_READ_BYTES)
        self._is_first = True

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        while not self._ready:
            count: int | None = self._stream.readinto(self._buffer)
            if count is None:
                return None
            text = self._decoder.decode(bytes(self._buffer[:count]), final=not count)
            if text and self._is_first:
                text, self._is_first = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"), False
            self._ready = text.encode("utf-8", "replace")
            if not count:
                break
        part = self._ready[: len(target)]
        target[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)
