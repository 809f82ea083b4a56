"""Swap and contrast (2022), Figures 5 to 8: what the two parts of the codes know, and what the decoder makes of them.

python -m unweave.papers.swap_contrast.figures                  # both sets of digits; for a GPU; wants MNIST's files
python -m unweave.papers.swap_contrast.figures --scale small    # minutes on two cores

figure-5: t-SNE of z_p and z_nu of turned digits, colored by angle, which no one has told, and by digit. figures 6 and
7: how far each code moves when one factor changes, as a share of its deviation. figure-8: digits, reconstructions, the
same after exchanging what a pair shares, with z_p at random, with z_n at random, and with the z_n of another digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import torch
from sklearn.manifold import TSNE
from torch import Generator

from unweave.cli.terminal import launch, print_text
from unweave.data.core import FactorData
from unweave.data.supervision import pairs
from unweave.datasets import Unseen
from unweave.experiments.runner import fit_or_load
from unweave.methods import SwapContrast
from unweave.nn.functional import Normal
from unweave.papers.verdicts import Findings, drawn
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import make_panels, save_figure
from unweave.report.figures.traversal import draw_grid

STEPS = {"full": 6_000, "small": 600}  # of the stored figures, and to see it run
SHOWN = 10  # digits of a line in Figure 8


@dataclass(kw_only=True)
class Options:
    """Figures 5 to 8 of swap and contrast."""

    scale: Literal["small", "full"] = "full"
    """full: the network of the tables; small: a narrow one, and few steps"""
    out: Path = Path("papers/swap_contrast/results")
    """where the figures go"""
    steps: int = 0
    """gradient steps; 0: 6,000, or 600 at small scale"""
    points: int = 2_000
    """digits in t-SNE and heat maps"""
    seed: int = 0
    """of the start, and of what is shown"""


def trained(data: Unseen, options: Options) -> SwapContrast:
    """Our method as in the tables."""
    small = options.scale == "small"
    steps = options.steps or STEPS[options.scale]
    widths = (16, 32, 32) if small else (32, 64, 128)
    print_text(f"{data.title()}: {steps:,} steps")
    method = SwapContrast(steps=steps, widths=widths, known=("color", "background"), seed=options.seed)
    return fit_or_load(method, data.load(), options.out / f"model-{data.of}{suffix(options)}")


def figure_5(method: SwapContrast, data: FactorData, options: Options, out: Path) -> None:
    """Both parts in the plane."""
    draw = data.draw(options.points, Generator().manual_seed(options.seed))
    z, p = method.transform(draw.x), method.parts()[0]
    names, change = moved(method, data, options)
    known = change[[names.index("color"), names.index("background")], p:].max(0)
    unknown = z[:, p:][:, known <= np.median(known)]  # z_nu: the half that colors move least
    flat = [
        TSNE(random_state=options.seed, perplexity=min(30, len(z) // 4)).fit_transform(v) for v in (z[:, :p], unknown)
    ]
    turns = {k: f"{v:+g} degrees" for k, v in enumerate(data.factors[data.column("angle")].values)}
    figure, axes = make_panels(4, width=5, height=4.6, across=2)
    for i, (name, called) in enumerate({"angle": turns, "label": {k: str(k) for k in range(10)}}.items()):
        level = draw.c[:, data.column(name)].numpy().astype(int)
        there = np.unique(level)
        shades = mpl.colormaps["viridis" if name == "angle" else "tab10"].resampled(len(there))
        for axis, xy, part in zip(axes[2 * i : 2 * i + 2], flat, ("z_p", "z_nu"), strict=True):
            for j, k in enumerate(there):
                axis.scatter(xy[level == k, 0], xy[level == k, 1], s=4, label=called[k], color=shades(j))
            axis.set(title=f"{part}, colored by {'digit' if name == 'label' else name}", xticks=[], yticks=[])
        axes[2 * i + 1].legend(loc="center left", bbox_to_anchor=(1, 0.5), markerscale=3, frameon=False)
    save_figure(figure, out)


def moved(method: SwapContrast, data: FactorData, options: Options) -> tuple[list[str], np.ndarray]:
    """How far each code moves when one factor alone changes, as a share of its deviation, (factors, codes)."""
    names, rows = [f.name for f in data.factors if f.size is not None], []
    for name in names:
        both = pairs(data, options.points, Generator().manual_seed(options.seed), k=1, among=[name])
        a, b = (method.transform(data.render(both.views[v])) for v in ("x", "x2"))
        rows.append(np.abs(a - b).mean(0) / np.maximum(a.std(0), 1e-9))
    return names, np.stack(rows)


def heat_map(method: SwapContrast, data: FactorData, options: Options, out: Path) -> None:
    """Figures 6 and 7."""
    names, change = moved(method, data, options)
    figure, (axis,) = make_panels(1, width=15, height=0.5 * len(names) + 1.4)
    draw_matrix(axis, change, names, most=max(1.0, float(change.max())))
    labels = [name.replace("predictive", "p").replace("nuisance", "n") for name in method.get_feature_names_out()]
    axis.set_xticks(range(len(labels)), labels)
    title = "how far a code moves when one factor changes, as a share of its standard deviation"
    axis.set(title=title, xlabel="p: codes that predict; n: codes of nuisances")
    save_figure(figure, out)


def figure_8(method: SwapContrast, data: FactorData, options: Options, out: Path) -> None:
    """Digits and what becomes of them."""
    rng = Generator().manual_seed(options.seed)
    plan = pairs(data, SHOWN, rng, k=1, among=["color", "background"])
    x, x2 = (data.render(plan.views[v]) for v in ("x", "x2"))
    z, z2 = (torch.from_numpy(method.transform(v)).float() for v in (x, x2))
    p = method.parts()[0]
    noise = torch.randn(z.shape, generator=rng)
    q, q2 = (Normal(*(part[:, p:] for part in method.posterior_of(v))) for v in (x, x2))
    far = method.distance(q, q2)
    kept = far == far.amax(1, keepdim=True)  # the code that differs most stays
    swapped = torch.cat([z2[:, :p], torch.where(kept, z[:, p:], z2[:, p:])], 1)
    shown: dict[str, Any] = {
        "observed": x, "reconstructed": z, "its pair": x2, "exchanged": swapped,
        "random z_p": torch.cat([noise[:, :p], z[:, p:]], 1), "random z_n": torch.cat([z[:, :p], noise[:, p:]], 1),
        "the next one's z_n": torch.cat([z[:, :p], z[:, p:].roll(-1, 0)], 1),
    }  # fmt: skip
    rows = [
        (name, v.numpy() if v.shape == x.shape else method.inverse_transform(v.numpy())) for name, v in shown.items()
    ]
    title = "exchanged: z_p, and of z_n all but the code that\ndiffers most, from the pair; to be as reconstructed"
    save_figure(draw_grid(rows, title), out)


def suffix(options: Options) -> str:
    """Of all names of files, by which other scales and steps are told apart."""
    other = f"-{options.steps}-steps" * (options.steps not in (0, STEPS[options.scale]))
    return "-small" * (options.scale == "small") + other


def findings(options: Options, part: str) -> Findings:
    """A figure, where it is drawn."""
    return Findings(figures=drawn([options.out / f"{part}{suffix(options)}.png"]))


def main(options: Options) -> None:
    """Train twice, draw, say where."""
    options.out.mkdir(parents=True, exist_ok=True)
    end = f"{suffix(options)}.png"
    for number, of in ((6, "colored-mnist"), (7, "rotation-colored-mnist")):
        recipe = Unseen(of=of)
        method, data = trained(recipe, options), recipe.load()
        heat_map(method, data, options, options.out / f"figure-{number}{end}")
        if number == 6:
            figure_8(method, data, options, options.out / f"figure-8{end}")
        else:
            figure_5(method, data, options, options.out / f"figure-5{end}")
    print_text(f"Figures are in {options.out}.")


if __name__ == "__main__":
    launch(main, Options)
