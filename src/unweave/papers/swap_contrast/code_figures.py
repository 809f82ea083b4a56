"""Swap and contrast (2022), Figures 5 to 8: information in the two parts of the codes, and decoded exchanges.

unweave paper run swap-contrast/figure-5                    # both sets of digits; for a GPU; needs the files of MNIST
unweave paper run swap-contrast/figure-5 --scale small      # minutes on two cores

Figure 5: t-SNE of z_p and z_nu of rotated digits, colored by angle, which has no labels in training, and by digit.
Figures 6 and 7: change of each code when one factor changes, relative to its standard deviation. Figure 8: digits,
reconstructions, the same after exchanging what a pair shares, with random z_p, with random z_n, and with the z_n of
another digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.manifold import TSNE
from torch import Generator

from unweave.data.core import FactorData
from unweave.data.supervision import pairs
from unweave.datasets import Unseen
from unweave.methods import SwapContrast
from unweave.nn.functional import Normal, kl
from unweave.papers.folders import Folders, fit_or_load
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings, folder_name
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import make_panels
from unweave.report.figures.traversal import draw_grid

STEPS = {"full": 6_000, "small": 600}  # of the stored figures; enough to see it run
COLUMNS = 10  # digits in a row of Figure 8


@dataclass(kw_only=True)
class Options:
    """Figures 5 to 8 of swap and contrast."""

    scale: Literal["small", "full"] = "full"
    """full: the network of the tables; small: a narrow one, and few steps."""
    out: Path = Path("papers/swap_contrast")
    """Folder of the paper: results and figures go below it."""
    steps: int = 0
    """Gradient steps; 0: 6,000, or 600 at small scale."""
    points: int = 2_000
    """Digits in t-SNE and heat maps."""
    seed: int = 0
    """Seed of weights and of the digits shown."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    parts = {"small": options.scale == "small"}
    parts |= {f"{options.steps}-steps": options.steps not in (0, STEPS[options.scale])}
    return Folders(options.out, folder_name("digits", parts))


def fit_method(data: Unseen, options: Options, output: Output) -> SwapContrast:
    """Train our method as in the tables."""
    steps = options.steps or STEPS[options.scale]
    widths = (16, 32, 32) if options.scale == "small" else (32, 64, 128)
    output.progress(f"{data.title()}: {steps:,} steps")
    method = SwapContrast(steps=steps, widths=widths, nuisances=("color", "background"), seed=options.seed)
    return fit_or_load(method, data.load(), folders(options).results / f"model-{data.of}", output.training)


