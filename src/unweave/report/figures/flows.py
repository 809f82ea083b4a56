"""Figures of flows: recovered sources, spectra, single variables, samples per class (GIN, Sorrenson et al., 2020)."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA
from torch import Generator

from unweave.data.core import FactorData
from unweave.methods.encoding import to_scaled
from unweave.methods.flows.knee import INTERVAL, describe_interval
from unweave.metrics.mcc import correlations
from unweave.report.figures.style import make_panels
from unweave.report.figures.traversal import draw_grid
from unweave.utils.errors import InputError

MAX_POINTS = 4_000  # of a scatter plot
RANGE = 2.0  # standard deviations to both sides of the mean
STEPS = 9  # images in a row
MAX_VARIABLES = 24  # drawn one by one
MIN_DEVIATION = 1e-6  # lower end of logarithmic axes


def draw_recovery(method: Any, data: FactorData) -> Figure:
    """Return two sources, the data along two principal axes, the matching codes, and the spectrum (GIN, Figure 2)."""
    sources = [j for j, f in enumerate(data.factors) if f.size is None and not f.noise][:2]
    classes = next((j for j, f in enumerate(data.factors) if f.size is not None), None)
    if len(sources) < 2:
        raise InputError("the figure needs data with two real-valued factors")
    x, c = data.collect(MAX_POINTS, Generator().manual_seed(0))
    subset = torch.randperm(len(x), generator=Generator().manual_seed(0))[:MAX_POINTS]
    x, c = x[subset].float(), c[subset]
    truth = c[:, sources].double().numpy()
    colors: Any = c[:, classes].numpy() if classes is not None else "tab:blue"
    y = method.outputs(to_scaled(method, x)).double().numpy()[:, method.order_.numpy()]  # sorted by deviation
    r = correlations(truth, y)
    order = linear_sum_assignment(-np.abs(r))[1]
    codes = y[:, order] * np.sign(r[np.arange(2), order])
    score = float(np.abs(r[np.arange(2), order]).mean())
    figure, axes = make_panels(4)
    names = [data.factors[j].name for j in sources]
    _scatter(axes[0], truth, colors, "ground truth", names)
    projected = PCA(2).fit_transform(x.flatten(1).double().numpy())
    _scatter(axes[1], projected, colors, "observed (PCA)", ["first principal axis", "second principal axis"])
    labels = [f"code {order[0] + 1}", f"code {order[1] + 1}"]
    _scatter(axes[2], codes, colors, f"recovered: MCC {score:.3f}", labels)
    _draw_spectrum(axes[3], method.spectrum_, method.n_informative_, method.informative_interval())
    factors = c[:, [j for j, f in enumerate(data.factors) if f.size is None]].double().numpy()
    axes[3].plot(
        range(1, factors.shape[1] + 1), np.sort(factors.std(0))[::-1], "s", color="0.6", ms=4, label="true sources"
    )
    axes[3].legend(frameon=False)
    return figure


def draw_spectra(method: Any, X: np.ndarray) -> Figure:
    """Return the sorted deviations of the variables, all and around the knee, and those of PCA (GIN, Figure 3)."""
    knee = (method.n_informative_, method.informative_interval())
    return plot_spectra(method.spectrum_, *knee, method.pca_spectrum(X))


def plot_spectra(spectrum: np.ndarray, n: int, interval: tuple[int, int], pca: np.ndarray) -> Figure:
    """Return a sorted spectrum with its knee, whole and around the knee, and that of PCA.

    Args:
        spectrum: Deviations of the variables, descending, (features,).
        n: Number of informative variables.
        interval: 95 % interval of this number, drawn as a gray band.
        pca: Deviations along the principal axes, (axes,).
    """
    figure, axes = make_panels(3, width=3.4)
    _draw_spectrum(axes[0], spectrum, n, interval)
    _draw_spectrum(axes[1], spectrum, n, interval, max_variables=min(len(spectrum), max(3 * n, 10)))
    axes[2].semilogy(range(1, len(pca) + 1), np.maximum(pca, MIN_DEVIATION), ".", color="0.4", ms=4)
    axes[2].set_xlabel("principal axis")
    axes[2].set_ylabel("standard deviation")
    axes[2].set_title("PCA")
    return figure


def _draw_spectrum(
    axis: Axes, spectrum: np.ndarray, n: int, interval: tuple[int, int], *, max_variables: int | None = None
) -> None:
    s = spectrum[:max_variables]
    axis.semilogy(
        range(1, len(s) + 1), s, "o", color="black", ms=4 if len(s) < 100 else 2, label="variables of the flow"
    )
    mark_knee(axis, n, interval, len(spectrum))
    axis.set_xlim(1 - 0.03 * len(s), 1.03 * len(s))  # the band may be wider
    title = f"{n} informative" if n < len(spectrum) else "no knee"
    axis.set_title(f"{title} ({INTERVAL:.0%}: {describe_interval(interval)})")
    axis.set_xlabel("variable")
    axis.set_ylabel("standard deviation")


def mark_knee(axis: Axes, n: int, interval: tuple[int, int], features: int) -> None:
    """Draw the knee of a spectrum of `features` variables as a dotted line, and its interval as a gray band."""
    if n < features:
        axis.axvline(n + 0.5, color="0.5", ls=":")
        axis.axvspan(interval[0] + 0.5, interval[1] + 0.5, color="0.9", lw=0, zorder=0)


def _scatter(axis: Axes, points: np.ndarray, colors: Any, title: str, names: list[str]) -> None:
    axis.scatter(points[:, 0], points[:, 1], c=colors, s=2, cmap="tab10", linewidths=0, rasterized=True)
    axis.set_title(title)
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])


def draw_variable(method: Any, j: int, rows: dict[str, tuple[np.ndarray, np.ndarray]] | None = None) -> Figure:
    """Return images with variable j between -2 and +2 standard deviations, a class in each row (GIN, Figures 10-15).

    The other variables are fixed to the means of the class. The last column shows where the image changes: the
    absolute difference between -1 and +1 standard deviations.

    Args:
        method: A fitted flow.
        j: Index of the variable, sorted by importance.
        rows: Mean and standard deviation of the outputs, (features,) each, by the name of the row. Default: the
            classes of the method. For a method without classes see `class_centers`.
    """
    if len(method.shape_) not in (2, 3):
        raise InputError(f"observations of shape {method.shape_}: only images can be shown")
    if not 0 <= j < len(method.order_):
        raise InputError(f"variable {j} of {len(method.order_)}, counted from 0")
    i = int(method.order_[j])
    pictures = []
    for name, (center, deviation) in (rows or method.class_statistics()).items():
        offsets = [*np.linspace(-RANGE, RANGE, STEPS), -1.0, 1.0]
        y = np.repeat(np.asarray(center, np.float32)[None], len(offsets), 0)
        y[:, i] += np.asarray(offsets, np.float32) * deviation[i]
        images = _to_color(method.to_observations(torch.from_numpy(y)).numpy())
        change = np.abs(images[-1] - images[-2]).mean(0)
        pictures.append((name, images[:STEPS], change))
    largest = max(float(change.max()) for _, _, change in pictures)
    rows_of_images = [
        (name, np.concatenate([images, _to_heat_map(change / max(largest, 1e-6))])) for name, images, change in pictures
    ]
    title = f"variable {j + 1}: -{RANGE:g} to +{RANGE:g} standard deviations, and where the image changes"
    return draw_grid(rows_of_images, title)


def class_centers(method: Any, X: np.ndarray, labels: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return rows for `draw_variable`: for every label the mean of its outputs and the deviation of all outputs."""
    x = np.asarray(X, np.float32) / (255 if np.asarray(X).dtype == np.uint8 else 1)
    y = method.outputs(torch.from_numpy(x)).numpy()
    return {str(k): (y[labels == k].mean(0), y.std(0)) for k in np.unique(labels)}


