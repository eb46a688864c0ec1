"""fake-gcs-server, an emulator of Google Cloud Storage, built from its Go module, with a front for what it lacks.

In: a directory. Out: its address, and what programs need in their environment to use it.

The library that reads stores speaks the XML API. The emulator knows of it how objects are read, listed and removed; the
front makes requests of the JSON API of what writes and copies objects, with its conditions, which the emulator checks.
Uploads in parts it does not know.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from tests.lab.go_toolchain import go_command
from tests.lab.places import WORK_DIR
from tests.lab.processes import Process, run, wait_until
from tests.lab.s3_server import ADDRESS, answers
from tests.lab.spark_cluster import free_port
from tests.support.faulty_front import Answer, Asked, Translated, translating_front

_MODULE = "github.com/fsouza/fake-gcs-server"
_VERSION = "v1.56.1"
_CONDITION = "x-goog-if-generation-match"


class GoogleServer(NamedTuple):
    """port: of the front. account: a file, as of a service account, that names it."""

    port: int
    account: Path

    def environment(self, port: int = 0) -> dict[str, str]:
        """What programs read. port: of a front before it."""
        account = _account(self.account.with_name(f"account-{port}.json"), port) if port else self.account
        return {"GOOGLE_SERVICE_ACCOUNT": str(account), "NO_PROXY": ADDRESS, "no_proxy": ADDRESS}


@contextlib.contextmanager
def google_server(directory: Path) -> Iterator[GoogleServer]:
    """The server, empty but for one bucket, `captures`."""
    port = free_port()
    with translating_front(port, _translated) as front:
        command = [str(_program()), "-scheme", "http", "-host", ADDRESS, "-port", str(port), "-backend", "memory",
                   "-public-host", f"{ADDRESS}:{front.port}"]  # fmt: skip
        process = Process("fake-gcs-server", command, directory, {})
        try:
            wait_until(lambda: answers(port, process), "fake-gcs-server answers", 30)
            with contextlib.closing(http.client.HTTPConnection(ADDRESS, port)) as asked:
                asked.request("POST", "/storage/v1/b?project=lab", json.dumps({"name": "captures"}))
                assert asked.getresponse().status == 200
            yield GoogleServer(front.port, _account(directory / "account.json", front.port))
        finally:
            process.kill()


def _account(path: Path, port: int) -> Path:
    known = {"gcs_base_url": f"http://{ADDRESS}:{port}", "disable_oauth": True}
    path.write_text(json.dumps({**known, "client_email": "", "private_key": "", "private_key_id": ""}))
    return path


def _program() -> Path:
    folder = WORK_DIR / "go-bin" / f"fake-gcs-server-{_VERSION}"
    if not (folder / "fake-gcs-server").exists():
        run([go_command(), "install", f"{_MODULE}@{_VERSION}"], env={**os.environ, "GOBIN": str(folder)})
    return folder / "fake-gcs-server"


def _translated(asked: Asked) -> Translated | None:
    """The request of the JSON API for one that writes an object."""
    bucket, _, key = asked.path.lstrip("/").partition("/")
    if asked.method != "PUT" or "?" in key:
        return None
    condition = asked.headers.get(_CONDITION)
    if source := asked.headers.get("x-goog-copy-source"):
        copied_from, _, copied = unquote(source).lstrip("/").partition("/")
        place = f"{copied_from}/o/{_quoted(copied)}/rewriteTo/b/{bucket}/o/{_quoted(unquote(key))}"
        path, body = f"/storage/v1/b/{place}?", b""
    else:
        path, body = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={_quoted(unquote(key))}", asked.body
    path += "" if condition is None else f"&ifGenerationMatch={condition}"
    return Translated("POST", path, {"Content-Type": "application/octet-stream"}, body, _told)


def _told(answer: Answer) -> Mapping[str, str]:
    """The headers of an object that was written."""
    if answer.status != 200:
        return {}
    told = json.loads(answer.content)
    told = told.get("resource", told)
    return {"ETag": f'"{told["etag"]}"', "x-goog-generation": str(told["generation"])}


def _quoted(key: str) -> str:
    return quote(key, safe="")
