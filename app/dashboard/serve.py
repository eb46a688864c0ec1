"""Starts Streamlit in this process. In: captures and where to listen; out: nothing until the server ends."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click

from app.dashboard.offers import UPLOAD_LIMIT_MB

_SCRIPT = Path(__file__).with_name("streamlit_app.py")
_FIRST_PORT = 8501
_PORTS_TRIED = 100


def serve(
    paths: Sequence[str], options: Mapping[str, Any], *, host: str, port: int | None, browser: bool, debug: bool
) -> None:
    """Serve the dashboard until the process is interrupted. Raises OSError when it cannot listen there."""
    from streamlit.web import bootstrap

    import app.dashboard.pages  # noqa: F401  loaded now, so that the first page does not wait for it

    chosen = _free_port(host, port)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"dashboard at http://{shown}:{chosen} (Ctrl-C ends it)", err=True)
    settings = _settings(host, chosen, browser=browser, debug=debug)
    bootstrap.load_config_options(settings)
    # Who can open the page can start a capture: only people of this machine may.
    given = {"paths": list(paths), "options": dict(options), "may_capture": _is_loopback(host)}
    order = json.dumps(given)
    bootstrap.run(str(_SCRIPT), False, [f"--given={order}"], settings)


def _settings(host: str, port: int, *, browser: bool, debug: bool) -> dict[str, Any]:
    settings = {
        "server_address": host,
        "server_port": port,
        "server_headless": not browser,
        "server_showEmailPrompt": False,
        "server_fileWatcherType": "none",
        "server_maxUploadSize": UPLOAD_LIMIT_MB,
        "browser_gatherUsageStats": False,
        "logger_hideWelcomeMessage": True,
        "client_showErrorDetails": "full" if debug else "none",
        "client_toolbarMode": "minimal",
        "client_showErrorLinks": False,
        "theme_baseFontSize": 14,
        "theme_light_primaryColor": "#2f7fc1",
        "theme_dark_primaryColor": "#3583c4",
    }
    if _is_loopback(host):  # another site's name that points here is no way in
        settings["server_allowedHosts"] = ["localhost", "127.0.0.1", "::1", host]
    return settings


def _is_loopback(host: str) -> bool:
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
