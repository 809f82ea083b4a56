"""What training reports while it runs: `Progress`, passed to a callback."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple


class Progress(NamedTuple):
    """State of a training run after a step.

    Example:
        >>> progress = Progress(100, 1_000, {"loss": [3.0, 4.0], "kl": [0.5, 0.1]}, 10.0, "stack")
        >>> progress.text("beta-vae")
        'beta-vae: step 100 of 1,000, loss 3.5, 10 steps/s (stack), 1:30 left'
    """

    step: int
    """Steps taken so far."""
    steps: int
    """Steps of the whole run."""
    terms: dict[str, list[float]]
    """Every term of the loss at the last step: one value per lane, in the order of the pack."""
    steps_per_second: float
    """Mean speed since training started or resumed."""
    strategy: str
    """How the steps are taken: stack, fork or loop, compiled or not."""

    @property
    def loss(self) -> float:
        """Mean loss of the lanes whose loss is finite; NaN if there are none."""
        finite = [value for value in self.terms["loss"] if math.isfinite(value)]
        return fmean(finite) if finite else math.nan

    def text(self, name: str) -> str:
        """Return one line: name, step, loss, speed and the time left."""
        seconds_left = int((self.steps - self.step) / max(self.steps_per_second, 1e-9))
        speed = f"{self.steps_per_second:,.0f}" if self.steps_per_second >= 10 else f"{self.steps_per_second:.1f}"
        return (
            f"{name}: step {self.step:,} of {self.steps:,}, loss {self.loss:.4g}, {speed} steps/s ({self.strategy}), "
            f"{seconds_left // 60}:{seconds_left % 60:02} left"
        )


Callback = Callable[[Progress], None]
"""Called after every chunk of steps, and every few seconds while steps are slow."""
