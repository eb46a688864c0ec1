"""Stores, opened once for each bucket and process.

In: an address. Out: the library's store of its bucket. Credentials, endpoints and regions come from the environment
variables that the stores' own tools know; nothing of them is kept or shown by us.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.base.extras import are_there, how_to_install
from wirewitness.analyser.base.storage.address import Address

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# What reading a kind of stores needs: what it is called, the extra with its packages, and their modules. The last is
# DuckDB's way to the parts of a dataset.
_NEEDS = {"hdfs": ("HDFS needs", "hdfs", ("hdfs_native", "fsspec"))}
_BUCKETS_NEED = ("object stores need", "storage", ("obstore", "fsspec"))
# A store that asks to slow down is asked again for half a minute; one that is not there is told of in that time.
_RETRIES: Any = {
    "max_retries": 8,
    "retry_timeout": timedelta(minutes=2),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=8), "base": 2},
}
# For these libraries and for delta-rs, which reads stores through the same ones. For a block of a slow store the usual
# half minute is too short. HTTP is spoken only where an endpoint says http://.
SETTINGS: Any = {"timeout": "300s", "connect_timeout": "5s", "allow_http": "true", "user_agent": "wirewitness"}
# A name node that is not there is asked again for about twenty seconds.
HDFS_SETTINGS = {
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.base.millis": "200",
    "dfs.client.failover.sleep.max.millis": "8000",
}


def settings_of(address: Address) -> dict[str, str]:
    """What delta-rs is told of a store."""
    return HDFS_SETTINGS if address.scheme == "hdfs" else SETTINGS


class NoStorage(OSError):
    """The library that reads a kind of stores is not installed."""


@cache
def check_installed(scheme: str) -> None:
    """NoStorage where packages are missing that addresses of this scheme need."""
    who, extra, modules = _NEEDS.get(scheme, _BUCKETS_NEED)
    if not are_there(*modules):
        raise NoStorage(0, f"{who} more packages: {how_to_install(extra)}")


def library() -> ModuleType:
    """The library that reads buckets. NoStorage."""
    check_installed("")
    import obstore

    return obstore


def store_of(address: Address) -> ObjectStore:
    """The store of this address's bucket. OSError where it cannot be opened."""
    library()
    return _opened(address.scheme, address.store)


@cache
def _opened(scheme: str, store: str) -> ObjectStore:
    from obstore.store import from_url

    from wirewitness.analyser.base.storage.faults import os_error

    try:
        return from_url(f"{scheme}://{store}", client_options=SETTINGS, retry_config=_RETRIES)
    except Exception as error:
        raise os_error(error, f"{scheme}://{store}", scheme) from None
