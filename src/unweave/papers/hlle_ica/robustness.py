"""How robust is HLLE + ICA? Points, noise, JPEG, components, blur, missing regions; and what preprocessing does.

unweave paper run hlle-ica/robustness                              # all sweeps, about an hour on one core
unweave paper run hlle-ica/robustness --only noise jpeg            # some of them
unweave paper run hlle-ica/preprocessing                           # raw pixels, projection, projection and blur
unweave paper run hlle-ica/factors                                 # three and four factors of sprites

The number of factors is given, and everything else is chosen by the method, except for what a sweep sets. Stored rows
are not computed again.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image
from torch import Generator

from unweave.datasets import ContinuousSprites, Faces, SquaresXC, SquaresXY
from unweave.methods import HessianICA
from unweave.metrics import mcc
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings
from unweave.report.figures.style import make_panels
from unweave.utils.errors import InputError

POINTS = 3_000
NO_LOSS = 100  # quality of images that were not compressed
GRAY_LEVELS = 255


class Sample(NamedTuple):
    """Images and their factors."""

    x: np.ndarray  # (n, channels, height, width), 0 to 1
    z: np.ndarray  # (n, factors)


class Sweep(NamedTuple):
    """One property of the data, or one setting of the method, and its values."""

    label: str
    values: tuple[float, ...]
    change: Callable[[Sample, float], Sample] = lambda sample, value: sample
    """Changes the images."""
    settings: Callable[[float], dict[str, Any]] = lambda value: {}
    """Settings of the method."""


def take_points(sample: Sample, value: float) -> Sample:
    """Return the first points."""
    return Sample(sample.x[: int(value)], sample.z[: int(value)])


def add_noise(sample: Sample, value: float) -> Sample:
    """Add Gaussian noise with this deviation to every pixel."""
    noise = np.random.default_rng(0).normal(size=sample.x.shape).astype(sample.x.dtype)
    return sample._replace(x=sample.x + value * noise)


def compress(sample: Sample, value: float) -> Sample:
    """Compress images as JPEG files of a quality, and read them again."""
    if value == NO_LOSS:
        return sample
    pixels = (GRAY_LEVELS * sample.x).round().clip(0, GRAY_LEVELS).astype(np.uint8).transpose(0, 2, 3, 1)
    images = []
    for image in pixels:
        file = io.BytesIO()
        Image.fromarray(image.squeeze()).save(file, "JPEG", quality=int(value))
        images.append(np.asarray(Image.open(file)).reshape(image.shape))
    x = np.stack(images).transpose(0, 3, 1, 2).astype(sample.x.dtype) / GRAY_LEVELS
    return sample._replace(x=x)


def cut_hole(sample: Sample, value: float) -> Sample:
    """Leave out the observations in an ellipse in the middle of the factors, with this share of their area."""
    low, high = sample.z.min(0), sample.z.max(0)
    radius = np.linalg.norm((sample.z - low) / (high - low) - 0.5, axis=1)
    kept = np.pi * radius**2 >= value
    return Sample(sample.x[kept], sample.z[kept])


SWEEPS = {
    "points": Sweep("points", (300, 1_000, 3_000, 10_000, 30_000), take_points),
    "noise": Sweep("noise of pixels (deviation)", (0, 0.02, 0.05, 0.1, 0.2, 0.4), add_noise),
    "jpeg": Sweep("JPEG quality (100: none)", (NO_LOSS, 95, 75, 50, 25, 10), compress),
    "components": Sweep(
        "components (largest: all)", (3, 5, 10, 20, 50, 100, 300), settings=lambda count: {"project": int(count) % 300}
    ),
    "blur": Sweep("blur in pixels", (0, 0.5, 1, 2, 4), settings=lambda sigma: {"smooth": float(sigma)}),
    "hole": Sweep("missing share of the square", (0, 0.05, 0.1, 0.2, 0.4, 0.6), cut_hole),
}
PREPROCESSING: dict[str, dict[str, Any]] = {
    "raw pixels": {"project": 0, "smooth": 0.0},
    "projection": {"smooth": 0.0},
    "projection, automatic blur": {},
}


SPRITES: dict[str, Any] = {
    "two factors": ("x", "y"), "three factors": ("x", "y", "scale"), "four factors": ("x", "y", "scale", "angle"),
}  # fmt: skip
SPRITE_POINTS = (1_000, 3_000, 10_000, 20_000)


@dataclass(kw_only=True)
class Options:
    """Robustness of HLLE + ICA, and what its preprocessing does."""

    out: Path = Path("papers/hlle_ica")
    """Folder of the paper: results and figures go below it."""
    part: str = "robustness"
    """robustness, preprocessing, or factors."""
    only: tuple[str, ...] = ()
    """Sweeps to run; none for all."""
    manifolds: tuple[str, ...] = ()
    """Manifolds whose names contain one of these; none for all."""
    max_points: int = 30_000
    """Leave out more points than this."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out)


