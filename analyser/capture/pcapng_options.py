"""Options of pcapng blocks. In: the bytes of a block. Out: (code, value) pairs. Source: draft-ietf-opsawg-pcapng."""

import struct
from collections.abc import Iterator

END_OF_OPTIONS = 0


def read_options(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Options in `body` up to the end mark; a cut or oversized option ends them silently."""
    head = struct.Struct(order + "HH")
    position = 0
    while position + 4 <= len(body):
        code, length = head.unpack_from(body, position)
        if code == END_OF_OPTIONS or position + 4 + length > len(body):
            return
        yield code, body[position + 4 : position + 4 + length]
        position += 4 + length + (-length % 4)


def text_option(value: bytes) -> str:
    """An option of text type; bytes that are not UTF-8 become replacement marks."""
    return value.rstrip(b"\0").decode("utf-8", "replace")
