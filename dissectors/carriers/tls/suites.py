"""How a cipher suite protects records, read from its name. In: a suite's number. Out: a `Suite`, or None.

Sources: RFC 5246 (CBC), 5288 (GCM), 6655 and 7251 (CCM), 7905 (ChaCha20), 5932 (Camellia), 8446 (TLS 1.3).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wirewitness.dissectors.carriers.tls.suite_names import NAMES

GCM, CCM, CHACHA, CBC = "GCM", "CCM", "POLY1305", "CBC"
_NAME = re.compile(
    r"TLS_(?:\w+_WITH_)?(?P<cipher>AES_128|AES_256|CHACHA20)_(?P<mode>GCM|CCM|POLY1305|CBC)(?P<short>_8)?"
    r"(?:_(?P<hash>SHA|SHA256|SHA384))?"
)
_KEY_BYTES = {"AES_128": 16, "AES_256": 32, "CHACHA20": 32}
_MAC_HASH = {"SHA": "sha1", "SHA256": "sha256", "SHA384": "sha384"}
_MAC_BYTES = {"sha1": 20, "sha256": 32, "sha384": 48}


class Suite(NamedTuple):
    """mode: one of those above. tag_bytes: of its tag, 0 in CBC. mac: name of the hash in its HMAC, CBC only.

    prf: name of the hash that keys are derived with.
    """

    mode: str
    key_bytes: int
    tag_bytes: int
    mac: str
    prf: str

    @property
    def mac_bytes(self) -> int:
        """Size of the HMAC and its key."""
        return _MAC_BYTES.get(self.mac, 0)


def suite_of(code: int) -> Suite | None:
    """None for a suite that is not known, or whose records are not opened here."""
    found = _NAME.fullmatch(NAMES.get(code, ""))
    if found is None:
        return None
    mode, named = found["mode"], found["hash"]
    tag_bytes = 0 if mode == CBC else 8 if found["short"] else 16
    mac = _MAC_HASH[named] if mode == CBC else ""
    return Suite(mode, _KEY_BYTES[found["cipher"]], tag_bytes, mac, "sha384" if named == "SHA384" else "sha256")
