"""Connections of the test server: reads requests, runs their commands, writes the replies.

In: an address, compressors, users. Out: a Server that listens; each connection has a thread. A reply is compressed as
its request was and has a checksum if the request had one; a request with moreToCome gets none. With exhaustAllowed a
hello that waits and a getMore go on answering by themselves, each reply's responseTo the id of the reply before, as
MongoDB does it.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import socketserver
import threading
import time
from typing import Any

from tests.support.mongo_server import wire
from tests.support.mongo_server.commands import HANDLERS, WRITES
from tests.support.mongo_server.context import CURSOR_ID_STEP, Context, namespace_of
from tests.support.mongo_server.documents import Document
from tests.support.mongo_server.errors import CommandError
from tests.support.mongo_server.failpoints import CloseConnection
from tests.support.mongo_server.member import Member
from tests.support.mongo_server.scram import Decoder
from tests.support.mongo_server.store import Late

HELLOS = {"hello", "isMaster", "ismaster"}
CURSOR_IDS_OF_FOLLOWERS = 4_110_000_000_000_000_003  # a server knows no cursor of another
OPEN_TO_ALL = {"saslStart", "saslContinue", "ping", "buildInfo", "endSessions"}


class Server(socketserver.ThreadingTCPServer):
    """A listening test server; serve_forever() runs it, shutdown() ends it."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        compressors: tuple[str, ...] = (),
        users: tuple[str, ...] = (),
        follows: Server | None = None,
        lag_s: float = 0.0,
    ) -> None:
        super().__init__(address, Connection)
        known = dict(user.split(":", 1) for user in users)
        own, primary = self.address_text, "" if follows is None else follows.address_text
        self.context = Context(Member(own, compressors, known, primary), known)
        if follows is not None:
            follows.context.member.joined_by(own)
            self.context.store = Late(follows.context.store, lag_s)
            self.context.cursor_ids = itertools.count(CURSOR_IDS_OF_FOLLOWERS, CURSOR_ID_STEP)
        self.open = 0  # connections
        self.reply_ids = itertools.count(1)
        self.connection_ids = itertools.count(1)

    def verify_request(self, request: object, client_address: object) -> bool:
        """Tell whether one more connection is taken; one too many is closed at once, as MongoDB does it."""
        limit = self.context.limits.connections
        return limit is None or self.open < limit

    @property
    def address_text(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"


class Connection(socketserver.BaseRequestHandler):
    """One client's connection."""

    server: Server

    def setup(self) -> None:
        """Begin unauthenticated."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)  # replies go out at once, as MongoDB's
        self._context = self.server.context
        self._number = next(self.server.connection_ids)
        self._authenticated = not self._context.users
        self._sasl: Decoder | None = None
        self._app_name = ""
        self.server.open += 1

    def finish(self) -> None:
        """Count one connection less."""
        self.server.open -= 1

    def handle(self) -> None:
        """Answer until the client goes, or until it sends what this server does not read."""
        try:
            while True:
                self._answer(wire.read_message(self.request))
        except (CloseConnection, OSError, ValueError):
            return

    def _answer(self, message: wire.Message) -> None:
        response_to = message.request_id
        while True:
            reply = self._reply(message)
            if message.flags & wire.MORE_TO_COME:
                return
            again = bool(message.flags & wire.EXHAUST_ALLOWED) and goes_on(message.command, reply)
            response_to = self._send(message, reply, response_to, again)
            if not again:
                return
            if "topologyVersion" in message.command:
                message.command["topologyVersion"] = reply["topologyVersion"]

    def _send(self, message: wire.Message, reply: Document, response_to: int, again: bool) -> int:
        number = next(self.server.reply_ids)
        if message.opcode == wire.OP_QUERY:
            data = wire.encode_op_reply(reply, number, response_to)
        else:
            flags = message.flags & wire.CHECKSUM_PRESENT | (wire.MORE_TO_COME if again else 0)
            data = wire.encode_op_msg(reply, number, response_to, flags)
        if message.compressor_id:
            data = wire.compress(data, message.compressor_id)
        self.request.sendall(data)
        return number

    def _reply(self, message: wire.Message) -> Document:
        try:
            reply = {**self._run(message.command), "ok": 1.0}
        except CommandError as error:
            reply = error.document()
            if error.code in (91, 189, 10107, 11600, 11602, 13435, 13436):
                reply["topologyVersion"] = self._context.member.version()
        return {**reply, **self._context.member.cluster_time()}

    def _run(self, command: Document) -> Document:
        name = next(iter(command))
        if name in HELLOS:
            return self._hello(command)
        if not self._authenticated and name not in OPEN_TO_ALL:
            raise CommandError(13, f"Command {name} requires authentication")
        more: Document = {}
        if name != "configureFailPoint":
            more = self._context.failpoints.strike(name, command, self._app_name)
        if name == "saslStart":
            return self._sasl_start(command)
        if name == "saslContinue":
            return self._sasl_continue(command)
        if name not in HANDLERS:
            raise CommandError(59, f"no such command: '{name}'")
        if name in WRITES:
            self._context.member.check_writable()
        time.sleep(self._work_s(name, command))
        with self._context.store.lock:
            return {**once(self._context, name, command), **more}

    def _work_s(self, name: str, command: Document) -> float:
        """Return for how long a command works that has to look at all documents, or has to wait for newer ones."""
        context = self._context
        if isinstance(context.store, Late) and "afterClusterTime" in command.get("readConcern", {}):
            return context.store.lag_s
        if name != "find" or not context.limits.scan_s:
            return 0.0
        indexes = context.store.indexes.get(namespace_of(command))
        if indexes is None:  # small, as nobody has ever made one
            return 0.0
        first = {"_id", *(next(iter(one["key"])) for one in indexes)}
        fields = command.get("filter", {}).keys()
        return context.limits.scan_s if fields and not fields & first else 0.0

    def _hello(self, command: Document) -> Document:
        self._app_name = command.get("client", {}).get("application", {}).get("name", self._app_name)
        if "maxAwaitTimeMS" in command:
            self._context.member.await_change(command["topologyVersion"], command["maxAwaitTimeMS"])
        reply = self._context.member.hello(command, self._number)
        if "speculativeAuthenticate" in command and self._context.users:
            # What fails here is only not answered: the client then begins with saslStart.
            with contextlib.suppress(CommandError):
                reply["speculativeAuthenticate"] = self._sasl_start(command["speculativeAuthenticate"])
        return reply

    def _sasl_start(self, command: Document) -> Document:
        # Users are those of the database admin.
        if command["mechanism"] != "SCRAM-SHA-256" or command.get("$db", command.get("db")) != "admin":
            raise CommandError(18, "Authentication failed.")
        self._sasl = Decoder(self._context.users)
        return {"conversationId": 1, "done": False, "payload": self._sasl.first(command["payload"])}

    def _sasl_continue(self, command: Document) -> Document:
        if self._sasl is None:
            raise CommandError(18, "Authentication failed.")
        payload = self._sasl.final(command["payload"])
        self._authenticated = True
        return {"conversationId": 1, "done": True, "payload": payload}


def goes_on(command: Document, reply: Document) -> bool:
    """Tell whether an exhaust request's next reply follows unasked."""
    if "maxAwaitTimeMS" in command and next(iter(command)) in HELLOS:
        return True
    return "getMore" in command and bool(reply.get("cursor", {}).get("id"))


def once(context: Context, name: str, command: Document) -> Document:
    """Run a command; a retryable write that was run already is not run again but answered as before."""
    if "txnNumber" not in command or "autocommit" in command:
        return HANDLERS[name](context, command)
    session, number = context.store.session(command["lsid"]), command["txnNumber"]
    if session.write_number == number and session.write_reply is not None:
        return {**session.write_reply, "retriedStmtIds": [0]}
    reply: dict[str, Any] = HANDLERS[name](context, command)
    session.write_number, session.write_reply = number, reply
    return reply


def serving(server: Server) -> threading.Thread:
    """Serve in a thread of this process."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    return thread
