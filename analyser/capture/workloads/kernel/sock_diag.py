"""A TCP socket by its ends. In: addresses and ports. Out: the socket's number and its user, asked of the kernel.

Asks about the network namespace of this process. Source: Linux, sock_diag(7), include/uapi/linux/inet_diag.h and
net/ipv4/inet_diag.c: a question without NLM_F_DUMP finds the connection, else who listens, so the answer's ends count.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import NamedTuple

_NETLINK_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEAD = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_ENDS = struct.Struct(">HH16s16s")
_ANSWER = struct.Struct("=BBBB")
_REST = struct.Struct("=IIIII")  # expires, receive queue, send queue, user, inode
_ENDS_AT, _REST_AT = _HEAD.size + _ANSWER.size, _HEAD.size + _ANSWER.size + 48
_ANY_INTERFACE_NO_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_MAPPED = b"\0" * 10 + b"\xff\xff"
_ANSWER_BYTES, _PATIENCE_S = 4096, 0.2
# States of TCP in which nobody holds the connection any more, or not yet.
TIME_WAIT, CLOSE, LISTEN = 6, 7, 10
NOT_HELD = frozenset((TIME_WAIT, CLOSE, LISTEN))


class End(NamedTuple):
    """An address (4 or 16 bytes) with a port."""

    address: bytes
    port: int


class Socket(NamedTuple):
    """A connection of this machine. inode: its number, 0 while no process has taken it from who listens. uid: of who
    opened it."""

    inode: int
    uid: int


class SockDiag:
    """Asks the kernel. Raises OSError where it knows no sock_diag, or refuses."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
        self._socket.settimeout(_PATIENCE_S)
        self._number = 0

    def find(self, local: End, remote: End) -> Socket | None:
        """The connection with these ends; None where there is none, or nobody can hold it any more.

        Raises OSError where the kernel does not answer.
        """
        self._number = self._number % 0xFFFFFFFF + 1
        self._socket.send(_question(self._number, local, remote))
        while True:
            told = self._socket.recv(_ANSWER_BYTES)
            if len(told) >= _HEAD.size and _HEAD.unpack_from(told)[3] == self._number:
                return _socket(told, local, remote)

    def close(self) -> None:
        """Ask no more."""
        self._socket.close()


def _question(number: int, local: End, remote: End) -> bytes:
    family = socket.AF_INET if len(local.address) == 4 else socket.AF_INET6
    ends = _ENDS.pack(local.port, remote.port, local.address.ljust(16, b"\0"), remote.address.ljust(16, b"\0"))
    body = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends + _ANY_INTERFACE_NO_COOKIE
    return _HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, number, 0) + body


def _socket(told: bytes, local: End, remote: End) -> Socket | None:
    kind = _HEAD.unpack_from(told)[1]
    if kind == _ERROR:
        error = -int(struct.unpack_from("=i", told, _HEAD.size)[0])
        if error in (0, 2):  # ENOENT: there is no such connection
            return None
        raise OSError(error, os.strerror(error))
    if kind != _BY_FAMILY or len(told) < _REST_AT + _REST.size:
        return None
    family, state, _, _ = _ANSWER.unpack_from(told, _HEAD.size)
    local_port, remote_port, local_address, remote_address = _ENDS.unpack_from(told, _ENDS_AT)
    ends = End(_address(local_address, family), local_port), End(_address(remote_address, family), remote_port)
    if state in NOT_HELD or ends != (local, remote):
        return None
    *_, uid, inode = _REST.unpack_from(told, _REST_AT)
    return Socket(inode, uid)


def _address(packed: bytes, family: int) -> bytes:
    """A socket of IPv6 may hold a connection of IPv4."""
    if family == socket.AF_INET:
        return packed[:4]
    return unmapped(packed)


def unmapped(address: bytes) -> bytes:
    """An IPv4 address in 4 bytes where 16 hold one."""
    return address[12:] if len(address) == 16 and address.startswith(_MAPPED) else address
