"""What a study found beside what its paper says: numbers, claims, and a verdict."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from unweave.utils.errors import InputError, plural
from unweave.utils.locks import lock
from unweave.utils.storage import write_atomic

T = TypeVar("T")
CLOSE = 0.05  # of a score, or as a share of a larger number: nobody would call it another result
SURE = 0.05  # how likely a lead may be by chance alone (Welch's test) and still be called one


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
    """What is said, and whether it is so here; None: in the means, but runs differ too much to be sure."""

    text: str
    holds: bool | None
    own: bool = False
    """ours, not the paper's: it has no part in the verdict"""

    def told(self) -> str:
        """In a line."""
        state = {True: "holds", False: "does not hold", None: "holds in the means only"}[self.holds]
        return f"{state}: {self.text}" + (" (our own claim)" if self.own else "")


class Findings(NamedTuple):
    """All that is known of a table or figure."""

    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    """what the paper has and was not run"""
    notes: tuple[str, ...] = ()
    """what a reader should know besides"""

    def verdict(self) -> str:
        """Reproduced, not, or partly; by the claims, since numbers depend on data and time that we do not have."""
        theirs = [claim.holds for claim in self.claims if not claim.own]
        state = _state(theirs) if theirs else "drawn" if self.figures else "not run"
        return state + (f"; {plural(len(self.missing), 'part')} not run" if self.missing and state != "not run" else "")

    def distance(self) -> str:
        """How far our numbers are from the paper's, in words."""
        if not self.numbers:
            return ""
        off = np.abs([number.off for number in self.numbers])
        close = int((off <= CLOSE).sum())
        return f"{close} of {len(off)} numbers within {CLOSE}; half of them are more than {np.median(off):.2f} off"


def _state(claims: Sequence[bool | None]) -> str:
    held, half = claims.count(True), claims.count(None)
    if held == len(claims):
        return "reproduced"
    if not held:  # what chance may have done is no reproduction
        return f"in the means only: {half} of {len(claims)} claims" if half else "not reproduced"
    return f"partly: {held} of {len(claims)} claims" + (f", {half} in the means only" if half else "")


def ahead(
    text: str, scores: Mapping[str, Sequence[float]], ours: str, others: Iterable[str], *, tried: int = 1
) -> tuple[Claim, ...]:
    """The claim that ours has a better mean than each of the others; none where one of them was not run.

    `tried`: of so many settings ours was picked by these very scores, and is the less sure for it (Bonferroni).
    """
    rivals = list(others)
    if not rivals or not all(len(scores.get(name, ())) for name in (ours, *rivals)):
        return ()
    lead = [float(np.mean(scores[ours]) - np.mean(scores[name])) for name in rivals]
    if min(lead) <= 0:
        return (Claim(text, False),)
    several = all(len(scores[name]) > 1 for name in (ours, *rivals))
    sure = several and all(tried * _chance(scores[ours], scores[name]) < SURE for name in rivals)
    return (Claim(text, True if sure else None),)


def _chance(a: Sequence[float], b: Sequence[float]) -> float:
    """How likely so large a lead of a over b is by chance; runs that are all the same leave none."""
    if np.ptp(a) == 0 == np.ptp(b):
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # runs that are nearly the same
        return float(ttest_ind(a, b, equal_var=False, alternative="greater").pvalue)


def kept(rows: pd.DataFrame, path: Path, by: Sequence[str]) -> pd.DataFrame:
    """The table of a study, written: these rows, and those of other runs, told apart `by` some columns, that earlier
    calls have put there, or others that end at the same moment.
    """
    with lock(path):
        if path.is_file():
            before = pd.read_csv(path, keep_default_na=False, na_values=[""])
            if not {*by} <= {*before}:
                raise InputError(f"{path} has no columns {', '.join(by)}: it is another table; move it away")
            again = pd.MultiIndex.from_frame(before[[*by]]).isin(pd.MultiIndex.from_frame(rows[[*by]]))
            rows = pd.concat([before[~again], rows], ignore_index=True)
        write_atomic(path, rows.to_csv(index=False))
    return rows


def drawn(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those figures that are there."""
    return tuple(path for path in paths if path.is_file())


def together(found: Iterable[Findings]) -> Findings:
    """What several parts of a table found, as one."""
    whole = Findings()
    for part in found:
        whole = Findings(
            whole.numbers + part.numbers,
            whole.claims + part.claims,
            whole.figures + part.figures,
            whole.missing + part.missing,
            whole.notes + part.notes,
        )
    return whole


def contestants(found: dict[str, T], only: Sequence[str]) -> dict[str, T]:
    """Those that a study is asked for: each word is the whole name of one, or a part of the names of several."""
    names = {name for word in only for name in found if name == word or (word not in found and word in name)}
    if only and not names:
        raise InputError(f"--only {' '.join(only)}: no method is called so (there are: {', '.join(found)})")
    return {name: m for name, m in found.items() if name in names or not only}
