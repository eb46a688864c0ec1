"""The program that sends spans of a running capture gives up its rights. In: nothing. Out: a process that may read
what it needs for sending, and open connections.

Its rows are made of a stranger's bytes, and who captures is often root. It runs as the user who started it, or as
nobody, where that user can read the program and what the SDK's settings name; else it stays who it is, without a right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from wirewitness.analyser.capture.privileges import Fence, confine, invoking_user, may, program_folders

# Settings of the SDK, and of the libraries it sends with, that name files.
_SETTINGS = (
    *(
        f"OTEL_EXPORTER_OTLP_{signal}{kind}"
        for signal in ("", "TRACES_")
        for kind in ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
    ),
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NETRC",
)
_NETRC = ("~/.netrc", "~/_netrc")
# /etc/resolv.conf is often a link to here, and replaced as a whole.
_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")


def confined() -> bool:
    """Give up every right but to send; True where the kernel fences files too. Before a second thread is started.

    Raises OSError where the system refuses to take rights away.
    """
    named = [*_named()]
    user = invoking_user()
    if user is not None and not may(user, [*filter(Path.exists, program_folders()), *named], os.R_OK):
        user = None
    return confine(user, Fence(read=[*named, *map(Path, _NAMES)], network=True))


def _named() -> Iterator[Path]:
    """The files that settings name and that are there."""
    for text in (*(os.environ.get(name, "") for name in _SETTINGS), *map(os.path.expanduser, _NETRC)):
        if text and os.path.exists(text):
            yield Path(text).absolute()
