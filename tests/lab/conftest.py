"""What tests share: of the dashboard a server of their own, a browser, somebody before it; servers of stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

    from tests.lab.azure_server import AzureServer
    from tests.lab.google_server import GoogleServer
    from tests.lab.hdfs_server import HdfsServer
    from tests.lab.s3_server import S3Server
    from tests.lab.store_kinds import Store
    from tests.support.browser import Person


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a dashboard that offers the samples."""
    from tests.support.browser import dashboard

    with dashboard(tmp_path_factory.mktemp("dashboard")) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For several persons."""
    from tests.support.browser import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture
def somebody(browser: Browser, address: str) -> Iterator[Person]:
    """Whose browser asked no other machine for anything, and had no error."""
    from tests.support.browser import person

    with person(browser, address) as one:
        yield one
        assert one.strangers == []
        assert one.errors == []


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server with one bucket, `captures`."""
    from tests.lab.s3_server import s3_server

    with s3_server(tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture
def in_store(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process uses the server, too; a store opened for another test may go through a front that is gone."""
    from wirewitness.analyser.base.storage import stores

    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    stores._opened.cache_clear()
    yield
    stores._opened.cache_clear()


@pytest.fixture
def workers(spark: SparkSession, s3: S3Server) -> Iterator[SparkSession]:
    """Workers that know the store, as their machines would."""
    before = dict(spark.sparkContext.environment)
    spark.sparkContext.environment.update(s3.environment())
    yield spark
    spark.sparkContext.environment.clear()
    spark.sparkContext.environment.update(before)


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A name node and two data nodes."""
    from tests.lab.hdfs_server import hdfs_server

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", "lab")
        with hdfs_server(tmp_path_factory.mktemp("hdfs")) as started:
            yield started


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """An emulator with one container, `captures`."""
    from tests.lab.azure_server import azure_server

    with azure_server(tmp_path_factory.mktemp("azure")) as started:
        yield started


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    """An emulator with one bucket, `captures`."""
    from tests.lab.google_server import google_server

    with google_server(tmp_path_factory.mktemp("google")) as started:
        yield started


@pytest.fixture
def as_owner(hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process and those that it starts may do all in HDFS."""
    for name, value in hdfs.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """The kind of stores that `on_stores` names; this process uses it, too."""
    from tests.lab.store_kinds import S3, Bucket, Hdfs
    from wirewitness.analyser.base.storage import stores

    server = request.getfixturevalue(request.param)
    kinds: dict[str, Callable[[], Store]] = {
        "s3": lambda: S3(server),
        "hdfs": lambda: Hdfs(server, tmp_path_factory.mktemp("settings")),
        "azure": lambda: Bucket(server, "azure", "abfs"),
        "google": lambda: Bucket(server, "google", "gs"),
    }
    kind = kinds[request.param]()
    for name, value in kind.environment().items():
        monkeypatch.setenv(name, value)
    stores._opened.cache_clear()
    yield kind
    stores._opened.cache_clear()