def scores_path(options: Options) -> Path:
    """Return the path of the table of scores."""
    return folders(options).results / f"{options.part}.csv"


def list_manifolds(options: Options) -> dict[str, Any]:
    """Return the manifolds by name; faces only where their files are."""
    size = min(POINTS, options.max_points)
    if options.part == "factors":
        return {name: ContinuousSprites(vary=vary) for name, vary in SPRITES.items()}
    every: dict[str, Any] = {"squares-xy": SquaresXY(points=size), "squares-xc": SquaresXC(points=size)}
    every |= {f"faces-{m}": face for m in ("01", "14", "23") if (face := Faces(manifold=m)).is_available()}
    only = options.manifolds
    return {name: data for name, data in every.items() if not only or any(part in name for part in only)}


def collect(data: Any, count: int) -> Sample:
    """Return images of a manifold and their factors; of faces there are 3,000."""
    if not isinstance(data, Faces):
        data = replace(data, points=count)
    x, z = data.load().collect(count, Generator().manual_seed(0))
    return Sample(x.numpy(), z.double().numpy())


def score(sample: Sample, **settings: Any) -> dict[str, Any]:
    """Return the quality of the codes, and whether the method claims success; a refusal counts as MCC 0."""
    try:
        method = HessianICA(latent_dim=sample.z.shape[1], loops="never", **settings).fit(sample.x)
    except InputError as error:
        return {"mcc": 0.0, "claimed": False, "error": str(error)}
    return {
        "mcc": mcc(sample.z, method.transform(sample.x)), "claimed": method.recovered_,
        "isometry": method.averaged_isometry_, "dependence": method.dependence_,
        "straightened": method.straightened_, "blur": method.smooth_, "neighbors": method.n_neighbors_,
    }  # fmt: skip


def bind_value(sweep: Sweep, value: float) -> Callable[[Sample], Sample]:
    """Return the change of the images that a value of a sweep makes."""
    return lambda sample: sweep.change(sample, value)


