"""Starts Streamlit in this process. In: captures and where to listen; out: nothing until the server ends."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click

from wirewitness.app.dashboard.access import TOKEN, Gate
from wirewitness.app.dashboard.offers import UPLOAD_LIMIT_MB

_SCRIPT = Path(__file__).with_name("streamlit_app.py")
_FIRST_PORT = 8501
_PORTS_TRIED = 100
_SOON_S = 0.5
_ALL_ADDRESSES = ("0.0.0.0", "::")
_WARNING = (
    "warning: others can reach it: whoever has this address sees captures, and what the browser gets is not encrypted"
)


def serve(
    paths: Sequence[str],
    options: Mapping[str, Any],
    *,
    host: str,
    port: int | None,
    browser: bool,
    debug: bool,
    allowed_hosts: Sequence[str] = (),
    compare: bool = False,
) -> None:
    """Serve the dashboard until the process is interrupted. Raises OSError when it cannot listen there.

    allowed_hosts: names that the server is known by, beside those of this machine and its addresses. compare: the two
    paths are looked at side by side, not as one capture.
    """
    import streamlit as st
    from starlette.middleware import Middleware
    from streamlit.web import bootstrap
    from streamlit.web.server.starlette.starlette_server import UvicornRunner

    import wirewitness.app.dashboard.pages  # noqa: F401  loaded now, so that the first page does not wait for it
    from wirewitness.app.dashboard.patience import lose_patience

    chosen = _free_port(host, port)
    private = is_loopback(host)
    token = None if private else secrets.token_urlsafe(24)
    address = printed_address(host, chosen, token)
    click.echo(f"dashboard at {address} (Ctrl-C ends it)", err=True)
    if not private:
        click.echo(_WARNING, err=True)
    bootstrap.load_config_options(_settings(host, chosen, debug=debug))
    # Who can open the page can start a capture, and sees what was opened before: only people of this machine may.
    order = json.dumps({"paths": list(paths), "options": dict(options), "private": private,
                        "compare": compare})  # fmt: skip
    sys.argv = [str(_SCRIPT), f"--given={order}"]
    _end_in_order()
    lose_patience()

    @asynccontextmanager
    async def opened(_: object) -> AsyncIterator[None]:
        if browser:
            asyncio.get_running_loop().call_later(_SOON_S, webbrowser.open, address)
        yield

    gate = Middleware(Gate, hosts=_names(host, allowed_hosts), token=token, port=chosen)
    UvicornRunner(st.App(str(_SCRIPT), middleware=[gate], lifespan=opened)).run()


def _end_in_order() -> None:
    """Whatever ends the program, what is temporary is removed: the server raises a signal again when it has stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def printed_address(host: str, port: int, token: str | None) -> str:
    """Where a browser finds the dashboard; for all addresses of this machine that is its name."""
    named = socket.gethostname() if host in _ALL_ADDRESSES else host
    shown = f"[{named}]" if ":" in named else named
    return f"http://{shown}:{port}{f'/?{TOKEN}={token}' if token else ''}"


def _names(host: str, allowed: Sequence[str]) -> list[str]:
    """Names that the server is known by; addresses need none."""
    own = [] if is_loopback(host) else [socket.gethostname(), host]
    return ["localhost", *own, *allowed]


def _settings(host: str, port: int, *, debug: bool) -> dict[str, Any]:
    return {
        "server_address": host,
        "server_port": port,
        "server_headless": True,  # the browser is opened with the token
        "server_showEmailPrompt": False,
        "server_fileWatcherType": "none",
        "server_maxUploadSize": UPLOAD_LIMIT_MB,
        "browser_gatherUsageStats": False,
        "logger_hideWelcomeMessage": True,
        "client_showErrorDetails": "full" if debug else "none",
        "client_toolbarMode": "minimal",
        "client_showErrorLinks": False,
        "theme_baseFontSize": 14,
        "theme_light_primaryColor": "#226aa8",
        "theme_dark_primaryColor": "#4a97d6",
    }


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _free_port(host: str, port: int | None) -> int:
    """The port asked for, or the first free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = [port] if port is not None else list(range(_FIRST_PORT, _FIRST_PORT + _PORTS_TRIED))
    for candidate in candidates:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError:
                if candidate == candidates[-1]:
                    raise
                continue
            return candidate
    raise OSError("no free port")
