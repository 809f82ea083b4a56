"""Drawings of the paper on HLLE+ICA: the contents of Figures 1, 3 and 5 to 8, and how sensitive the method is."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from torch import Generator, Tensor

from unweave.data.containers import Mixing
from unweave.data.dataset import Dataset
from unweave.datasets import FlatSheet, SquaresXY
from unweave.experiments.run import FinishedRun
from unweave.methods import HessianICA, LaplacianICA
from unweave.methods.base import Method
from unweave.metrics import mcc
from unweave.metrics.mcc import correlations
from unweave.papers.hlle_ica.manifolds import NETWORKS, SPECTRAL, WITH_ICA
from unweave.report.figures.style import make_panels
from unweave.report.figures.traversal import draw_grid, interpolate


def draw_maps(done: FinishedRun, title: str) -> Figure:
    """Draw Figures 1 and 5: each code as a color over two factors; contours along the axes mean disentangled."""
    d = done.codes.shape[1]
    figure, axes = make_panels(d + 1)
    codes, truth = match_codes(done)
    for j, axis in enumerate(axes[:d]):
        axis.scatter(truth[:, 0], truth[:, 1], c=codes[:, j], s=4, cmap="jet", linewidths=0, rasterized=True)
        axis.set_xlabel(done.factors[0].name)
        axis.set_ylabel(done.factors[1].name)
        axis.set_title(f"{title}: code {j + 1}")
    axes[d].scatter(done.pairs[:, 0], done.pairs[:, 1], s=2, alpha=0.3, linewidths=0, rasterized=True)
    axes[d].set_xlabel("distance in the data")
    axes[d].set_ylabel("distance in the codes")
    axes[d].set_title(f"near pairs, correlation {done.scores.get('local-isometry', float('nan')):.2f}")
    return figure


def match_codes(done: FinishedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes in the order and with the signs of the factors they match best, and the factors."""
    r = correlations(done.truth, done.codes)
    order = linear_sum_assignment(-np.abs(r))[1]
    return done.codes[:, order] * np.sign(r[np.arange(len(order)), order]), done.truth


def load_sources(data: Dataset) -> tuple[Mixing, Tensor]:
    """Load a finite sample of mixed sources; return it and the sources, (points, factors)."""
    mixing = data.load()
    assert isinstance(mixing, Mixing) and mixing.sources is not None
    return mixing, mixing.sources


def draw_embedding(points: int) -> Figure:
    """Draw Figure 3: HLLE recovers the factors up to a linear map, ICA undoes it."""
    data, sources = load_sources(SquaresXY(points=points))
    method = HessianICA(latent_dim=2).fit(data)
    z = sources.numpy()
    colors = np.column_stack([(z - z.min(0)) / np.ptp(z, axis=0), np.full(points, 0.5)])
    figure, axes = make_panels(2)
    for axis, codes, title in ((axes[0], method.embedding_, "HLLE"), (axes[1], method.codes_, "HLLE + ICA")):
        axis.scatter(codes[:, 0], codes[:, 1], c=colors, s=5, linewidths=0, rasterized=True)
        axis.set_title(f"{title}: MCC {mcc(sources, codes):.3f}")
        axis.set_aspect("equal")
    return figure


def draw_boxes(scores: pd.DataFrame) -> Figure:
    """Draw Figure 6: MCC over all manifolds, a box per method."""
    names = [name for name in (*SPECTRAL, *NETWORKS, *WITH_ICA) if name in set(scores["method"])]
    figure, (axis,) = make_panels(1, width=1.5 + 1.1 * len(names), height=3.2)
    values = [scores.loc[scores["method"] == name, "mcc"].dropna().to_numpy() for name in names]
    labels = [f"{name.replace('-', '-' + chr(10), 1)}\n(n = {len(v)})" for name, v in zip(names, values, strict=True)]
    axis.boxplot(values, tick_labels=labels, whis=(0, 100))
    axis.set_ylabel("MCC")
    axis.set_ylim(0, 1.02)
    return figure


