"""How long something takes, told so that a busy machine changes nothing: processor time, the least of several tries.

Beside other programs a run costs more than it takes, never less, so one try that is quick enough proves the claim, and
what is slow by itself is slow in every try.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 8


def seconds(run: Callable[[], object]) -> float:
    """Processor seconds of one call, of all threads of this process."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def takes_less_than(most_s: float, run: Callable[[], object]) -> bool:
    """Whether one of up to TRIES calls takes less processor time."""
    return any(seconds(run) < most_s for _ in range(TRIES))


def follows_size(took: Callable[[int], float], small: int, large: int, most_times: float, slack_s: float) -> str:
    """Why the larger size costs more than `most_times` the smaller one; empty where it does not.

    took: processor seconds for a size. slack_s: below, the clock decides. The least of up to TRIES tries counts.
    """
    least = {small: float("inf"), large: float("inf")}
    for _ in range(TRIES):
        least = {size: min(so_far, took(size)) for size, so_far in least.items()}
        if least[large] < most_times * least[small] + slack_s:
            return ""
    return f"{least[small]:.3f} s for {small} become {least[large]:.3f} s for {large}"