def draw_samples(
    method: Any, *, rows: int = 8, temperature: float = 1.0, informative: bool = False, seed: int = 0
) -> Figure:
    """Return samples with a class in each column and the same whitened variables in each row (GIN, Figure 9)."""
    if len(method.shape_) not in (2, 3):
        raise InputError(f"observations of shape {method.shape_}: only images can be shown")
    samples = [
        method.sample(name, rows, temperature=temperature, informative=informative, seed=seed)
        for name in method.class_names_
    ]
    images = _to_color(np.stack(samples, 1).reshape(-1, *method.shape_)).reshape(
        rows, len(samples), 3, *method.shape_[-2:]
    )
    subset = f"the {method.n_informative_} informative variables" if informative else "all variables"
    return draw_grid(
        [(f"style {i + 1}", row) for i, row in enumerate(images)], f"{subset}, temperature {temperature:g}"
    )


def _to_color(images: np.ndarray) -> np.ndarray:
    """Return color images, (n, [c,] h, w) -> (n, 3, h, w) in [0, 1]."""
    images = images[:, None] if images.ndim == 3 else images
    return np.clip(np.repeat(images, 3, 1) if images.shape[1] == 1 else images, 0, 1).astype(np.float32)


def _to_heat_map(values: np.ndarray) -> np.ndarray:
    """Return a heat map, (h, w) in [0, 1] -> (1, 3, h, w)."""
    return mpl.colormaps["inferno"](values)[None, ..., :3].transpose(0, 3, 1, 2).astype(np.float32)
