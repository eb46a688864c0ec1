"""What a library says of a store, in words of ours: its own text has the address that was asked, with what signs it."""

from __future__ import annotations

import errno

import pytest

from wirewitness.analyser.base.storage.faults import ObjectChanged, os_error

pytest.importorskip("obstore")

ASKED = "Error performing GET https://lab.blob.core.windows.net/captures/a.pcap?sig=labSecret9Zr4 in 57.2ms"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError(f"not found: {ASKED} - Server returned non-2xx status code: 404 Not Found: "
                           "<Error><Code>NoSuchKey</Code></Error>\n\nDebug source:\n"), "no such object or bucket"),
        (FileNotFoundError(f"not found: {ASKED} <Code>NoSuchBucket</Code>"), "no such bucket"),
        (PermissionError(f"{ASKED} status code: 403 Forbidden: <Code>AccessDenied</Code>"), "permission denied (403"),
        (TimeoutError(f"{ASKED}: operation timed out"), "the store cannot be reached: no answer in time"),
    ],
)  # fmt: skip
def test_errors_of_python_with_the_librarys_text_are_told_in_ours(error: OSError, says: str) -> None:
    told = os_error(error, "abfs://captures/a.pcap", "abfs")
    assert (told.strerror or "").startswith(says)
    assert told.filename == "abfs://captures/a.pcap"
    assert "labSecret9Zr4" not in str(told)


def test_an_error_of_ours_stays_what_it_is() -> None:
    changed = ObjectChanged(errno.ESTALE, "it was replaced", "s3://b/k")
    assert os_error(changed, "s3://b/k", "s3") is changed
