"""Explicitness: can a linear classifier predict the factors from the codes?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from unweave.metrics.contract import metric
from unweave.metrics.factors import check_trainable, prepare_factors, train_test_rows


@metric(paper="Ridgeway and Mozer (2018), Sec. 3", worst=0.5)
def explicitness(factors: Any, codes: Any, *, train: float = 2 / 3, seed: int | None = 0) -> float:
    """Area under the ROC curve of a logistic regression on all codes (Ridgeway and Mozer, 2018, Sec. 3).

    One area per value of each factor, one against the rest, averaged over values and then over factors. It is measured
    on test rows. A value that all test rows have, or none, is left out. A continuous factor is cut into 20 bins.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        train: Share of the rows to train on.
        seed: Seed of the split; None splits the rows in order.

    Returns:
        A number from 0 to 1; 1 is best, 0.5 is chance.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(2, size=(100, 2))
        >>> explicitness(factors, factors)
        1.0
    """
    c, z = prepare_factors(factors, codes)
    fit, test = train_test_rows(len(c), train, seed)
    z = StandardScaler().fit(z[fit]).transform(z)
    return float(np.mean([_area_under_curve(y, j, z, fit, test) for j, y in enumerate(c.classes)]))


def _area_under_curve(y: np.ndarray, j: int, z: np.ndarray, fit: np.ndarray, test: np.ndarray) -> float:
    check_trainable(y[fit], j)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=1000).fit(z[fit], y[fit])
    probability = model.predict_proba(z[test])  # (n, classes)
    is_class = y[test][:, None] == model.classes_
    usable = np.flatnonzero(is_class.any(0) & ~is_class.all(0))
    areas = [roc_auc_score(is_class[:, k], probability[:, k]) for k in usable]
    return float(np.mean(areas)) if areas else 0.5
