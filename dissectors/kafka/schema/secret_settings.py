"""Settings that hold a secret: the name of a setting and its value in, the value fit to be shown out.

Brokers treat settings of type PASSWORD as secret; a client may set others that they do not know (plugins, connectors).
So names decide, and rather one value too many is masked.
"""

from __future__ import annotations

import re

from dissectors.kafka.schema.definitions import MASKED

_ANYWHERE = re.compile(r"passw|passphrase|secret|jaas|credential", re.IGNORECASE)
# The last letters of a word of the name: ssl.keystore.key, apiKey, ssl.truststore.certificates; not ssl.keystore.type.
_WORD_END = re.compile(r"(?:key|token|pwd|certificates?|certificate\.chain)(?:$|[._-])", re.IGNORECASE)
_USER_INFO = re.compile(r"(://[^\s/:@]*):[^\s@]+@")


def is_secret(name: str) -> bool:
    """Is the value of a setting of this name kept back?"""
    return _ANYWHERE.search(name) is not None or _WORD_END.search(name) is not None


def shown(name: str, value: str | None) -> str:
    """The value as people may see it: masked for a secret setting; a password inside a URL is masked too."""
    if value is None:
        return "null"
    return str(MASKED["string"]) if is_secret(name) else _USER_INFO.sub(r"\1:***@", value)
