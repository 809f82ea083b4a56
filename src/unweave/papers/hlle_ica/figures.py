"""Horan, Richardson and Weiss (2021): their figures, on every manifold that can be had here.

python -m unweave.papers.hlle_ica.figures                       # the spectral methods: all manifolds, three seeds
python -m unweave.papers.hlle_ica.figures --part networks  # the autoencoders, one seed; for a GPU, or for a night
python -m unweave.papers.hlle_ica.figures --part networks --only faces squares  # some manifolds only
python -m unweave.papers.hlle_ica.figures --quick               # one seed, 1,000 images a manifold

Runs are kept under OUT/runs and not repeated. Figure numbers are the paper's; 7 and 8 belong to the networks, Figure 6
shows what both parts have found so far. The networks are those of Jing et al. (2020), as in the paper, trained for
fewer steps; their bottleneck is as wide as there are factors, or 128 wide and followed by ICA.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Generator

from unweave import catalog
from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.data.dataset import Dataset
from unweave.datasets import ContinuousSprites, Faces, FlatSheet, Slice, SquaresXC, SquaresXY
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.run import FinishedRun, Run, read_run
from unweave.experiments.study import execute
from unweave.methods import HessianICA, LaplacianICA, LinearICA
from unweave.methods.base import Method
from unweave.metrics import local_isometry, mcc
from unweave.metrics.local_isometry import near_pairs
from unweave.papers.verdicts import CLOSE, Claim, Findings, drawn
from unweave.report.figures.style import make_panels, save_figure
from unweave.report.figures.traversal import draw_grid, interpolate
from unweave.utils.errors import InputError

METHODS = ("hessian-ica", "tangent-ica", "laplacian-ica", "linear-ica", "pca")
WIDE = 128  # codes of a bottleneck that ICA is to follow
NETWORKS = ("hessian-autoencoder", "autoencoder", "irmae", "vae", "beta-vae")
PLAIN = ("autoencoder", "irmae", "beta-vae")  # the paper's baselines
WITH_ICA = tuple(f"{name}-{WIDE}" for name in ("autoencoder", "irmae", "beta-vae"))


@dataclass(kw_only=True)
class Options:
    """Figures 1, 3, 5, 6, 7 and 8 of Horan, Richardson and Weiss (2021), and how sensitive the method is."""

    out: Path = Path("papers/hlle_ica/results")
    """where runs, figures and tables go"""
    seeds: int = 3
    """repetitions of every manifold"""
    quick: bool = False
    """one seed, 1,000 images a manifold"""
    part: Literal["spectral", "networks"] = "spectral"
    """which methods"""
    steps: int = 3_000
    """gradient steps of the networks; the paper's hundred epochs of 3,000 images are 9,400 of half the batch"""
    hours: float = 12.0
    """begin no network after that long"""
    only: tuple[str, ...] = ()
    """manifolds whose names contain one of these, so that several processes can share the work; squares are needed"""


def manifolds(points: int, seed: int) -> list[tuple[Dataset, int]]:
    """Every manifold with its number of factors; faces only where their files are."""
    two: list[Dataset] = [SquaresXY(points=points, seed=seed), SquaresXC(points=points, seed=seed)]
    two += [face for m in ("01", "14", "23") if (face := Faces(manifold=m)).is_available() and points >= 3_000]
    found: list[tuple[Dataset, int]] = [(data, 2) for data in two]
    for vary in (("x", "y"), ("x", "y", "scale"), ("x", "y", "scale", "angle")):
        found.append((ContinuousSprites(vary=vary, points=points, seed=seed), len(vary)))
    for vary in (("x", "y"), ("x", "y", "scale")):
        found.append((Slice(of="dsprites", vary=vary, points=points, seed=seed), len(vary)))
    for vary in (("scale", "orientation"), ("wall", "scale", "orientation"), ("floor", "wall", "scale", "orientation")):
        found.append((Slice(of="shapes3d", vary=vary, points=points, seed=seed), len(vary)))
    return found


def label(data: Dataset) -> str:
    """A manifold's name in tables."""
    if isinstance(data, Faces):
        return f"faces-{data.manifold}"
    return f"{data.title()} ({', '.join(data.vary)})" if isinstance(data, ContinuousSprites) else data.title()


def chosen(found: list[tuple[Dataset, int]], options: Options) -> list[tuple[Dataset, int]]:
    """Those that were asked for."""
    return [pair for pair in found if not options.only or any(part in label(pair[0]) for part in options.only)]