def draw_figure_5(method: SwapContrast, data: FactorData, options: Options) -> Figure:
    """Draw both parts of the codes in the plane."""
    draw = data.draw(options.points, Generator().manual_seed(options.seed))
    z, p = method.transform(draw.x), method.split_sizes()[0]
    names, change = code_changes(method, data, options)
    by_color = change[[names.index("color"), names.index("background")], p:].max(0)
    rest = z[:, p:][:, by_color <= np.median(by_color)]  # z_nu: the half that colors change least
    flat = [TSNE(random_state=options.seed, perplexity=min(30, len(z) // 4)).fit_transform(v) for v in (z[:, :p], rest)]
    turns = {k: f"{v:+g} degrees" for k, v in enumerate(data.factors[data.column("angle")].values)}
    figure, axes = make_panels(4, width=5, height=4.6, max_columns=2)
    for i, (name, called) in enumerate({"angle": turns, "label": {k: str(k) for k in range(10)}}.items()):
        level = draw.c[:, data.column(name)].numpy().astype(int)
        levels = np.unique(level)
        shades = mpl.colormaps["viridis" if name == "angle" else "tab10"].resampled(len(levels))
        for axis, xy, part in zip(axes[2 * i : 2 * i + 2], flat, ("z_p", "z_nu"), strict=True):
            for j, k in enumerate(levels):
                axis.scatter(xy[level == k, 0], xy[level == k, 1], s=4, label=called[k], color=shades(j))
            axis.set(title=f"{part}, colored by {'digit' if name == 'label' else name}", xticks=[], yticks=[])
        axes[2 * i + 1].legend(loc="center left", bbox_to_anchor=(1, 0.5), markerscale=3, frameon=False)
    return figure


def code_changes(method: SwapContrast, data: FactorData, options: Options) -> tuple[list[str], np.ndarray]:
    """Compute the mean change of each code when one factor changes, in standard deviations, (factors, codes)."""
    names, rows = [f.name for f in data.factors if f.size is not None], []
    for name in names:
        both = pairs(data, options.points, Generator().manual_seed(options.seed), k=1, among=[name])
        a, b = (method.transform(data.render(both.views[v])) for v in ("x", "x2"))
        rows.append(np.abs(a - b).mean(0) / np.maximum(a.std(0), 1e-9))
    return names, np.stack(rows)


def draw_heat_map(method: SwapContrast, data: FactorData, options: Options) -> Figure:
    """Draw Figures 6 and 7."""
    names, change = code_changes(method, data, options)
    figure, (axis,) = make_panels(1, width=15, height=0.5 * len(names) + 1.4)
    draw_matrix(axis, change, names, maximum=max(1.0, float(change.max())))
    labels = [name.replace("predictive", "p").replace("nuisance", "n") for name in method.get_feature_names_out()]
    axis.set_xticks(range(len(labels)), labels)
    title = "change of a code when one factor changes, in standard deviations of the code"
    axis.set(title=title, xlabel="p: codes that predict; n: codes of nuisances")
    return figure


def draw_figure_8(method: SwapContrast, data: FactorData, options: Options) -> Figure:
    """Draw digits, and what decoded exchanges make of them."""
    rng = Generator().manual_seed(options.seed)
    plan = pairs(data, COLUMNS, rng, k=1, among=["color", "background"])
    x, x2 = (data.render(plan.views[v]) for v in ("x", "x2"))
    z, z2 = (torch.from_numpy(method.transform(v)).float() for v in (x, x2))
    p = method.split_sizes()[0]
    noise = torch.randn(z.shape, generator=rng)
    q, q2 = (Normal(*(part[:, p:] for part in method.encode_posterior(v))) for v in (x, x2))
    distance = kl(q, q2)  # as in training: (COLUMNS, nuisance codes)
    is_farthest = distance == distance.amax(1, keepdim=True)  # the code that differs most is not exchanged
    swapped = torch.cat([z2[:, :p], torch.where(is_farthest, z[:, p:], z2[:, p:])], 1)
    shown: dict[str, Any] = {
        "observed": x, "reconstructed": z, "its pair": x2, "exchanged": swapped,
        "random z_p": torch.cat([noise[:, :p], z[:, p:]], 1), "random z_n": torch.cat([z[:, :p], noise[:, p:]], 1),
        "the next one's z_n": torch.cat([z[:, :p], z[:, p:].roll(-1, 0)], 1),
    }  # fmt: skip
    rows = [
        (name, v.numpy() if v.shape == x.shape else method.inverse_transform(v.numpy())) for name, v in shown.items()
    ]
    title = "exchanged: z_p, and of z_n all but the code that\ndiffers most, from the pair; to be as reconstructed"
    return draw_grid(rows, title)


def tables(options: Options) -> list[TextTable]:
    """Return no table: there are only figures."""
    return []


def findings(options: Options, part: str) -> Findings:
    """Return the figures that were drawn."""
    figures = folders(options).drawn(f"{part}.png")
    return Findings(
        figures=figures, effort=f"1 seed, {options.steps or STEPS[options.scale]:,} steps" if figures else ""
    )


def main(options: Options, output: Output = SILENT) -> None:
    """Train on both sets of digits, and draw."""
    place = folders(options)
    place.create()
    colored, rotated = Unseen(of="colored-mnist"), Unseen(of="rotation-colored-mnist")
    method, data = fit_method(colored, options, output), colored.load()
    place.save(draw_heat_map(method, data, options), "figure-6.png")
    place.save(draw_figure_8(method, data, options), "figure-8.png")
    method, data = fit_method(rotated, options, output), rotated.load()
    place.save(draw_heat_map(method, data, options), "figure-7.png")
    place.save(draw_figure_5(method, data, options), "figure-5.png")
    output.text(f"Figures are in {place.figures}.")
