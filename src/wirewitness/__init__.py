"""Packet captures of Kafka, MQTT and MongoDB as tables and findings.

    import wirewitness

    with wirewitness.read("incident.pcapng") as analysis:
        analysis.findings()             # pandas
        analysis.table("exchanges")

What is named in `__all__` is what others may rely on; it is imported when it is first asked for, so that importing this
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirewitness.analyser import CaptureError, Progress, ProgressCallback, ReadOptions, read
    from wirewitness.analyser.analysis.analysis import Analysis

    __version__: str

__all__ = ["Analysis", "CaptureError", "Progress", "ProgressCallback", "ReadOptions", "__version__", "read"]

_FACE = "wirewitness.analyser"
_ANALYSIS = "wirewitness.analyser.analysis.analysis"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name in __all__:
        return getattr(import_module(_ANALYSIS if name == "Analysis" else _FACE), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
