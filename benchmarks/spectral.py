"""HLLE + ICA against scikit-learn's, on the same points in the same run: python benchmarks/spectral.py [NAME ...]

small: 3,000 images of 64 x 64 (k = 10, 15, 30; medians of interleaved runs), and what the search over k costs.
large: 30,000 and 100,000 points, full solve and landmarks, two to five dimensions; scikit-learn once, at 30,000.
million: 1,000,000 images of 64 x 64 as bytes, from pixels to codes, with the peak of the process's memory.
stream: 100,000 to 10,000,000 points of 50 numbers from a file on the disk (2 GB), codes into another, and the memory.
Without an argument, small and large. Times are of two cores; trust ratios of one run.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import FastICA
from sklearn.manifold import LocallyLinearEmbedding

from unweave.data.containers import Mixing
from unweave.datasets import FlatSheet, SquaresXY
from unweave.methods import HessianICA
from unweave.metrics import mcc

CHUNK = 100_000  # rows written, and encoded, at a time
SETTLE_SECONDS = 0.5  # before a measurement: threads of scikit-learn's linear algebra wait actively for a while


def seconds(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    time.sleep(SETTLE_SECONDS)
    start = time.perf_counter()
    value = function(*args)
    return value, time.perf_counter() - start


def by_hand(x: np.ndarray, d: int, k: int) -> np.ndarray:
    """What one would write: scikit-learn's HLLE, then FastICA."""
    lle = LocallyLinearEmbedding(n_components=d, n_neighbors=k, method="hessian", eigen_solver="arpack", random_state=0)
    y = lle.fit_transform(x)
    return FastICA(fun="cube", whiten="unit-variance", random_state=0).fit_transform(y * len(x) ** 0.5)


def squares(points: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images of a moving square as bytes, blurred by two pixels, (n, 64, 64), and its position."""
    data = SquaresXY(points=points, seed=seed, blur=2.0).load()
    assert isinstance(data, Mixing) and data.sources is not None
    x = np.empty((points, *data.shape[-2:]), np.uint8)
    for start in range(0, points, 10_000):
        part = data.render(data.sources[start : start + 10_000])
        x[start : start + 10_000] = (255 * part[:, 0]).round().byte().numpy()
    return x, data.sources.numpy()


def sheet(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """A flat manifold in 50 dimensions, and its coordinates."""
    data = FlatSheet(dimensions=d, points=n).load()
    assert isinstance(data, Mixing) and data.sources is not None
    return data.render(data.sources).numpy(), data.sources.numpy()


def fitted(x: np.ndarray, **settings: Any) -> HessianICA:
    return HessianICA(**settings).fit(x)


def small() -> None:
    x, z = squares(3_000)
    raw = x.reshape(len(x), -1) / 255.0
    plain = {"latent_dim": 2, "smooth": 0.0}  # as scikit-learn has it: the dimension given, no blur
    for k in (10, 15, 30):
        slow, fast = [], []
        for _ in range(3):
            theirs, t = seconds(by_hand, raw, 2, k)
            slow.append(t)
            ours, t = seconds(lambda k=k: fitted(x, n_neighbors=k, **plain))
            fast.append(t)
        a, b = median(slow), median(fast)
        scores = f"MCC {mcc(z, theirs):.4f} and {mcc(z, ours.codes_):.4f}"
        print(
            f"3,000 images, k={k}: scikit-learn {a:.2f} s, unweave {b:.3f} s: {a / b:.0f} times; {scores}", flush=True
        )
    one, search = [], []
    for _ in range(3):
        found, t = seconds(lambda: fitted(x, **plain))
        search.append(t)
        one.append(seconds(lambda k: fitted(x, n_neighbors=k, **plain), found.n_neighbors_)[1])
    a, b = median(search), median(one)
    print(f"the search over 8 values of k: {a:.2f} s, one fit {b:.2f} s: {a / b:.1f} times")


def large() -> None:
    print("full solve, two dimensions, k=15:")
    sizes, times = (3_000, 10_000, 30_000, 100_000), []
    for n in sizes:
        x, z = sheet(n, 2)
        found, t = seconds(lambda x=x: fitted(x, latent_dim=2, n_neighbors=15, landmarks=0))
        times.append(t)
        print(f"  {n:>9,} points: {t:7.2f} s, MCC {mcc(z, found.codes_):.4f}", flush=True)
    print(f"  time grows like N^{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}")
    x, z = sheet(30_000, 2)
    theirs, slow = seconds(by_hand, x, 2, 30)
    print(f"30,000 points, k=30: scikit-learn {slow:.1f} s, MCC {mcc(z, theirs):.4f}", flush=True)
    for name, count in (("full solve", 0), ("landmarks, the default", "auto")):
        codes, t = seconds(lambda m=count: HessianICA(latent_dim=2, n_neighbors=30, landmarks=m).fit_transform(x))
        print(f"  unweave, {name}: {t:.2f} s, MCC {mcc(z, codes):.4f}: {slow / t:.0f} times", flush=True)
    print("100,000 points by landmarks, k chosen:")
    for d in (2, 3, 4, 5):
        x, z = sheet(100_000, d)
        codes, t = seconds(lambda x=x, d=d: HessianICA(latent_dim=d).fit_transform(x))
        print(f"  {d} dimensions: {t:.1f} s, MCC {mcc(z, codes):.4f}", flush=True)


def million() -> None:
    x, z = squares(1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    codes, t = seconds(lambda: HessianICA().fit_transform(x))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"1,000,000 images of 64 x 64: {t:.1f} s from bytes to codes, MCC {mcc(z, codes):.4f}")
    print(f"  memory: {before:.1f} GB with the images, {peak:.1f} GB at most")


def write_sheet(path: Path, n: int, rng: np.random.Generator) -> np.ndarray:
    """Write points of a flat manifold in 50 dimensions to a file, and return their coordinates."""
    data = FlatSheet(dimensions=2, points=2).load()
    z = rng.uniform(-1, 1, (n, 2))
    x = np.lib.format.open_memmap(path, "w+", np.float32, (n, 50))
    for start in range(0, n, CHUNK):
        x[start : start + CHUNK] = data.render(torch.from_numpy(z[start : start + CHUNK])).numpy()
    x.flush()
    return z


def stream() -> None:
    sizes, times = (100_000, 1_000_000, 10_000_000), []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / "points.npy"
            z = write_sheet(path, n, np.random.default_rng(0))
            x = np.load(path, mmap_mode="r")
            codes = np.lib.format.open_memmap(Path(folder) / "codes.npy", "w+", np.float32, (n, 2))
            start = time.perf_counter()
            method = HessianICA().fit(x)
            fit = time.perf_counter() - start
            for row in range(0, n, CHUNK):
                codes[row : row + CHUNK] = method.transform(x[row : row + CHUNK])
            times.append(time.perf_counter() - start)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            every = slice(None, None, max(1, n // 100_000))
            quality = f"MCC {mcc(z[every], codes[every]):.4f}, {peak:.1f} GB at most"
            print(f"{n:>10,} points from disk: fit {fit:.1f} s, all {times[-1]:.1f} s, {quality}", flush=True)
    print(f"time grows like N^{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("small", "large"):
        {"small": small, "large": large, "million": million, "stream": stream}[name]()
