"""Addresses of HDFS, and what is said where its client is not installed or says what went wrong."""

from __future__ import annotations

import sys

import pytest

from wirewitness.analyser.base.storage.address import Address, address_of
from wirewitness.analyser.base.storage.hdfs import client_of
from wirewitness.analyser.base.storage.hdfs_faults import os_error
from wirewitness.analyser.base.storage.stores import NoStorage


@pytest.mark.parametrize(
    ("name", "store", "key"),
    [
        ("hdfs://host:8020/a b/100%25.pcap", "host:8020", "a b/100%25.pcap"),
        ("hdfs://nameservice/a", "nameservice", "a"),
        ("hdfs:///a/b", "", "a/b"),
    ],
)
def test_addresses_are_taken_as_they_are_written(name: str, store: str, key: str) -> None:
    assert address_of(name) == Address("hdfs", store, key)
    assert str(address_of(name)) == name


def test_buckets_have_no_default() -> None:
    assert address_of("s3:///a/b") is None


def test_without_its_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(NoStorage, match=r"HDFS needs more packages: .*-e '\.\[hdfs\]'"):
        client_of(Address("hdfs", "nobody:1", "a"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (RuntimeError('RPCError("org.apache.hadoop.ipc.StandbyException", "x\\n\\tat y")'), "answers StandbyException"),
        (RuntimeError('RPCError("a.AccessControlException", "SIMPLE authentication is not enabled")'), "for Kerberos"),
        (RuntimeError("BlocksNotFound(/x)"), "no data node has all of its blocks"),
        (RuntimeError('RPCError("a.Exception", "/f (is not a directory)\\n\\tat x")'), "a file is where a folder"),
        (RuntimeError('RPCError("a.SafeModeException", "Name node is in safe mode.")'), "in which nothing is written"),
        (RuntimeError('RPCError("a.IOException", "File /x could only be written to 0 of the 1 minReplication nodes")'),
         "no data node takes its blocks"),
        (RuntimeError("secret=abc"), "the store cannot be read or written"),
    ],
)  # fmt: skip
def test_what_it_says_becomes_one_line_of_ours(said: Exception, told: str) -> None:
    error = os_error(said, "hdfs://host:1/a")
    assert told in str(error)
    assert "\n" not in str(error)
    assert "secret" not in str(error)
