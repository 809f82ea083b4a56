"""Which of several runs to trust, without labels: good codes agree with each other, bad ones each in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import Lasso

from unweave.metrics.contract import as_matrix, metric
from unweave.metrics.factors import alive
from unweave.metrics.mcc import correlations
from unweave.utils.errors import InputError, plural


@metric(paper="Duan et al. (2020), Eq. 3", truth="runs")
def udr(
    codes: Sequence[Any], *, similarity: Literal["spearman", "lasso"] = "spearman", informative: Sequence[Any] = ()
) -> np.ndarray:
    """Unsupervised disentanglement ranking: how well each run's codes match those of the others one to one, (runs,).

    `codes` holds an (n, d) array per run, of the same observations in the same order. For a pair of runs, each code
    scores r^2 / sum(r) of its similarities r to the other's codes, the largest one over all; the means over the codes
    of either run count alike, as in the authors' code (Eq. 3 has all codes count alike); a run scores the median over
    the others. `lasso` takes the weights of an L1-penalized regression (0.1, codes standardized) for similarities.
    `informative`, a mask (d,) per run, says which codes to look at: in the paper those with a KL above 0.01; without
    it, those that ever change.
    """
    runs = validate_runs(codes)
    masks = [np.asarray(m, bool) for m in informative] if len(informative) else [alive(z) for z in runs]
    if [len(m) for m in masks] != [z.shape[1] for z in runs]:
        raise InputError("`informative` wants one mask per run, with one entry per code")
    runs = [z[:, mask] for z, mask in zip(runs, masks, strict=True)]
    pairs = np.full((len(runs), len(runs)), np.nan)
    for i, a in enumerate(runs):
        for j, b in enumerate(runs):
            if i != j:
                pairs[i, j] = one_to_one(_similarities(a, b, similarity)) if a.size and b.size else 0.0
    return np.asarray(np.nanmedian((pairs + pairs.T) / 2, 1))


def one_to_one(r: np.ndarray) -> float:
    """1 where every row and every column of similarities has one entry of 1 and no other, (a, b) -> number."""

    def strength(r: np.ndarray) -> float:
        whole = r.sum(1)
        return float(np.mean(np.where(whole > 0, r.max(1) ** 2 / np.where(whole > 0, whole, 1), 0)))

    return (strength(r) + strength(r.T)) / 2


def _similarities(a: np.ndarray, b: np.ndarray, similarity: str) -> np.ndarray:
    """Of every code of one run with every code of another, (n, d) and (n, e) -> (d, e)."""
    if similarity == "spearman":
        return np.abs(correlations(a, b, "spearman"))
    if similarity != "lasso":
        raise InputError(f"similarity={similarity!r}: expected 'spearman' or 'lasso'")
    a, b = ((z - z.mean(0)) / z.std(0) for z in (a, b))
    return np.abs(np.atleast_2d(Lasso(alpha=0.1).fit(a, b).coef_)).T


def validate_runs(codes: Sequence[Any]) -> list[np.ndarray]:
    """Return the codes of every run as a matrix, (n, d); raise InputError unless all have the same rows."""
    runs = [as_matrix(z, "codes") for z in codes]
    if len(runs) < 2:
        raise InputError(f"{plural(len(runs), 'run')}: a comparison needs two at least, and is worth little below five")
    if len({len(z) for z in runs}) > 1:
        lengths = ", ".join(f"{len(z):,}" for z in runs)
        raise InputError(f"runs with {lengths} rows of codes: expected codes of the same observations")
    return runs
