"""Conditions of digits that are finer than their classes: clusters within a class, and soft labels."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

N_COMPONENTS = 30  # of the digits of a class, before they are clustered


def cluster_classes(x: np.ndarray, labels: np.ndarray, clusters: int) -> np.ndarray:
    """Return the class and the cluster within it of each observation x (n, d), e.g. "7.2", (n,)."""
    names = np.empty(len(x), dtype="<U16")
    for k in np.unique(labels):
        own = np.flatnonzero(labels == k)
        components = PCA(min(N_COMPONENTS, len(own), x.shape[1]), random_state=0).fit_transform(x[own])
        cluster = KMeans(clusters, n_init=4, random_state=0).fit_predict(components)
        names[own] = [f"{k}.{c + 1}" for c in cluster]
    return names


def soften(p: np.ndarray, temperature: float) -> np.ndarray:
    """Return probabilities p (n, classes) of logits that are divided by a temperature."""
    softer = np.maximum(p, 1e-12) ** (1 / temperature)
    return np.asarray(softer / softer.sum(1, keepdims=True))
