"""Side-by-side timings. Each line prints what was compared and the ratio: `make bench`."""

import time

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import FastICA
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.metrics.pairwise import euclidean_distances

from unweave.datasets import SquaresXY
from unweave.methods import HessianICA
from unweave.metrics import mcc


def timed(function, *args):
    start = time.perf_counter()
    value = function(*args)
    return value, time.perf_counter() - start


def plain(x: np.ndarray) -> np.ndarray:
    """The pipeline one would write by hand: scikit-learn's HLLE on raw pixels, then FastICA."""
    y = LocallyLinearEmbedding(n_components=2, n_neighbors=12, method="hessian", random_state=0).fit_transform(x)
    return FastICA(fun="cube", whiten="unit-variance", random_state=0).fit_transform(y * len(x) ** 0.5)


def main() -> None:
    data = SquaresXY().load()
    x = data.render(data.sources).flatten(1).double().numpy()
    theirs, slow = timed(plain, x)
    ours, fast = timed(HessianICA(n_neighbors=12).fit_transform, x)
    raw, _ = timed(HessianICA(n_neighbors=12, project=0).fit_transform, x)
    print(
        f"HLLE+ICA, 3,000 images of 64 x 64, 12 neighbours: by hand {slow:.1f} s, MCC {mcc(data.sources, theirs):.4f};"
    )
    print(f"  unweave {fast:.1f} s, MCC {mcc(data.sources, ours):.4f} ({slow / fast:.2f} times as fast)")
    print(f"  unweave without projection: MCC {mcc(data.sources, raw):.4f}")
    _, slow = timed(pdist, x)
    _, fast = timed(euclidean_distances, x)
    print(f"their distances: pdist {slow:.1f} s, matrix product {fast:.1f} s ({slow / fast:.0f} times as fast)")


if __name__ == "__main__":
    main()
