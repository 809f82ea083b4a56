"""Explicitness: can a linear classifier read the factors off the codes?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from unweave.metrics.contract import metric
from unweave.metrics.factors import check_trainable, prepare_factors, train_and_test


@metric(paper="Ridgeway and Mozer (2018), Sec. 3", worst=0.5)
def explicitness(factors: Any, codes: Any, *, train: float = 2 / 3, seed: int | None = 0) -> float:
    """Area under the ROC curve of a logistic regression on all codes, averaged over the values of each factor.

    Measured on rows that were not trained on; 0.5 is chance. A value that those rows lack, or that they all have, has
    no curve and is left out.
    """
    c, z = prepare_factors(factors, codes)
    learn, test = train_and_test(len(c), train, seed)
    z = StandardScaler().fit(z[learn]).transform(z)
    return float(np.mean([_area(y, j, z, learn, test) for j, y in enumerate(c.classes)]))


def _area(y: np.ndarray, j: int, z: np.ndarray, learn: np.ndarray, test: np.ndarray) -> float:
    check_trainable(y[learn], j)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=1000).fit(z[learn], y[learn])
    chance = model.predict_proba(z[test])  # (n, classes)
    hit = y[test][:, None] == model.classes_
    seen = np.flatnonzero(hit.any(0) & ~hit.all(0))
    return float(np.mean([roc_auc_score(hit[:, k], chance[:, k]) for k in seen])) if len(seen) else 0.5
