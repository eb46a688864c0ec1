"""What the tests of this folder share."""

from __future__ import annotations

import pytest

from wirewitness.dissectors.mqtt import decoder as mqtt_decoder
from wirewitness.dissectors.mqtt.lockstep import batch_decode as together_module


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are read together however few they are, and however many are read alone between them."""
    for module, name, value in (
        (mqtt_decoder, "MANY_FRAMES", 1),
        (mqtt_decoder, "LEAST_FRAMES", 1),
        (together_module, "LEAST", 1),
        (together_module, "LEAST_BESIDE", 0),
    ):
        monkeypatch.setattr(module, name, value)