def table(options: Options, notify: Any) -> tuple[pd.DataFrame, dict[tuple[str, str], FinishedRun]]:
    """MCC and isometry of every method on every manifold, and the runs of the first seed."""
    points, seeds = (1_000, 1) if options.quick else (3_000, options.seeds)
    rows: list[dict[str, Any]] = []
    first: dict[tuple[str, str], FinishedRun] = {}
    for seed in range(seeds):
        for data, d in chosen(manifolds(points, seed), options):
            for name in METHODS:
                head = {"manifold": label(data), "factors": d, "method": name, "seed": seed}
                run = Run(data, catalog.methods()[name](latent_dim=d, seed=seed))
                rows.append(head | one(run, name, options.out, first, notify))
    return pd.DataFrame(rows), first


def networks(options: Options, notify: Any) -> tuple[pd.DataFrame, dict[tuple[str, str], FinishedRun]]:
    """The same for the autoencoders, first seed alone; the manifolds of the paper first."""
    rows: list[dict[str, Any]] = []
    first: dict[tuple[str, str], FinishedRun] = {}
    start = time.monotonic()
    found = manifolds(1_000 if options.quick else 3_000, 0)
    found.sort(key=lambda pair: (not isinstance(pair[0], Faces), not isinstance(pair[0], SquaresXY | SquaresXC)))
    for data, d in chosen(found, options):
        for name in (*NETWORKS, *WITH_ICA):
            if time.monotonic() - start > 3600 * options.hours:
                return pd.DataFrame(rows), first
            head = {"manifold": label(data), "factors": d, "method": name, "seed": 0}
            method = network(name, d, prod(data.load().shape), options.steps)
            rows.append(head | one(Run(data, method), name, options.out, first, notify))
    return pd.DataFrame(rows), first


def network(name: str, d: int, pixels: int, steps: int) -> Method:
    """An autoencoder by its name in the tables.

    The weight 0.1 of the KL term in the code of Jing et al. is one between means, over pixels and over codes, of twice
    the KL: between sums it comes to 0.2 pixels / codes, which is much. "vae" is the plain one.
    """
    plain, wide = name.removesuffix(f"-{WIDE}"), name.endswith(f"-{WIDE}")
    width = WIDE if wide else d
    shared: Any = {"steps": steps, "lr": 5e-4, "latent_dim": width, "widths": (32, 64, 128, 256), "hidden": ()}
    if plain in ("vae", "beta-vae"):
        return catalog.methods()["beta-vae"](beta=1.0 if plain == "vae" else 0.2 * pixels / width, **shared)
    return catalog.methods()[plain](**shared)


def one(run: Run, name: str, out: Path, first: dict[tuple[str, str], FinishedRun], notify: Any) -> dict[str, Any]:
    """The scores of a run; one that cannot be, because its graph falls into parts say, has the reason instead."""
    try:
        execute([run], out / "runs", notify=notify)
        done = read_run(out / "runs" / run.key)
        if name.endswith(f"-{WIDE}"):
            done = unmixed(done, run.data)
    except InputError as error:
        return {"mcc": None, "isometry": None, "error": str(error)}
    first.setdefault((label(run.data), name), done)
    return {"mcc": done.scores.get("mcc"), "isometry": done.scores.get("local-isometry")}


def unmixed(done: FinishedRun, data: Dataset) -> FinishedRun:
    """The run with as many codes as factors, made by ICA out of the many that it has."""
    codes = LinearICA(latent_dim=len(done.factors)).fit_transform(done.codes)
    x = data.load().collect(EVALUATION_SIZE, Generator().manual_seed(EVALUATION_SEED)).x
    near = near_pairs(x, codes)
    scores = {"mcc": float(mcc(done.truth, codes)), "local-isometry": float(local_isometry(x, codes))}
    return done._replace(codes=codes, scores=scores, pairs=np.column_stack([near.dx, near.dz])[:3_000])


# Figures --------------------------------------------------------------------------------------------------------


def maps(done: FinishedRun, title: str) -> Figure:
    """Figures 1 and 5: each code as a color over the two true factors; contours along the axes mean disentangled."""
    d = done.codes.shape[1]
    figure, axes = make_panels(d + 1)
    codes, truth = matched(done)
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


def matched(done: FinishedRun) -> tuple[np.ndarray, np.ndarray]:
    """The codes in the order and with the signs of the factors they match best."""
    from scipy.optimize import linear_sum_assignment

    from unweave.metrics.mcc import correlations

    r = correlations(done.truth, done.codes)
    order = linear_sum_assignment(-np.abs(r))[1]
    return done.codes[:, order] * np.sign(r[np.arange(len(order)), order]), done.truth


