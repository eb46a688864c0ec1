"""Frames of the example protocol, packed without the dissector's code."""

from __future__ import annotations

import struct


def frame(frame_type: int, payload: bytes, *, version: int = 1, length: int | None = None) -> bytes:
    """A frame; `length` overrides the true one."""
    return struct.pack(">HBBI", 0xCAFE, version, frame_type, len(payload) if length is None else length) + payload


def request(payload: bytes = b"ping", *, version: int = 1) -> bytes:
    """A frame of type 1."""
    return frame(1, payload, version=version)


def response(payload: bytes = b"pong", *, version: int = 1) -> bytes:
    """A frame of type 2."""
    return frame(2, payload, version=version)
