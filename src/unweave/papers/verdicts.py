"""Results of a script beside those of its paper: numbers, claims, and a verdict."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError, plural
from unweave.utils.locks import lock

T = TypeVar("T")
TOLERANCE = 0.05  # difference of two scores that counts as the same result; relative for numbers above 1
SIGNIFICANCE = 0.05  # a lead counts where Welch's one-sided test has a smaller p


class Number(NamedTuple):
    """A number of the paper beside ours, one value for each run."""

    name: str
    ours: Sequence[float]
    paper: float

    @property
    def difference(self) -> float:
        """Our mean minus the paper's number, relative where the latter is above 1."""
        return (float(np.mean(self.ours)) - self.paper) / max(1.0, abs(self.paper))


class Claim(NamedTuple):
    """A statement, and whether our results support it; None: the means do, but p is not below 0.05."""

    text: str
    holds: bool | None
    own: bool = False
    """Whether the claim is ours: then it has no part in the verdict on the paper."""
    subject: str = ""
    """The part of the text in which claims of the same kind differ, e.g. the name of a method."""
    p: float | None = None
    """p-value of a lead, corrected for the number of candidates; None where there is none."""

    def describe(self) -> str:
        """Return the claim and its state in a line."""
        state = {True: "holds", False: "does not hold", None: "holds in the mean only"}[self.holds]
        return f"{state}: {self.text}{describe_p(self.p)}" + (" (our own claim)" if self.own else "")


def describe_p(p: float | None) -> str:
    """Return a p-value in parentheses; nothing for None."""
    return "" if p is None else " (p < 0.001)" if p < 0.001 else f" (p = {p:.{2 if p >= 0.095 else 3}f})"


class Findings(NamedTuple):
    """Conclusions from the stored results about a table or figure."""

    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Path, ...] = ()
    """Figures that were drawn."""
    missing: tuple[str, ...] = ()
    """Parts of the paper that we did not run."""
    notes: tuple[str, ...] = ()
    effort: str = ""
    """Seeds and steps behind the results."""

    def verdict(self) -> str:
        """Return the verdict by the paper's claims: "reproduced", "not reproduced", "not run", ...

        Numbers have no part in it, since they depend on data and budgets that differ from the paper's.
        """
        states = [claim.holds for claim in self.claims if not claim.own]
        state = _summarize(states) if states else "drawn" if self.figures else "run" if self.effort else "not run"
        return state + (f"; {plural(len(self.missing), 'part')} not run" if self.missing and state != "not run" else "")

    def status(self) -> str:
        """Return the verdict with seeds and steps."""
        return self.verdict() + (f" ({self.effort})" if self.effort else "")

    def distance(self) -> str:
        """Return how far our numbers are from the paper's, in words."""
        if not self.numbers:
            return ""
        differences = np.abs([number.difference for number in self.numbers])
        close = int((differences <= TOLERANCE).sum())
        median = f"median difference {np.median(differences):.2f}"
        return f"{close} of {len(differences)} numbers within {TOLERANCE}; {median}"


