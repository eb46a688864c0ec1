"""What tests of HDFS do: put files there. In: paths and contents. Out: addresses."""

from __future__ import annotations

from pathlib import Path

from hdfs_native import Client, WriteOptions

from tests.lab.hdfs_server import ADDRESS, HdfsServer


def client(hdfs: HdfsServer) -> Client:
    """Of who owns all."""
    return Client(f"hdfs://{ADDRESS}:{hdfs.port}")


def put(hdfs: HdfsServer, path: str, content: bytes, permission: int = 0o644) -> str:
    """Write a file, in place of what is there; its address."""
    options = WriteOptions(create_parent=True, overwrite=True, permission=permission)
    with client(hdfs).create(f"/{path}", options) as stream:
        stream.write(content)
    return f"{hdfs.address}/{path}"


def put_folder(hdfs: HdfsServer, path: str, folder: Path) -> str:
    """Copy a folder's files; its address."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            put(hdfs, f"{path}/{file.relative_to(folder)}", file.read_bytes())
    return f"{hdfs.address}/{path}"
