"""Where JSON begins, for many payloads at once. In: nothing. Out: `BEGINS_JSON`."""

from __future__ import annotations

import numpy as np

from wirewitness.dissectors.core.payloads import JSON

# By the first two bytes: do they begin JSON, whose last byte is the first one and 2.
BEGINS_JSON = np.zeros((256, 256), bool)
for _first, (_last, _second) in JSON.items():
    BEGINS_JSON[_first, list(_second)] = _last == _first + 2
