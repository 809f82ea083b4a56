"""Unsupervised disentanglement learning by intervention (2021), Figure 5: neighbors of flowers by each feature.

unweave paper run intervention/figure-5                     # three features of 16 codes; for a GPU
unweave paper run intervention/figure-5 --scale small       # minutes on two cores
unweave paper run intervention/figure-5 --steps 20000 --lr 1e-4 --translator ridge    # the paper's rates, converged

Query photographs, and for each feature their nearest neighbors by that feature only, for the intervention autoencoder
and for FactorVAE. The only known factor is the species: the table has the share of neighbors of the query's species,
and the share of neighbors that another feature has too. Features that differ have few neighbors in common.

What do features hold? A second table has, for each feature, R^2 of a linear regression of properties of photographs on
its codes, on photographs that the regression did not see: mean color of the center and of the border, which stand for
flower and background, and shape statistics of `unweave.attributes`. The gap is the lead of the best feature over the
next one, on average over the properties that any feature knows: near 0 if all features hold the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unweave.data import attributes
from unweave.data.containers import Table
from unweave.datasets import Flowers102
from unweave.methods import FactorVAE, InterventionAutoencoder
from unweave.methods.neural import Neural
from unweave.methods.translators import DiffMode
from unweave.papers.folders import Folders, fit_or_load
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings, folder_name
from unweave.report.figures.traversal import draw_grid, draw_reconstructions

NEIGHBORS = 3
STEPS = {"full": 2_500, "small": 100}  # of the stored figures; enough to see it run
CENTER, BORDER = 0.5, 0.125  # side of the square that stands for the flower, width of the frame for the background
SHAPE = ("area", "width", "height", "slant", "sharpness")  # attributes of images that say something of the shape
MIN_SPREAD = 1e-6  # of a property that varies
MIN_KNOWN = 0.1  # R^2 from which a feature knows a property


@dataclass(kw_only=True)
class Options:
    """Figure 5 of disentanglement by intervention."""

    scale: Literal["small", "full"] = "full"
    """full: all photographs and the networks of Tables 8 and 9; small: some, and a small network."""
    out: Path = Path("papers/intervention")
    """Folder of the paper: results and figures go below it."""
    steps: int = 0
    """Gradient steps; 0: 2,500, or 100 at small scale."""
    lr: float = 2e-4
    """Learning rate of both methods and of FactorVAE's critic; twice the paper's."""
    translator: DiffMode = "data"
    """Translator of our method, its `diff_mode`."""
    queries: int = 5
    """Number of query photographs."""
    seed: int = 0
    """Seed of weights and queries."""


def methods(options: Options) -> dict[str, Neural]:
    """Return our method with the paper's weights for flowers, and FactorVAE with as many codes."""
    small = options.scale == "small"
    net: Any = (
        {"widths": (8, 8, 16, 16), "hidden": (32,)} if small else {"widths": (128, 128, 256, 256), "hidden": (512,)}
    )
    shared: Any = {"seed": options.seed, "steps": options.steps or STEPS[options.scale], **net}
    shared |= {"latent_dim": 48, "feature_dim": 16, "lr": options.lr}
    critics: Any = {"inner_steps": 2, "translator": 32, "batch_size": 16}
    if not small:
        critics = {
            "discriminator_hidden": (256, 256),
            "discriminator_widths": (64, 64, 128, 128),
            "discriminator_slope": 0.2,
        }  # Table 9
    return {
        "intervention": InterventionAutoencoder(
            lambda_in=1.0,
            lambda_adv=100.0,
            weight_lr=options.lr / 10,
            diff_mode=options.translator,
            **shared,
            **critics,
        ),
        "FactorVAE": FactorVAE(gamma=10.0, critic=(200,) * 3 if small else (1000,) * 6, critic_lr=options.lr, **shared),
    }


