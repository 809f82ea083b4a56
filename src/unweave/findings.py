"""What a study found beside what its paper says: numbers, claims, and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

CLOSE = 0.05  # of a score, or as a share of a larger number: nobody would call it another result


class Number(NamedTuple):
    """A number of the paper, and ours, one for each run."""

    name: str
    ours: Sequence[float]
    paper: float

    @property
    def off(self) -> float:
        """How much more we have, in units in which CLOSE is small."""
        return (float(np.mean(self.ours)) - self.paper) / max(1.0, abs(self.paper))


class Claim(NamedTuple):
    """What the paper says, and whether it is so here."""

    text: str
    holds: bool


class Findings(NamedTuple):
    """All that is known of a table or figure."""

    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Path, ...] = ()

    def verdict(self) -> str:
        """Reproduced, not, or partly; by the claims, since numbers depend on data and time that we do not have."""
        held, said = sum(claim.holds for claim in self.claims), len(self.claims)
        if not said:
            return "drawn" if self.figures else "not run"
        return "reproduced" if held == said else f"partly: {held} of {said} claims" if held else "not reproduced"

    def distance(self) -> str:
        """How far our numbers are from the paper's, in words."""
        if not self.numbers:
            return ""
        off = np.array([number.off for number in self.numbers])
        close = int((np.abs(off) <= CLOSE).sum())
        return f"{close} of {len(off)} numbers within {CLOSE}; half of ours are {np.median(off):+.2f} off or higher"


def drawn(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those figures that are there."""
    return tuple(path for path in paths if path.is_file())


def together(found: Iterable[Findings]) -> Findings:
    """What several parts of a table found, as one."""
    whole = Findings()
    for numbers, claims, figures in found:
        whole = Findings(whole.numbers + numbers, whole.claims + claims, whole.figures + figures)
    return whole
