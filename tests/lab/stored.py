"""What tests of object stores do: put objects there, and run the command on them.

In: keys and contents; arguments of the command. Out: addresses; what the command printed, no credentials in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import obstore

from tests.lab.s3_server import KEY_ID, SECRET
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.stores import store_of

# What is asked of datasets wherever they lie, DATASET being the place.
QUESTIONS = (
    ("analyse", "DATASET", "--format", "json"),
    ("table", "exchanges", "DATASET", "--format", "csv", "--from", "2026-11-20T11:24:00"),
    ("query", "DATASET", "select protocol, count(*) from messages group by all order by all", "--format", "csv"),
    ("groups", "DATASET"),
)


def put(key: str, content: bytes, bucket: str = "captures") -> str:
    """Upload an object, in several parts where it is large; its address."""
    address = address_of(f"s3://{bucket}/{key}")
    assert address is not None
    obstore.put(store_of(address), key, content)
    return str(address)


def wirewitness(
    *arguments: str | Path, port: int | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What the command says. port: of a front before the S3 server. environment: what it has beside the test's."""
    front = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"} if port else {}
    code = "import sys; from wirewitness.app.start import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, **front, **(environment or {})},
    )  # fmt: skip
    assert SECRET not in done.stdout + done.stderr
    assert KEY_ID not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