def before_and_after(points: int) -> Figure:
    """Figure 3: HLLE gives the factors up to a linear map, ICA undoes it."""
    data = SquaresXY(points=points).load()
    method = HessianICA(latent_dim=2).fit(data)
    z = data.sources.numpy()
    colors = np.column_stack([(z - z.min(0)) / np.ptp(z, axis=0), np.full(points, 0.5)])
    figure, axes = make_panels(2)
    for axis, codes, title in ((axes[0], method.embedding_, "HLLE"), (axes[1], method.codes_, "HLLE + ICA")):
        axis.scatter(codes[:, 0], codes[:, 1], c=colors, s=5, linewidths=0, rasterized=True)
        axis.set_title(f"{title}: MCC {mcc(data.sources, codes):.3f}")
        axis.set_aspect("equal")
    return figure


def boxes(scores: pd.DataFrame) -> Figure:
    """Figure 6: MCC over all manifolds, a box per method."""
    names = [name for name in (*METHODS, *NETWORKS, *WITH_ICA) if name in set(scores["method"])]
    figure, (axis,) = make_panels(1, width=1.5 + 1.1 * len(names), height=3.2)
    values = [scores.loc[scores["method"] == name, "mcc"].dropna().to_numpy() for name in names]
    labels = [f"{name.replace('-', '-' + chr(10), 1)}\n(n = {len(v)})" for name, v in zip(names, values, strict=True)]
    axis.boxplot(values, tick_labels=labels, whis=(0, 100))
    axis.set_ylabel("MCC")
    axis.set_ylim(0, 1.02)
    return figure


def interpolations(data: Dataset, methods: dict[str, Method]) -> Figure:
    """Figure 8: straight lines between the codes of two images, decoded."""
    x, c = data.load().collect(3_000, Generator().manual_seed(0))
    far = c[:, 0] - c[:, 0].mean() + (c[:, 1] - c[:, 1].mean()) * c[:, 0].std() / c[:, 1].std()
    ends = x[[int(far.argmin()), int(far.argmax())]].numpy()  # opposite corners of the two factors
    return draw_grid(
        [(name, interpolate(method, *ends)) for name, method in methods.items()], "ends observed, decoded in between"
    )


def around(data: Dataset, methods: dict[str, Method], steps: int = 5) -> dict[str, Figure]:
    """Figure 7: the codes around those of one image, decoded; the first code runs across, the second down."""
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


def sensitivity(points: int) -> Figure:
    """What k, the number of points and the range of a factor do."""
    figure, axes = make_panels(3, width=3.4)
    data = SquaresXY(points=points).load()
    ks = [8, 10, 13, 17, 22, 29, 37, 48]
    found = [HessianICA(latent_dim=2, n_neighbors=k).fit(data) for k in ks]
    x = data.render(data.sources)
    axes[0].plot(ks, [mcc(data.sources, m.transform(x)) for m in found], "o-", label="MCC")
    axes[0].plot(ks, [m.isometry_ for m in found], "s--", label="isometry")
    axes[0].set_xlabel("neighbors k (squares-xy)")
    axes[0].set_xticks(ks[::2])
    axes[0].legend(frameon=False)
    sizes = [100, 300, 1_000, 3_000]
    for d in (2, 3):
        values = []
        for n in sizes:
            sheet = FlatSheet(dimensions=d, points=n).load()
            values.append(mcc(sheet.sources, HessianICA(latent_dim=d).fit(sheet).transform(sheet)))
        axes[1].plot(sizes, values, "o-", label=f"{d} factors")
    axes[1].set_xscale("log")
    axes[1].set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes[1].set_xlabel("points (flat sheets)")
    axes[1].legend(frameon=False)
    ratios = [1.0, 1.5, 2.0, 3.0, 5.0, 8.0]
    for name, method in (("HLLE+ICA", HessianICA), ("LEM+ICA", LaplacianICA)):
        values = []
        for ratio in ratios:
            z = np.random.default_rng(0).uniform(-1, 1, (points, 2)) * [ratio, 1]
            values.append(mcc(z, method(latent_dim=2, n_neighbors=12).fit(z).transform(z), correlation="spearman"))
        axes[2].plot(ratios, values, "o-", label=name)
    axes[2].set_xlabel("range of one factor over the other's")
    axes[2].legend(frameon=False)
    for axis in axes:
        axis.set_ylim(0, 1.02)
    return figure


# All together ---------------------------------------------------------------------------------------------------


