"""Score one or many codes with every metric."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from unweave import metrics as _metrics
from unweave.metrics.contract import Metric, as_matrix, as_numbers, column_name, same_rows, variants
from unweave.metrics.factors import PreparedFactors, prepared
from unweave.metrics.uncertainty import score_table
from unweave.utils.errors import InputError


def score_all(factors: Any, codes: Any, *, chance: bool = False, bootstrap: int = 0, seed: int = 0) -> pd.DataFrame:
    """Every score that needs factors, one row each: value, best, and on request the chance level and an interval.

    A score that cannot be had of these data is left out, with a warning that says why. Variants go by their names,
    `sap[svm]`, `sap[r2]`; slow ones (`dci[gbt]`) are left out. The chance level is the score of the same codes,
    shuffled; the interval holds 95 % of `bootstrap` resamples.
    """
    truth = prepared(factors)
    found: dict[str, dict[str, float]] = {}
    same_rows(truth.c, as_matrix(codes, "codes"), "factors")
    for name, scorer in _scorers().items():
        with _told(name):
            found |= score_table(name, scorer, truth, codes, chance=chance, bootstrap=bootstrap, seed=seed)
    return pd.DataFrame(found).T


def score_many(
    factors: Any, codes: Mapping[str, Any], *, metrics: Mapping[str, Metric] | None = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Many codes of the same observations, one row each, one column per score; what the factors decide is done once.

    `n_jobs` processes share the work, as in scikit-learn: -1 for all cores.
    """
    truth, scorers, every = prepared(factors), dict(metrics or _scorers()), list(codes.values())
    expected = 1 if n_jobs is None else n_jobs if n_jobs > 0 else (os.cpu_count() or 1) + 1 + n_jobs
    share = -(-len(every) // max(1, expected)) or 1
    # One task for each process, so that each works out only once what the factors decide.
    parts = [every[start : start + share] for start in range(0, len(every), share)]
    rows = Parallel(n_jobs=n_jobs)(delayed(_rows)(scorers, truth, part) for part in parts)
    return pd.DataFrame([row for part in rows for row in part], index=list(codes))


def _rows(scorers: Mapping[str, Metric], truth: PreparedFactors, codes: Sequence[Any]) -> list[dict[str, float]]:
    return [_row(scorers, truth, z) for z in codes]


def _row(scorers: Mapping[str, Metric], truth: PreparedFactors, codes: Any) -> dict[str, float]:
    row: dict[str, float] = {}
    same_rows(truth.c, as_matrix(codes, "codes"), "factors")
    for name, scorer in scorers.items():
        with _told(name):
            row |= {column_name(name, part): v for part, v in as_numbers(scorer(truth, codes)).items()}
    return row


@contextmanager
def _told(name: str) -> Iterator[None]:
    """A score that cannot be had must not cost the others."""
    try:
        yield
    except InputError as error:
        warnings.warn(f"{name} was not computed: {error}", stacklevel=4)


def _scorers() -> dict[str, Metric]:
    """Every metric that compares codes with factors, in all variants but the slow ones."""
    found = [(name, getattr(_metrics, name)) for name in _metrics.__all__ if hasattr(getattr(_metrics, name), "facts")]
    usable = [scorer for _, scorer in found if scorer.facts.truth == "factors"]
    return {name: variant for scorer in usable for name, variant in variants(scorer, every=True).items()}