def nearest_neighbors(z: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the rows nearest to each query, itself left out, (queries, NEIGHBORS)."""
    return NearestNeighbors(n_neighbors=NEIGHBORS + 1).fit(z).kneighbors(z[queries], return_distance=False)[:, 1:]


def shared_neighbors(near: list[np.ndarray], k: int) -> float:
    """Compute the share of feature k's neighbors that another feature has too, on average over the others."""
    others = [own for j, own in enumerate(near) if j != k]
    return float(np.mean([(near[k][:, :, None] == own[:, None, :]).any(2).mean() for own in others]))


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    parts = {"small": options.scale == "small", f"lr-{options.lr:g}": options.lr != Options.lr}
    parts |= {options.translator: options.translator != Options.translator}
    parts |= {f"{options.steps}-steps": options.steps not in (0, STEPS[options.scale])}
    return Folders(options.out, folder_name("flowers", parts))


COLUMNS = ("method", "feature", "neighbors of the same species", "shared with another feature")


def tables(options: Options) -> list[TextTable]:
    """Return the stored table."""
    steps = f"{options.steps or STEPS[options.scale]:,} steps"
    titles = {
        "scores": f"Shares of the {NEIGHBORS} nearest neighbors; {steps}",
        "properties": f"R^2 by feature; {steps}",
    }
    stored = []
    for name, title in titles.items():
        path = folders(options).results / f"{name}.csv"
        if path.is_file():
            rows = pd.read_csv(path, dtype=str, keep_default_na=False)
            stored.append(TextTable(title, [*map(str, rows)], rows.to_numpy().tolist(), key_columns=2))
    return stored


def findings(options: Options, part: str) -> Findings:
    """Return the figures that were drawn."""
    figures = folders(options).drawn(f"{part}-*.png")
    effort = f"1 seed, {options.steps or STEPS[options.scale]:,} steps" if figures else ""
    return Findings(figures=figures, effort=effort)


def compare_features(name: str, near: list[np.ndarray], species: np.ndarray) -> list[list[str]]:
    """Return the rows of a method in the table, from the neighbors of every photograph by each feature."""
    rows = []
    for k, own in enumerate(near):
        same = float((species[own] == species[:, None]).mean())
        rows.append([name, f"Z_{k + 1}", f"{same:.3f}", f"{shared_neighbors(near, k):.3f}"])
    return rows


# What features hold ---------------------------------------------------------------------------------------------------


def measure_properties(x: np.ndarray) -> dict[str, np.ndarray]:
    """Return properties of photographs (n, 3, h, w) by name: colors (n, 3) and shape statistics (n, 1)."""
    n, _, h, w = x.shape
    is_center, is_inside = np.zeros((h, w), bool), np.zeros((h, w), bool)
    for mask, margin in ((is_center, (1 - CENTER) / 2), (is_inside, BORDER)):
        mask[round(margin * h) : h - round(margin * h), round(margin * w) : w - round(margin * w)] = True
    colors = {"color of flower": is_center, "color of background": ~is_inside}
    shape = attributes.measure(x, SHAPE)
    return {name: x[:, :, mask].mean(2) for name, mask in colors.items()} | {
        name: np.nan_to_num(values, nan=np.nanmean(values)).reshape(n, 1) for name, values in shape.items()
    }


def explained_properties(z: np.ndarray, properties: dict[str, np.ndarray], seed: int) -> list[float]:
    """Return R^2 of each property by linear regression on codes (n, d), on a half that it was not fitted to."""
    train, test = train_test_split(np.arange(len(z)), test_size=0.5, random_state=seed)
    scores = []
    for values in properties.values():
        if np.ptp(values, 0).max() < MIN_SPREAD:
            scores.append(0.0)  # all photographs are alike: there is nothing to know
            continue
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13))).fit(z[train], values[train])
        predicted = model.predict(z[test]).reshape(len(test), -1)
        scores.append(max(0.0, float(r2_score(values[test], predicted, multioutput="variance_weighted"))))
    return scores


def mean_gap(explained: np.ndarray) -> float:
    """Return the lead of the best feature over the next, (features, properties), over the properties that one knows."""
    ordered = np.sort(explained, 0)
    is_known = ordered[-1] > MIN_KNOWN
    return float((ordered[-1] - ordered[-2])[is_known].mean()) if is_known.any() else 0.0


def compare_properties(
    name: str, z: np.ndarray, groups: list[list[int]], x: np.ndarray, seed: int
) -> list[dict[str, str]]:
    """Return the rows of a method in the table of properties: one for each feature, and one for the gap."""
    properties = measure_properties(x)
    explained = np.array([explained_properties(z[:, own], properties, seed) for own in groups])
    rows = []
    for k, values in enumerate(explained):
        cells = {column: f"{value:.2f}" for column, value in zip(properties, values, strict=True)}
        rows.append({"method": name, "feature": f"Z_{k + 1}"} | cells)
    ordered = np.sort(explained, 0)
    gaps = {column: f"{value:.2f}" for column, value in zip(properties, ordered[-1] - ordered[-2], strict=True)}
    return [*rows, {"method": name, "feature": f"gap, mean {mean_gap(explained):.2f}"} | gaps]


def main(options: Options, output: Output = SILENT) -> None:
    """Train, look up neighbors, draw, and report the table."""
    place = folders(options)
    place.create()
    data = Flowers102(split="train" if options.scale == "small" else "all").load()
    assert isinstance(data, Table)
    x, species = data.x.float().div(255 if data.x.dtype == torch.uint8 else 1).numpy(), data.c[:, 0].numpy()
    queries = np.random.default_rng(options.seed).permutation(len(x))[: options.queries]
    lines, held = [], []
    for name, untrained in methods(options).items():
        output.progress(f"{name}: {untrained.steps:,} steps")
        method = fit_or_load(untrained, data, place.results / f"model-{name.lower()}", output.training)
        z = method.transform(x)
        near = [
            nearest_neighbors(z[:, own], np.arange(len(x))) for own in method.feature_groups()
        ]  # (photographs, NEIGHBORS)
        lines += compare_features(name, near, species)
        held += compare_properties(name, z, method.feature_groups(), x, options.seed)
        rows = [
            (f"query {i + 1}", x[np.r_[q, np.concatenate([own[q] for own in near])]]) for i, q in enumerate(queries)
        ]
        heads = ["query", *(f"Z_{k + 1}" for k in range(len(near)) for _ in range(NEIGHBORS))]
        title = f"{name}: the query, then {NEIGHBORS} nearest by each of {len(near)} features"
        place.save(draw_grid(rows, title, heads), f"figure-5-{name.lower()}.png")
        place.save(draw_reconstructions(method, x[queries]), f"reconstructions-{name.lower()}.png")
    share = float(np.square(np.bincount(species.astype(int)) / len(species)).sum())
    lines.append(["at random", "", f"{share:.3f}", f"{NEIGHBORS / len(x):.3f}"])
    pd.DataFrame(lines, columns=[*COLUMNS]).to_csv(place.scores, index=False)
    pd.DataFrame(held).to_csv(place.results / "properties.csv", index=False)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
