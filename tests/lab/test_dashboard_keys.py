"""The dashboard of an encrypted capture with its key log: in a real browser it shows what it shows of clear text.

No key is in a page, nor in what the dashboard keeps.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import SAMPLES
from tests.support.browser import chromium, dashboard, person
from tests.support.packets import pcap
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.wire import packets_of

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
SAMPLE = SAMPLES / "kafka_fenced_commit.pcapng"
PAGES = ("/findings", "/kafka-groups", "/exchanges", "/connections")


class Seen(NamedTuple):
    """What a dashboard showed on each page, in words, and all that it sent and kept."""

    words: dict[str, str]
    all_bytes: bytes


def look(capture: Path, folder: Path, *options: str) -> Seen:
    """Open each page once, and a connection and an exchange with its bytes."""
    folder.mkdir()
    words: dict[str, str] = {}
    html = ""
    with dashboard(folder, [capture], *options) as address, chromium() as browser, person(browser, address) as one:
        for page in PAGES:
            one.go(page)
            words[page] = one.reads()
            html += one.page.content()
        one.go("/exchanges")
        one.press_row(one.tables().first)
        words["an exchange"] = one.reads()
        html += one.page.content()
        assert one.errors == []
        assert one.strangers == []
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return Seen(words, kept + html.encode())


def test_pages_are_those_of_clear_text_and_no_key_is_anywhere(tmp_path: Path) -> None:
    sides = Sides(TLS_13)
    encrypted, clear = twin(packets_of(SAMPLE), sides)
    keylog = tmp_path / "keys.log"
    keylog.write_bytes(sides.keylog)
    seen = []
    for name, packets, options in (("tls", encrypted, [f"--keylog={keylog}"]), ("clear", clear, [])):
        capture = tmp_path / name / "incident.pcap"
        capture.parent.mkdir()
        capture.write_bytes(pcap(packets, nanoseconds=True))
        seen.append(look(capture, tmp_path / f"state-{name}", *options))
    decrypted, plain = seen
    for page in ("/findings", "/kafka-groups", "/exchanges"):
        assert decrypted.words[page] == plain.words[page]
    assert "fenced" in plain.words["/findings"]
    sizes = re.compile(r"[\d.,]+ (bytes|kB|MB)")  # TLS takes some of its own
    assert sizes.sub("", decrypted.words["/connections"]) == sizes.sub("", plain.words["/connections"])
    assert "OffsetCommit" in decrypted.words["/exchanges"]
    assert decrypted.words["an exchange"] != decrypted.words["/exchanges"]
    for line in (line for line in sides.keylog.splitlines() if not line.startswith(b"#")):
        secret = line.split()[2]
        assert secret not in decrypted.all_bytes
        assert bytes.fromhex(secret.decode()) not in decrypted.all_bytes