def draw_interpolations(data: Dataset, methods: dict[str, Method]) -> Figure:
    """Draw Figure 8: straight lines between the codes of two images, decoded."""
    x, c = data.load().collect(3_000, Generator().manual_seed(0))
    far = c[:, 0] - c[:, 0].mean() + (c[:, 1] - c[:, 1].mean()) * c[:, 0].std() / c[:, 1].std()
    ends = x[[int(far.argmin()), int(far.argmax())]].numpy()  # opposite corners of the two factors
    return draw_grid(
        [(name, interpolate(method, *ends)) for name, method in methods.items()], "ends observed, decoded in between"
    )


def draw_neighborhoods(data: Dataset, methods: dict[str, Method], steps: int = 5) -> dict[str, Figure]:
    """Draw Figure 7: decoded codes around those of one image; the first code runs across, the second down."""
    x, c = data.load().collect(3_000, Generator().manual_seed(0))
    middle = int(((c - c.mean(0)) / c.std(0)).square().sum(1).argmin())
    figures = {}
    for name, method in methods.items():
        z = method.transform(x.numpy())
        low, high = np.quantile(z, [0.1, 0.9], axis=0)
        rows = []
        for b in np.linspace(low[1], high[1], steps):
            line = np.repeat(z[[middle]], steps, 0)
            line[:, 0], line[:, 1] = np.linspace(low[0], high[0], steps), b
            rows.append((f"{b:.1f}", method.inverse_transform(line)))
        figures[name] = draw_grid(rows, f"{name}: code 1 across, code 2 down")
    return figures


def draw_sensitivity(points: int) -> Figure:
    """Draw how MCC depends on the number of neighbors, on the number of points, and on the ranges of the factors."""
    figure, axes = make_panels(3, width=3.4)
    _plot_neighbors(axes[0], points)
    _plot_points(axes[1])
    _plot_ranges(axes[2], points)
    for axis in axes:
        axis.set_ylim(0, 1.02)
        axis.legend(frameon=False)
    return figure


def _plot_neighbors(axis: Axes, points: int) -> None:
    data, sources = load_sources(SquaresXY(points=points))
    ks = [8, 10, 13, 17, 22, 29, 37, 48]
    fitted = [HessianICA(latent_dim=2, n_neighbors=k).fit(data) for k in ks]
    x = data.render(sources)
    axis.plot(ks, [mcc(sources, method.transform(x)) for method in fitted], "o-", label="MCC")
    axis.plot(ks, [method.isometry_ for method in fitted], "s--", label="isometry")
    axis.set_xlabel("neighbors k (squares-xy)")
    axis.set_xticks(ks[::2])


def _plot_points(axis: Axes) -> None:
    sizes = [100, 300, 1_000, 3_000]
    for d in (2, 3):
        values = []
        for n in sizes:
            sheet, sources = load_sources(FlatSheet(dimensions=d, points=n))
            values.append(mcc(sources, HessianICA(latent_dim=d).fit(sheet).transform(sheet)))
        axis.plot(sizes, values, "o-", label=f"{d} factors")
    axis.set_xscale("log")
    axis.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axis.set_xlabel("points (flat sheets)")


def _plot_ranges(axis: Axes, points: int) -> None:
    ratios = [1.0, 1.5, 2.0, 3.0, 5.0, 8.0]
    for name, method in (("HLLE+ICA", HessianICA), ("LEM+ICA", LaplacianICA)):
        values = []
        for ratio in ratios:
            z = np.random.default_rng(0).uniform(-1, 1, (points, 2)) * [ratio, 1]
            values.append(mcc(z, method(latent_dim=2, n_neighbors=12).fit(z).transform(z), correlation="spearman"))
        axis.plot(ratios, values, "o-", label=name)
    axis.set_xlabel("range of one factor over that of the other")