CLAIMS = {  # figure -> what is said, and of which scores of methods: on the manifold that is shown, or over all
    "figure-1": [("HLLE + ICA finds both factors (MCC above 0.95)", lambda at, over: at["hessian-ica"] > 0.95)],
    "figure-5": [
        ("HLLE + ICA finds both factors (MCC above 0.95)", lambda at, over: at["hessian-ica"] > 0.95),
        ("LEM + ICA does so too (above 0.9)", lambda at, over: at["laplacian-ica"] > 0.9),
        ("AE, IRMAE and beta-VAE do not (below 0.9)", lambda at, over: max(at[name] for name in PLAIN) < 0.9),
    ],
    "figure-6": [
        ("HLLE + ICA succeeds on all of them (above 0.9)", lambda at, over: min(over["hessian-ica"]) > 0.9),
        ("it does better than LEM + ICA", lambda at, over: middle(over, "hessian-ica") > middle(over, "laplacian-ica")),
        ("the Hessian autoencoder succeeds on all (above 0.9)", lambda at, o: min(o["hessian-autoencoder"]) > 0.9),
        (
            "AE, IRMAE and beta-VAE are no better than PCA",
            lambda at, over: max(middle(over, name) for name in PLAIN) < middle(over, "pca") + CLOSE,
        ),
    ],
}  # fmt: skip


def middle(over: dict[str, list[float]], name: str) -> float:
    """The median of a method over manifolds."""
    return float(np.median(over[name]))


def findings(options: Options, part: str) -> Findings:
    """The claims of the paper over its kind of manifolds: two factors, photographs where there are some."""
    figures = drawn(sorted(options.out.glob(f"{part}*.png")))
    paths = [path for path in sorted(options.out.glob("scores-*.csv")) if path.is_file()]
    if not paths or options.part != ("networks" if part in ("figure-7", "figure-8") else "spectral"):
        return Findings()  # a figure of both parts is told once
    rows = pd.concat([pd.read_csv(path) for path in paths]).query("factors == 2")
    kind = "faces" if rows["manifold"].str.startswith("faces").any() else "squares"
    mean = rows[rows["manifold"].str.startswith(kind)].groupby(["method", "manifold"])["mcc"].mean()
    over = {str(name): group.tolist() for name, group in mean.groupby("method")}
    at = {name: values[0] for name, values in over.items()}  # faces-01, or squares-xc
    claims = []
    for text, holds in CLAIMS.get(part, ()):
        with contextlib.suppress(KeyError):  # methods that have not been run are not spoken of
            claims.append(Claim(text, bool(holds(at, over))))
    if part == "figure-3":
        squares = rows.query("manifold == 'squares-xy' and method == 'hessian-ica'")["mcc"].mean()
        claims.append(Claim("HLLE + ICA finds the position of the square (MCC above 0.99)", bool(squares > 0.99)))
    used = sorted(set(mean.index.get_level_values("manifold")))
    notes = (f"judged on {', '.join(used)}; the paper prints no numbers, only box plots",) if claims else ()
    return Findings(claims=tuple(claims), figures=figures, notes=notes)


def main(options: Options) -> None:
    """Run what is missing, draw, print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    points = 1_000 if options.quick else 3_000
    with progress() as notify:
        scores, first = (table if options.part == "spectral" else networks)(options, notify)
        scores.to_csv(options.out / f"scores-{options.part}.csv", index=False)
        shown = next((m for m, _ in first if m == "faces-01"), "squares-xc")
        for (manifold, name), done in first.items():
            if manifold == shown:
                save_figure(maps(done, name), options.out / f"figure-5-{name}.png")
        kept = [pd.read_csv(path) for path in sorted(options.out.glob("scores-*.csv"))]
        save_figure(boxes(pd.concat(kept)), options.out / "figure-6.png")
        if options.part == "spectral":
            save_figure(maps(first[shown, "hessian-ica"], "hessian-ica"), options.out / "figure-1.png")
            notify("figure 3")
            save_figure(before_and_after(points), options.out / "figure-3.png")
            notify("sensitivity")
            save_figure(sensitivity(points), options.out / "sensitivity.png")
        else:
            notify("figures 7 and 8")
            data = Faces() if shown == "faces-01" else replace(SquaresXC(), points=points)
            able = {name: catalog.load(first[shown, name].folder) for name in NETWORKS if (shown, name) in first}
            save_figure(interpolations(data, able), options.out / "figure-8.png")
            for name, figure in around(data, able).items():
                save_figure(figure, options.out / f"figure-7-{name}.png")
    wide = scores.pivot_table(index="manifold", columns="method", values="mcc", aggfunc="mean")
    wide = wide[[name for name in (*METHODS, *NETWORKS, *WITH_ICA) if name in wide]]
    lines = [
        [str(m), *("-" if np.isnan(v) else f"{v:.3f}" for v in row)]
        for m, row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    lines.append(["median", *(f"{v:.3f}" for v in wide.median())])
    print_table(["manifold", *wide.columns], lines, f"MCC, mean of {scores['seed'].nunique()} seeds")
    print_text(f"Figures and scores are in {options.out}.")


if __name__ == "__main__":
    launch(main, Options)