def join_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Return claims with the same state whose texts differ only in their subjects as one claim."""
    groups: dict[tuple[str, bool | None, bool], list[str]] = {}
    for claim in claims:
        word = rf"(?<!\w){re.escape(claim.subject)}(?!\w)"
        pattern = re.sub(word, "{}", claim.text, count=1) if claim.subject else claim.text
        shown = claim.subject + describe_p(claim.p) if claim.subject else ""
        pattern += "" if claim.subject else describe_p(claim.p)
        groups.setdefault((pattern, claim.holds, claim.own), []).append(shown)
    joined = []
    for (pattern, holds, own), subjects in groups.items():
        separator = "; " if any("," in subject for subject in subjects) else ", "
        joined.append(Claim(pattern.replace("{}", separator.join(subjects), 1), holds, own))
    return joined


def _summarize(claims: Sequence[bool | None]) -> str:
    held, in_mean = claims.count(True), claims.count(None)
    if held == len(claims):
        return "reproduced"
    if not held:  # a lead that chance may explain is no reproduction
        return f"mean only: {in_mean} of {len(claims)} claims" if in_mean else "not reproduced"
    return f"partly reproduced: {held} of {len(claims)} claims" + (f", {in_mean} mean only" if in_mean else "")


def compare_means(
    text: str, scores: Mapping[str, Sequence[float]], ours: str, others: Iterable[str], *, candidates: int = 1
) -> tuple[Claim, ...]:
    """Return the claim that our mean is above that of each of the others; no claim where one of them was not run.

    Args:
        text: The claim in words.
        scores: Scores of the runs by method; larger is better.
        ours: The method that the claim is about.
        others: The methods that it is compared with.
        candidates: Number of settings that ours was chosen from by these very scores (Bonferroni correction).
    """
    rivals = list(others)
    if not rivals or not all(len(scores.get(name, ())) for name in (ours, *rivals)):
        return ()
    leads = [float(np.mean(scores[ours]) - np.mean(scores[name])) for name in rivals]
    if min(leads) <= 0:
        return (Claim(text, False),)
    repeated = all(len(scores[name]) > 1 for name in (ours, *rivals))
    if not repeated:
        return (Claim(text, None),)
    p = min(1.0, candidates * max(_p_value(scores[ours], scores[name]) for name in rivals))
    return (Claim(text, True if p < SIGNIFICANCE else None, p=p),)


def _p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the p-value of Welch's one-sided test that `a` has the larger mean; 0 where no run differs."""
    if np.ptp(a) == 0 == np.ptp(b):
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # runs that are nearly the same
        return float(ttest_ind(a, b, equal_var=False, alternative="greater").pvalue)


def merge_rows(rows: pd.DataFrame, path: Path, by: Sequence[str]) -> pd.DataFrame:
    """Write rows into a table that may exist, and return all of its rows.

    Rows in the table with the same values in the columns `by` are replaced, others stay. Several processes may do so at
    the same time.
    """
    with lock(path):
        if path.is_file():
            before = pd.read_csv(path, keep_default_na=False, na_values=[""])
            if not {*by} <= {*before}:
                raise InputError(f"{path} has no columns {', '.join(by)}: it is another table; move it away")
            replaced = pd.MultiIndex.from_frame(before[[*by]]).isin(pd.MultiIndex.from_frame(rows[[*by]]))
            if not replaced.all():
                rows = pd.concat([before[~replaced], rows], ignore_index=True)
        write_atomic(path, rows.to_csv(index=False))
    return rows


def merge_findings(parts: Iterable[Findings]) -> Findings:
    """Return the findings of several runs of a script as one."""
    merged = Findings()
    for part in parts:
        efforts = dict.fromkeys(text for text in (merged.effort, part.effort) if text)
        merged = Findings(
            merged.numbers + part.numbers,
            merged.claims + part.claims,
            merged.figures + part.figures,
            merged.missing + part.missing,
            merged.notes + tuple(note for note in part.notes if note not in merged.notes),
            "; ".join(efforts),
        )
    return merged


def describe_effort(rows: pd.DataFrame, by: Sequence[str], steps: int) -> str:
    """Return the number of seeds per group of rows, and of steps, in words."""
    seeds = rows.groupby([*by])["seed"].nunique()
    low, high = int(seeds.min()), int(seeds.max())
    return (plural(low, "seed") if low == high else f"{low} to {high} seeds") + f", {steps:,} steps"


def select_methods(methods: dict[str, T], only: Sequence[str]) -> dict[str, T]:
    """Return the methods that `--only` asks for: each word is the name of one, or a part of the names of several."""
    names = {name for word in only for name in methods if name == word or (word not in methods and word in name)}
    if only and not names:
        raise InputError(f"--only {' '.join(only)}: no method has this name (there are: {', '.join(methods)})")
    return {name: method for name, method in methods.items() if name in names or not only}


def folder_name(name: str, parts: Mapping[str, bool]) -> str:
    """Return a folder's name with the parts whose value is true, e.g. "dsprites-small"."""
    return "-".join([name, *(part for part, used in parts.items() if used)])
