"""Tables of every metric for one array of codes, or for many."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from unweave import metrics as _metrics
from unweave.metrics.contract import CIRCULAR, Metric, as_matrix, as_numbers, column_name, validate_rows, variants
from unweave.metrics.factors import PreparedFactors, prepared
from unweave.metrics.score_frame import ScoreTable
from unweave.metrics.uncertainty import score_table
from unweave.utils.errors import InputError

Row = dict[str, float]


def score_all(factors: Any, codes: Any, *, chance: bool = False, bootstrap: int = 0, seed: int = 0) -> pd.DataFrame:
    """Compute every metric that compares codes with factors, in all variants but the slow ones (`dci[gbt]`).

    A metric that these data do not allow is left out, with a warning that explains why.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        chance: Also the score of the same codes, shuffled.
        bootstrap: Number of resamples for a 95 % interval; 0 for none.
        seed: Seed of shuffles and resamples.

    Returns:
        One row per score, e.g. `sap[svm]`, with the columns value and best, and on request chance, low and high.
        Notebooks show it with three digits, and with chance a tint from chance to the best possible score.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(2, size=(60, 2))
        >>> table = score_all(factors, factors)
        >>> float(table.loc["mcc", "value"].round(3))
        1.0
    """
    truth = prepared(factors)
    rows: dict[str, dict[str, float]] = {}
    validate_rows(truth.c, as_matrix(codes, "codes"), "factors")
    for name, metric in _default_metrics(truth).items():
        with _warn_on_error(name):
            rows |= score_table(name, metric, truth, codes, chance=chance, bootstrap=bootstrap, seed=seed)
    return ScoreTable(pd.DataFrame(rows).T)


def score_many(
    factors: Any, codes: Mapping[str, Any], *, metrics: Mapping[str, Metric] | None = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Score many codes of the same observations; what depends only on the factors is computed once.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Arrays (n, d) by name.
        metrics: Metrics by name. Default: as in `score_all`.
        n_jobs: Processes, as in scikit-learn: -1 for all cores.

    Returns:
        One row per name, one column per score. Notebooks show three digits and mark the best of each column.

    Example:
        >>> import numpy as np
        >>> from unweave.metrics import mig
        >>> factors = np.random.default_rng(0).integers(3, size=(100, 2))
        >>> score_many(factors, {"a": factors, "b": factors}, metrics={"mig": mig}).shape
        (2, 1)
    """
    truth, chosen, every = prepared(factors), dict(metrics or _default_metrics(prepared(factors))), list(codes.values())
    processes = 1 if n_jobs is None else n_jobs if n_jobs > 0 else (os.cpu_count() or 1) + 1 + n_jobs
    share = -(-len(every) // max(1, processes)) or 1
    # One task per process, so that each computes only once what depends only on the factors.
    parts = [every[start : start + share] for start in range(0, len(every), share)]
    rows = Parallel(n_jobs=n_jobs)(delayed(_rows)(chosen, truth, part) for part in parts)
    table = ScoreTable([row for part in rows for row, _ in part], index=list(codes))
    table.best_scores = {column: best for part in rows for _, bests in part for column, best in bests.items()}
    return table


def _rows(metrics: Mapping[str, Metric], truth: PreparedFactors, codes: Sequence[Any]) -> list[tuple[Row, Row]]:
    return [_row(metrics, truth, z) for z in codes]


def _row(metrics: Mapping[str, Metric], truth: PreparedFactors, codes: Any) -> tuple[Row, Row]:
    """Return the scores and the best possible scores by column; counts, e.g. of active codes, have no best."""
    row, bests = Row(), Row()
    validate_rows(truth.c, as_matrix(codes, "codes"), "factors")
    for name, metric in metrics.items():
        with _warn_on_error(name):
            score = metric(truth, codes)
            for part, value in as_numbers(score).items():
                row[column_name(name, part)] = value
                if hasattr(metric, "facts") and not isinstance(getattr(score, part, None), int):
                    bests[column_name(name, part)] = metric.facts.best
    return row, bests


@contextmanager
def _warn_on_error(name: str) -> Iterator[None]:
    """Turn an InputError into a warning, so that the other metrics are computed."""
    try:
        yield
    except InputError as error:
        warnings.warn(f"{name} was not computed: {error}", stacklevel=4)


def _default_metrics(truth: PreparedFactors) -> dict[str, Metric]:
    """Return every metric that compares codes with such factors, in all variants but the slow ones."""
    exports = [getattr(_metrics, name) for name in _metrics.__all__]
    usable = [thing for thing in exports if hasattr(thing, "facts") and thing.facts.truth == "factors"]
    every = {name: variant for metric in usable for name, variant in variants(metric, every=True).items()}
    has_angles = any(period is not None for period in truth.periods)
    return {name: variant for name, variant in every.items() if has_angles or variant.facts.kinds != CIRCULAR}
