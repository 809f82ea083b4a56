"""Unsupervised disentanglement ranking (UDR): do the codes of several runs match one to one?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import Lasso

from unweave.metrics.contract import as_matrix, metric
from unweave.metrics.factors import active_codes
from unweave.metrics.mcc import standardize
from unweave.utils.errors import InputError, plural


@metric(paper="Duan et al. (2020), Eq. 3", truth="runs")
def udr(
    codes: Sequence[Any], *, similarity: Literal["spearman", "lasso"] = "spearman", informative: Sequence[Any] = ()
) -> np.ndarray:
    """One-to-one agreement of each run's codes with those of the other runs (Duan et al., 2020, Eq. 3).

    For a pair of runs, each code scores max(r)^2 / sum(r) of its similarities r to the codes of the other run. The
    means over the codes of either run count equally, as in the authors' code; in Eq. 3 all codes count equally. A run
    scores the median over the other runs.

    Args:
        codes: One array (n, d) per run, of the same observations in the same order.
        similarity: Absolute rank correlation, or the weights of an L1-penalized regression (0.1, standardized codes).
        informative: One mask (d,) per run of the codes to compare: those with a KL divergence above 0.01 in the paper.
            Default: codes that are not constant.

    Returns:
        One number from 0 to 1 per run, (runs,); 1 is best.

    Example:
        >>> import numpy as np
        >>> codes = np.random.default_rng(0).normal(size=(100, 2))
        >>> udr([codes, codes[:, ::-1], codes @ [[1, 1], [1, -1]]]).round(1)
        array([0.6, 0.6, 0.4])
    """
    runs = validate_runs(codes)
    masks = [np.asarray(m, bool) for m in informative] if len(informative) else [active_codes(z) for z in runs]
    if [len(m) for m in masks] != [z.shape[1] for z in runs]:
        raise InputError("`informative`: expected one mask per run, with one entry per code")
    runs = [z[:, mask] for z, mask in zip(runs, masks, strict=True)]
    if similarity == "spearman":
        pairs = _score_rank_correlations(runs)
    else:
        scores = [
            one_to_one_score(_similarities(a, b, similarity)) if a.size and b.size else 0 for a in runs for b in runs
        ]
        pairs = np.reshape(scores, (len(runs), len(runs))).astype(float)
    pairs[np.diag_indices(len(runs))] = np.nan
    return np.asarray(np.nanmedian((pairs + pairs.T) / 2, 1))


def one_to_one_score(r: np.ndarray) -> float:
    """Return 1 if every row and column of similarities has one entry of 1 and zeros otherwise, (a, b) -> number."""

    def mean_over_rows(r: np.ndarray) -> float:
        total = r.sum(1)
        return float(np.mean(np.where(total > 0, r.max(1) ** 2 / np.where(total > 0, total, 1), 0)))

    return (mean_over_rows(r) + mean_over_rows(r.T)) / 2


def _score_rank_correlations(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Return `one_to_one_score` of the rank correlations of every pair of runs, (runs, runs)."""
    scores = np.zeros((len(runs), len(runs)))  # of the codes of one run, before the mean with those of the other
    full = [i for i, z in enumerate(runs) if z.size]
    if not full:
        return scores
    every = standardize(np.concatenate([rankdata(runs[i], axis=0) for i in full], 1))
    first = np.cumsum([0, *(runs[i].shape[1] for i in full)])[:-1]
    for i, own in zip(full, np.split(every, first[1:], 1), strict=True):
        r = np.abs(own.T @ every / len(every))
        total, largest = np.add.reduceat(r, first, 1), np.maximum.reduceat(r, first, 1)  # (codes, runs)
        scores[i, full] = np.where(total > 0, largest**2 / np.where(total > 0, total, 1), 0).mean(0)
    return (scores + scores.T) / 2


def _similarities(a: np.ndarray, b: np.ndarray, similarity: str) -> np.ndarray:
    """Return the similarity of every code of one run to every code of another, (n, d) and (n, e) -> (d, e)."""
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
