"""Limits of the capture layer: a part of the one `Limits` value. In: nothing. Out: the names used in this folder."""

from wirewitness.dissectors.core.limits import MIB, CaptureLimits

__all__ = ["MIB", "CaptureLimits"]
