"""What a flow has found: sources beside their reconstruction, spectra, single variables, styles across classes."""

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
from unweave.metrics.mcc import correlations
from unweave.report.figures.style import make_panels
from unweave.report.figures.traversal import draw_grid
from unweave.utils.errors import InputError

SHOWN = 4_000  # points of a scatter plot
RANGE = 2.0  # deviations to both sides that a variable runs through
STEPS = 9  # images in a row
MAX_VARIABLES = 24  # that are drawn one by one


def draw_recovery(method: Any, data: FactorData) -> Figure:
    """GIN, Figure 2: two sources, the data along two axes, the codes that match the sources, the spectrum."""
    expected = [j for j, f in enumerate(data.factors) if f.size is None and not f.noise][:2]
    classes = next((j for j, f in enumerate(data.factors) if f.size is not None), None)
    if len(expected) < 2:
        raise InputError("the figure wants data with two real-valued factors")
    x, c = data.collect(SHOWN, Generator().manual_seed(0))
    chosen = torch.randperm(len(x), generator=Generator().manual_seed(0))[:SHOWN]
    x, c = x[chosen].float(), c[chosen]
    truth = c[:, expected].double().numpy()
    colors: Any = c[:, classes].numpy() if classes is not None else "tab:blue"
    y = method.outputs(x).double().numpy()[:, method.order_.numpy()]  # sorted by deviation
    r = correlations(truth, y)
    order = linear_sum_assignment(-np.abs(r))[1]
    codes = y[:, order] * np.sign(r[np.arange(2), order])
    score = float(np.abs(r[np.arange(2), order]).mean())
    figure, axes = make_panels(4)
    names = [data.factors[j].name for j in expected]
    _scatter(axes[0], truth, colors, "ground truth", names)
    _scatter(
        axes[1], PCA(2).fit_transform(x.flatten(1).double().numpy()), colors, "observed", ["first axis", "second axis"]
    )
    labels = [f"code {order[0] + 1}", f"code {order[1] + 1}"]
    _scatter(axes[2], codes, colors, f"reconstruction: MCC {score:.3f}", labels)
    _spectrum(axes[3], method)
    factors = c[:, [j for j, f in enumerate(data.factors) if f.size is None]].double().numpy()
    axes[3].plot(range(1, factors.shape[1] + 1), np.sort(factors.std(0))[::-1], "s", color="0.6", ms=4, label="truth")
    axes[3].legend(frameon=False)
    return figure


def draw_spectra(method: Any, X: np.ndarray) -> Figure:
    """GIN, Figure 3: the sorted deviations, all and those around the knee, and those of PCA beside them."""
    figure, axes = make_panels(3, width=3.4)
    n = method.n_informative_
    _spectrum(axes[0], method)
    _spectrum(axes[1], method, most=min(len(method.spectrum_), max(3 * n, 10)))
    pca = method.spectrum_of_pca(X)
    axes[2].semilogy(range(1, len(pca) + 1), np.maximum(pca, 1e-6), ".", color="0.4", ms=4)
    axes[2].set_xlabel("principal axis")
    axes[2].set_ylabel("deviation")
    axes[2].set_title("PCA")
    return figure


def _spectrum(axis: Axes, method: Any, *, most: int | None = None) -> None:
    s, n = method.spectrum_[:most], method.n_informative_
    axis.semilogy(range(1, len(s) + 1), s, "o", color="black", ms=4 if len(s) < 100 else 2, label="found")
    if n < len(method.spectrum_):
        axis.axvline(n + 0.5, color="0.5", ls=":")
    told = f"{n} informative" if n < len(method.spectrum_) else "no knee"
    axis.set_title(f"{told} ({method.confidence_:.0%} sure)")
    axis.set_xlabel("variable")
    axis.set_ylabel("deviation")


def _scatter(axis: Axes, points: np.ndarray, colors: Any, title: str, names: list[str]) -> None:
    axis.scatter(points[:, 0], points[:, 1], c=colors, s=2, cmap="tab10", linewidths=0, rasterized=True)
    axis.set_title(title)
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])


def draw_variable(method: Any, j: int, rows: dict[str, tuple[np.ndarray, np.ndarray]] | None = None) -> Figure:
    """GIN, Figures 10 to 15: variable j, the j-th most important, runs from -2 to +2 deviations, a class in each row.

    The others stay at the means of the class. The last column shows the area that it changes: the absolute difference
    between -1 and +1 deviations. `rows` has centers and deviations, (features,) each, by name; those of a GIN's classes
    unless given, and to be given for a method without classes: see `centers`.
    """
    if len(method.shape_) not in (2, 3):
        raise InputError(f"observations of shape {method.shape_}: only images can be shown")
    if not 0 <= j < len(method.order_):
        raise InputError(f"variable {j} of {len(method.order_)}, counted from 0")
    i = int(method.order_[j])
    pictures = []
    for name, (center, deviation) in (rows or method.class_statistics()).items():
        places = [*np.linspace(-RANGE, RANGE, STEPS), -1.0, 1.0]
        y = np.repeat(np.asarray(center, np.float32)[None], len(places), 0)
        y[:, i] += np.asarray(places, np.float32) * deviation[i]
        images = _colored(method.pixels(torch.from_numpy(y)).numpy())
        change = np.abs(images[-1] - images[-2]).mean(0)
        pictures.append((name, images[:STEPS], change))
    largest = max(float(change.max()) for _, _, change in pictures)
    shown = [(name, np.concatenate([images, _heat(change / max(largest, 1e-6))])) for name, images, change in pictures]
    title = f"variable {j + 1}: -{RANGE:g} to +{RANGE:g} deviations, and where it changes the image"
    return draw_grid(shown, title)


def class_centers(method: Any, X: np.ndarray, labels: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For every label the mean of the outputs of its observations, and the deviation of all, for `variable`."""
    x = np.asarray(X, np.float32) / (255 if np.asarray(X).dtype == np.uint8 else 1)
    y = method.outputs(torch.from_numpy(x)).numpy()
    return {str(k): (y[labels == k].mean(0), y.std(0)) for k in np.unique(labels)}


def draw_samples(
    method: Any, *, rows: int = 8, temperature: float = 1.0, informative: bool = False, seed: int = 0
) -> Figure:
    """GIN, Figure 9: a class in each column; each row has one style, the same whitened variables."""
    if len(method.shape_) not in (2, 3):
        raise InputError(f"observations of shape {method.shape_}: only images can be shown")
    each = [
        method.sample(name, rows, temperature=temperature, informative=informative, seed=seed) for name in method.names_
    ]
    images = _colored(np.stack(each, 1).reshape(-1, *method.shape_)).reshape(rows, len(each), 3, *method.shape_[-2:])
    kind = f"the {method.n_informative_} informative variables" if informative else "all variables"
    return draw_grid([(f"style {i + 1}", row) for i, row in enumerate(images)], f"{kind}, temperature {temperature:g}")


def _colored(images: np.ndarray) -> np.ndarray:
    """(n, [c,] h, w) -> (n, 3, h, w) in [0, 1]."""
    images = images[:, None] if images.ndim == 3 else images
    return np.clip(np.repeat(images, 3, 1) if images.shape[1] == 1 else images, 0, 1).astype(np.float32)


def _heat(values: np.ndarray) -> np.ndarray:
    """(h, w) in [0, 1] -> (1, 3, h, w)."""
    return mpl.colormaps["inferno"](values)[None, ..., :3].transpose(0, 3, 1, 2).astype(np.float32)
