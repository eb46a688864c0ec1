"""Azurite, Microsoft's emulator of Azure's stores, on this machine.

In: a directory. Out: its address, and what programs need in their environment to use it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple

from tests.lab.clients.node import fetched
from tests.lab.processes import LabError, Process, wait_until
from tests.lab.s3_server import ADDRESS, answers
from tests.lab.spark_cluster import free_port

ACCOUNT, KEY = "labaccount7qx2", base64.b64encode(b"of nobody else, and long enough").decode()
_VERSION = "2021-08-06"


class AzureServer(NamedTuple):
    """port: where it listens."""

    port: int

    def environment(self, port: int = 0) -> dict[str, str]:
        """What the tools of Azure read. port: of a front before it."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY, "NO_PROXY": ADDRESS,
            "AZURE_STORAGE_ENDPOINT": f"http://{ADDRESS}:{port or self.port}/{ACCOUNT}", "no_proxy": ADDRESS,
        }  # fmt: skip


@contextlib.contextmanager
def azure_server(directory: Path) -> Iterator[AzureServer]:
    """The server, empty but for one container, `captures`."""
    program, port = fetched("node_azurite") / "node_modules/azurite/dist/src/blob/main.js", free_port()
    command = ["node", str(program), "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location",
               str(directory), "--blobHost", ADDRESS, "--blobPort", str(port)]  # fmt: skip
    process = Process("azurite", command, directory, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"})
    try:
        wait_until(lambda: answers(port, process), "Azurite answers", 60)
        _make_container(port, "captures")
        yield AzureServer(port)
    finally:
        process.kill()


def _make_container(port: int, name: str) -> None:
    date = formatdate(usegmt=True)
    told = f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signed = hmac.new(base64.b64decode(KEY), f"PUT{chr(10) * 12}{told}".encode(), hashlib.sha256).digest()
    headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Content-Length": "0",
               "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}"}  # fmt: skip
    with contextlib.closing(http.client.HTTPConnection(ADDRESS, port)) as asked:
        asked.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers=headers)
        if (answer := asked.getresponse()).status != 201:
            raise LabError(f"no container: {answer.status} {answer.read()!r}")
