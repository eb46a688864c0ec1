"""The plugin for pytest, run by pytest: packets of real connections over the loopback, and who may not take them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.app.program import environment
from tests.conftest import ROOT
from wirewitness.analyser.live.capturer import may_capture

# A MongoDB server in memory and the real driver.
BEGIN = """
import pytest
from pymongo import MongoClient
from tests.support.mongo_server.server import Server, serving

@pytest.fixture
def shop(wire):
    with Server(("127.0.0.1", 0)) as server:
        serving(server)
        with MongoClient(server.address_text, appname="till", directConnection=True) as client:
            client.shop.orders.insert_many([{"n": n} for n in range(10)])
            yield client.shop
        server.shutdown()
"""
HEALTHY = """
def test_cursors_end(shop, wire):
    assert len(list(shop.orders.find(batch_size=2))) == 10
    shop.client.close()
    wire.expect("mongo-driver", about={"application": "till"})
    rows = wire.sql("select command, ok from mongo_commands where collection = 'orders' order by ts")
    assert [row["command"] for row in rows] == ["insert", "find"] + ["getMore"] * 4 + ["getMore"] * (len(rows) - 6)
"""
LEAKING = """
def test_cursor_is_left(shop, wire):
    cursor = shop.orders.find(batch_size=2, no_cursor_timeout=True)
    next(cursor)
    shop.client.close()
    wire.expect("mongo-driver", about={"application": "till"})
"""
MISUSED = """
import pytest

@pytest.mark.wire(interface="lo")
def test_marker(wire):
    pass

@pytest.mark.wire(interfaces=["none0"])
def test_interface(wire):
    pass

@pytest.mark.wire(ports=[1])
def test_question(wire):
    assert wire.findings(at_least="critical") == []
    for ask in (lambda: wire.sql("select nothing from flows"), lambda: wire.expect("mongo-drivr")):
        try:
            ask()
        except Exception as error:
            print("told", type(error).__name__, error)
    wire.expect("mongo-driver")
"""
# Root without the right to capture, as in most containers.
WITHOUT_RIGHT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 13, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_NET_RAW
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def pytest_of(folder: Path, text: str, *before: str) -> tuple[int, str]:
    """Exit status and output of pytest over one file of tests."""
    (folder / "test_wire.py").write_text(text)
    words = ["-m", "pytest", "-p", "wirewitness_pytest", "-p", "no:cacheprovider", "-ra", "--strict-markers", "-s"]
    done = subprocess.run(
        [sys.executable, *before, *words, f"--basetemp={folder / 'base'}", str(folder / "test_wire.py")],
        capture_output=True, text=True, cwd=folder, env=environment(COLUMNS="150"), timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def require_rights() -> None:
    if not may_capture():
        pytest.skip("capturing needs CAP_NET_RAW")


def test_the_traffic_of_a_test_is_judged(tmp_path: Path) -> None:
    require_rights()
    status, told = pytest_of(tmp_path, BEGIN + HEALTHY + LEAKING)
    assert "1 failed, 1 passed" in told, told
    assert status == 1
    assert "AssertionError: the traffic does not keep to mongo-driver" in told
    assert "FAILED     cursors are read to their end or killed: 1 finding of MON104" in told
    assert "evidence   1 packet of" in told
    assert f"capture: {tmp_path / 'base' / 'test_cursor_is_left0' / 'wire.pcapng'}" in told


@pytest.mark.exhaustive
def test_what_cannot_be_asked_is_said(tmp_path: Path) -> None:
    require_rights()
    status, told = pytest_of(tmp_path, MISUSED)
    assert status == 1
    assert "the marker wire knows interfaces, options, ports, by name; not interface" in told
    assert "none0" in told
    assert "told WireError wirewitness: query: " in told
    assert "did you mean mongo-driver?" in told
    assert "That is a failure: nothing at all could be" in told


def test_who_may_not_capture_is_told_why_a_test_is_skipped(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a process drops the right of root: root is needed")
    text = "def test_it(wire):\n    raise AssertionError\n"
    status, told = pytest_of(tmp_path, text, "-c", WITHOUT_RIGHT)
    assert status == 0, told
    assert "1 skipped" in told
    assert "wire: no right to capture on lo (CAP_NET_RAW); run as root, or grant it to this Python" in told


def test_a_test_run_imports_nothing_of_it_but_the_plugin() -> None:
    program = "import sys, wirewitness_pytest; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    own = {name.partition(".")[0] for name in done.stdout.split()}
    assert own & {"wirewitness", "click", "numpy", "pandas", "pyarrow", "duckdb"} == set()


@pytest.mark.exhaustive
def test_packages_of_the_same_names_do_no_harm(tmp_path: Path) -> None:
    require_rights()
    for name in ("app", "analyser"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the package of the user')\n")
    status, told = pytest_of(tmp_path, "def test_it(wire):\n    assert wire.sql('select 1 as one') == [{'one': 1}]\n")
    assert status == 0, told


def test_the_plugin_is_installed_with_the_package() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert told["project"]["entry-points"]["pytest11"] == {"wirewitness_pytest": "wirewitness_pytest"}
    assert told["tool"]["setuptools"]["py-modules"] == ["wirewitness_pytest"]