def list_cases(options: Options) -> list[tuple[dict[str, Any], int, Callable[[Sample], Sample], dict[str, Any]]]:
    """Return the columns that identify each case, its number of points, the change of its images, and settings."""
    cases: list[tuple[dict[str, Any], int, Callable[[Sample], Sample], dict[str, Any]]] = []
    for name, data in list_manifolds(options).items():
        if options.part == "preprocessing":
            cases += [({"manifold": name, "observations": way}, POINTS, lambda s: s, settings)
                      for way, settings in PREPROCESSING.items()]  # fmt: skip
            continue
        if options.part == "factors":
            cases += [({"manifold": name, "observations": f"{n:,} images"}, n, lambda s: s, {}) for n in SPRITE_POINTS
                      if n <= options.max_points]  # fmt: skip
            continue
        for key, sweep in SWEEPS.items():
            if options.only and key not in options.only:
                continue
            for value in sweep.values:
                count = int(value) if key == "points" else POINTS
                most = POINTS if isinstance(data, Faces) else options.max_points
                if count <= most or key != "points":
                    change = bind_value(sweep, value)
                    head = {"sweep": key, "value": float(value), "manifold": name}
                    cases.append((head, min(count, most), change, sweep.settings(value)))
    return cases


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw, and report the table."""
    place, path = folders(options), scores_path(options)
    place.create()
    rows: list[dict[Any, Any]] = pd.read_csv(path).to_dict("records") if path.is_file() else []
    manifolds = list_manifolds(options)
    for head, count, change, settings in list_cases(options):
        if any(all(row.get(name) == value for name, value in head.items()) for row in rows):
            continue
        output.progress(", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in head.values()))
        rows.append(head | score(change(collect(manifolds[head["manifold"]], count)), **settings))
        pd.DataFrame(rows).to_csv(path, index=False)
    if options.part == "robustness":
        place.save(draw(pd.DataFrame(rows)), "robustness.png")
    for table in tables(options):
        output.table(table)


def draw(rows: pd.DataFrame) -> Figure:
    """Draw MCC in every sweep, a line for each manifold; hollow points are not claimed to be successes."""
    figure, axes = make_panels(len(SWEEPS), max_columns=3, width=3.3)
    for axis, (key, sweep) in zip(axes, SWEEPS.items(), strict=True):
        ticks = np.arange(len(sweep.values))
        for name, stored in rows[rows["sweep"] == key].groupby("manifold", sort=False):
            group = stored.set_index("value").reindex(sweep.values)
            (line,) = axis.plot(ticks, group["mcc"], "-", lw=1.2, label=str(name))
            for is_claimed, face in ((True, line.get_color()), (False, "white")):
                chosen = (group["claimed"] == is_claimed).to_numpy()
                axis.plot(ticks[chosen], group["mcc"][chosen], "o", ms=4.5, mfc=face, mec=line.get_color())
        axis.set_xticks(ticks, [f"{value:,g}" for value in sweep.values])
        axis.set_xlabel(sweep.label)
        axis.set_ylim(0, 1.03)
    axes[0].set_ylabel("MCC")
    axes[0].legend(frameon=False, fontsize=8, title="filled: success claimed", title_fontsize=8)
    return figure


def tables(options: Options) -> list[TextTable]:
    """Return the stored scores."""
    path = scores_path(options)
    if not path.is_file():
        return []
    rows = pd.read_csv(path)
    rows["cell"] = [f"{row.mcc:.3f}{'' if row.claimed else ' (not claimed)'}" for row in rows.itertuples()]
    if options.part != "robustness":
        wide = rows.pivot(index="manifold", columns="observations", values="cell")
        wide = wide.loc[rows["manifold"].unique(), rows["observations"].unique()]
        lines = [[str(name), *map(str, cells)] for name, cells in zip(wide.index, wide.to_numpy(), strict=True)]
        title = "MCC of HLLE + ICA" + (", 3,000 images" if options.part == "preprocessing" else " on sprites")
        return [TextTable(title, ["manifold", *wide.columns], lines)]
    made = []
    for key, group in rows.groupby("sweep", sort=False):
        wide = group.pivot(index="manifold", columns="value", values="cell").fillna("-")
        lines = [[str(name), *map(str, cells)] for name, cells in zip(wide.index, wide.to_numpy(), strict=True)]
        columns = ["manifold", *(f"{value:,g}" for value in wide.columns)]
        made.append(TextTable(f"MCC of HLLE + ICA by {SWEEPS[str(key)].label}", columns, lines))
    return made


def findings(options: Options, part: str) -> Findings:
    """Return what was run and drawn; the paper makes no claims here."""
    path = scores_path(options)
    if not path.is_file():
        return Findings()
    count = len(pd.read_csv(path))
    return Findings(figures=folders(options).drawn(f"{part}*.png"), effort=f"{count} fits, 1 seed")
