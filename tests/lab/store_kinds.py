"""What tests of datasets in stores need of each kind of stores: the same questions are asked of all.

In: a server. Out: addresses there, what programs need in their environment, a front that sees all requests.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from tests.lab.azure_server import AzureServer
from tests.lab.google_server import GoogleServer
from tests.lab.hdfs_server import ADDRESS, OWNER, HdfsServer
from tests.lab.s3_server import S3Server
from tests.support.faulty_front import Plan, Request, faulty_front
from tests.support.name_node_front import name_node_front
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.objects import objects_below
from wirewitness.analyser.base.storage.stores import store_of

BUCKET = "captures"


class Front(Protocol):
    """port: of the front. seen: the requests so far."""

    port: int
    seen: list[Request]


class Store(Protocol):
    """A server of one kind. name: of the kind."""

    name: str

    def address(self, name: str) -> str:
        """Of an object or a folder."""

    def environment(self, port: int = 0) -> dict[str, str]:
        """What programs read. port: of a front before the server."""

    def front(self, plan: Plan) -> AbstractContextManager[Front]:
        """A front before the server."""

    def writes(self, request: Request) -> bool:
        """Whether a request brings an object."""

    def put(self, name: str, content: bytes) -> str:
        """Write an object; its address."""

    def make_older(self, name: str) -> None:
        """All objects below are of yesterday."""


@dataclass(frozen=True)
class _Served:
    """What a server on this machine has in common with others of its kind. See `Store`."""

    server: S3Server | AzureServer | GoogleServer
    name: str
    scheme: str

    def address(self, name: str) -> str:
        return f"{self.scheme}://{BUCKET}/{name}"

    def environment(self, port: int = 0) -> dict[str, str]:
        return self.server.environment(port)

    def front(self, plan: Plan) -> AbstractContextManager[Front]:
        return faulty_front(self.server.port, plan)

    def writes(self, request: Request) -> bool:
        return request.method == "PUT"


@dataclass(frozen=True)
class S3(_Served):
    """An S3 server."""

    server: S3Server
    name: str = "s3"
    scheme: str = "s3"

    def put(self, name: str, content: bytes) -> str:
        from tests.lab.stored import put

        return put(name, content, BUCKET)

    def make_older(self, name: str) -> None:
        for path in (self.server.buckets / BUCKET / name).rglob("*"):
            if path.is_file():
                os.utime(path, (0, path.stat().st_mtime - 25 * 3600))


class Bucket(_Served):
    """An emulator of Azure's or of Google's stores."""

    def put(self, name: str, content: bytes) -> str:
        import obstore

        address = address_of(self.address(name))
        assert address is not None
        obstore.put(store_of(address), address.key, content)
        return str(address)

    def make_older(self, name: str) -> None:
        raise NotImplementedError


class Hdfs(NamedTuple):
    """HDFS, by a name service, so that addresses are the same behind a front. See `Store`.

    settings: a folder for the files that tell where the name node is.
    """

    server: HdfsServer
    settings: Path
    name: str = "hdfs"

    def address(self, name: str) -> str:
        return f"hdfs://lab{self.server.port}/{name}"

    def environment(self, port: int = 0) -> dict[str, str]:
        folder = self.settings / str(port)
        write_settings(folder, {f"lab{self.server.port}": port or self.server.port})
        return {"HADOOP_USER_NAME": OWNER, "HADOOP_CONF_DIR": str(folder)}

    def front(self, plan: Plan) -> AbstractContextManager[Front]:
        return name_node_front(self.server.port, plan)

    def writes(self, request: Request) -> bool:
        return request.method == "create"

    def put(self, name: str, content: bytes) -> str:
        from tests.lab.in_hdfs import put

        put(self.server, name, content)
        return self.address(name)

    def make_older(self, name: str) -> None:
        from tests.lab.in_hdfs import client

        asked = client(self.server)
        for found in [*asked.list_status(f"/{name}", recursive=True)]:
            if not found.isdir:
                asked.set_times(found.path, found.modification_time - 25 * 3_600_000, found.access_time)


def write_settings(folder: Path, services: Mapping[str, int], default: str = "") -> None:
    """Hadoop's settings. services: name services, each with the port of its one name node."""
    settings = {"dfs.nameservices": ",".join(services), **({"fs.defaultFS": default} if default else {})}
    for name, port in services.items():
        settings[f"dfs.ha.namenodes.{name}"] = "one"
        settings[f"dfs.namenode.rpc-address.{name}.one"] = f"{ADDRESS}:{port}"
    text = "".join(f"<property><name>{one}</name><value>{value}</value></property>" for one, value in settings.items())
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(f"<configuration>{text}</configuration>")


def on_stores(*marks: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """A test for each kind of stores, as `store`. marks: of the one of HDFS."""
    return pytest.mark.parametrize("store", ["s3", pytest.param("hdfs", marks=marks)], indirect=True)


def files_of(address: str) -> dict[str, int]:
    """The objects below an address, each with its size, by their names there."""
    top = address_of(address)
    assert top is not None
    start = len(str(top)) + 1
    return {str(found)[start:]: found.stat().st_size for found in objects_below(top)}
