"""Which names are addresses of object stores, and what they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirewitness.analyser.base.storage.address import Address, address_of, local_path
from wirewitness.analyser.base.storage.files import absolute_name


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("s3://captures/2026/one.pcap", Address("s3", "captures", "2026/one.pcap")),
        ("s3a://captures/one.pcap", Address("s3", "captures", "one.pcap")),
        ("gcs://b/k", Address("gs", "b", "k")),
        ("abfss://box@account.dfs.core.windows.net/k", Address("abfs", "box@account.dfs.core.windows.net", "k")),
        ("s3://captures", Address("s3", "captures", "")),
        ("s3://captures/", Address("s3", "captures", "")),
        ("s3://c/with space/100%25 #1?.pcap", Address("s3", "c", "with space/100%25 #1?.pcap")),
        ("s3://c/line\nbreak", Address("s3", "c", "line\nbreak")),
    ],
)
def test_addresses(name: str, address: Address) -> None:
    assert address_of(name) == address
    assert address_of(str(address)) == address
    assert absolute_name(name) == name


@pytest.mark.parametrize(
    "name", ["s3:", "s3:/one", "s3://", "S3://b/k", "/s3://b/k", "http://b/k", "one.pcap", "-", ""]
)
def test_other_names_are_paths_of_this_machine(name: str) -> None:
    assert address_of(name) is None
    assert local_path(name) == Path(name)


def test_file_addresses_are_paths_of_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "a b.pcap"
    assert local_path(path.as_uri()) == path
    assert absolute_name(path.as_uri()) == str(path)
