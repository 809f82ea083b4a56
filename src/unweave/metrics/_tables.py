"""What metrics share: classes, histograms, mutual information, training and test rows."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import mutual_info_score

from ..errors import InputError

BINS = 20  # of a histogram, the field's convention
MOST_CLASSES = 100  # a factor with more values, or with fractions, counts as continuous


def is_discrete(column: np.ndarray) -> bool:
    """Whether a factor takes few whole values."""
    return bool((column == np.round(column)).all()) and len(np.unique(column)) <= MOST_CLASSES


def histogram(column: np.ndarray, bins: int = BINS) -> np.ndarray:
    """The number of the bin of equal width that each value falls into."""
    edges = np.histogram(column, bins)[1]
    return np.digitize(column, edges[:-1])


def classes(column: np.ndarray, bins: int = BINS) -> np.ndarray:
    """A factor as classes: its values where it is discrete, bins of equal count where it is continuous."""
    if is_discrete(column):
        return np.unique(column, return_inverse=True)[1]
    edges = np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])
    return np.digitize(column, edges)


def information(c: np.ndarray, z: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Mutual information of every factor with every code, in nats, (n, k), (n, d) -> (k, d).

    Codes by histogram; factors are not binned again where they are discrete.
    """
    factors = [column if is_discrete(column) else histogram(column, bins) for column in c.T]
    codes = [histogram(column, bins) for column in z.T]
    return np.array([[mutual_info_score(f, code) for code in codes] for f in factors])


def entropies(c: np.ndarray, bins: int = BINS) -> np.ndarray:
    """The entropy of every factor, in nats, (n, k) -> (k,)."""
    factors = [column if is_discrete(column) else histogram(column, bins) for column in c.T]
    return np.array([mutual_info_score(f, f) for f in factors])


def train_and_test(n: int, share: float, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train and to test on: shuffled by the seed, or in order where it is None."""
    if not 0 < share < 1:
        raise InputError(f"train={share}: wanted a share of the rows between 0 and 1")
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    cut = round(share * n)
    if cut < 2 or n - cut < 1:
        raise InputError(f"{n} samples are too few to train on {share:.0%} of them and to test on the rest")
    return order[:cut], order[cut:]


def check_trainable(y: np.ndarray, j: int) -> None:
    """A factor of which the training rows show one class only teaches nothing."""
    if len(np.unique(y)) < 2:
        raise InputError(f"factor {j} has one class only among the training rows; give more samples")


def alive(z: np.ndarray) -> np.ndarray:
    """Which codes ever change, (n, d) -> (d,)."""
    return z.std(0) > 1e-13 * np.abs(z).max(0)
