"""How far does HLLE + ICA get where hues separate the images into parts? Parts are embedded alone, then aligned.

unweave paper run hlle-ica/hues                    # slices of 3DShapes; two minutes on one core

The neighbor graph of images with several hues has a part for each combination of them, and the method refuses it. Here
the number of factors inside of parts is given, and the number of hues. Linear ICA of the means of parts gives codes of
the hues. `centered` puts all parts into one graph instead, after subtracting their means.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Generator

from unweave.datasets import Slice
from unweave.methods import HessianICA
from unweave.methods.spectral.parts import AlignedParts, align_parts
from unweave.methods.spectral.preprocessing import PCA_SUBSET, fit_projection
from unweave.metrics import mcc
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings
from unweave.utils.errors import InputError

INSIDE = ("scale", "orientation")  # factors that vary inside of parts
SLICES = (("wall", *INSIDE), ("floor", *INSIDE), ("object", *INSIDE), ("floor", "wall", *INSIDE))
BLURS = (0.0, 2.0, 4.0)  # pixels
COMPONENTS = 50
HEADS = ("slice", "blur", "parts", "agreement", "aligned", "all codes", "centered")


@dataclass(kw_only=True)
class Options:
    """Slices of 3DShapes with one hue or two."""

    out: Path = Path("papers/hlle_ica")
    """Folder of the paper: results go below it."""
    hues: int = 2
    """Slices with more hues than this are left out."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out)


def scores_path(options: Options) -> Path:
    """Return the path of the table of scores."""
    return folders(options).results / "hues.csv"


def score_slice(vary: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the MCC of a slice at every blur: inside of aligned parts, with codes of hues, and of centered parts."""
    data = Slice(of="shapes3d", vary=vary, points=100_000).load()
    points = data.all_points(100_000)
    assert points is not None
    x, c = data.render(points).flatten(1), data.labels(points).numpy()
    names = [factor.name for factor in data.factors]
    inside, subset = [names.index(name) for name in INSIDE], Generator().manual_seed(0)
    sample = x[torch.randperm(len(x), generator=subset)[:PCA_SUBSET]]
    rows = []
    for blur in BLURS:
        projected = fit_projection(sample, COMPONENTS, blur, data.shape, Generator().manual_seed(0))(x).numpy()
        try:
            parts = align_parts(projected, HessianICA(), len(inside))
        except InputError as error:
            rows.append({"slice": ", ".join(vary), "blur": blur, "error": str(error)})
            continue
        hues = parts.part_codes(len(names) - len(inside))
        rows.append({
            "slice": ", ".join(vary), "blur": blur, "parts": len(parts.centers), "agreement": parts.agreement,
            "aligned": mcc(c[:, inside], parts.codes), "all codes": mcc(c, np.column_stack([hues, parts.codes])),
            "centered": mcc(c[:, inside], embed_centered(projected, parts, len(inside))),
        })  # fmt: skip
    return rows


def embed_centered(projected: np.ndarray, parts: AlignedParts, d: int) -> np.ndarray:
    """Return codes of points (n, D) in d dimensions, after subtracting the mean of each part."""
    return HessianICA(latent_dim=d).fit_transform(projected - parts.centers[parts.labels])


def tables(options: Options) -> list[TextTable]:
    """Return the stored table."""
    path = scores_path(options)
    if not path.is_file():
        return []
    lines = [
        [row["slice"], f"{row['blur']:g} px", *(show_number(row[name], name) for name in HEADS[2:])]
        for row in pd.read_csv(path).to_dict("records")
    ]
    return [TextTable("3DShapes: MCC inside of parts, of all codes, and of centered parts in one graph", HEADS, lines)]


def show_number(value: float, name: str) -> str:
    """Return a number as text; a dash for parts that were refused."""
    return "-" if np.isnan(value) else f"{value:.0f}" if name == "parts" else f"{value:.3f}"


def findings(options: Options, part: str) -> Findings:
    """Return how much was run."""
    path = scores_path(options)
    return Findings(effort=f"{len(pd.read_csv(path))} cases") if path.is_file() else Findings(missing=(part,))


def main(options: Options, output: Output = SILENT) -> None:
    """Run everything, and report the table."""
    folders(options).create()
    rows: list[dict[str, Any]] = []
    for vary in SLICES:
        if len(vary) - len(INSIDE) <= options.hues:
            output.progress(f"3DShapes: {', '.join(vary)}")
            rows += score_slice(vary)
            pd.DataFrame(rows).to_csv(scores_path(options), index=False)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {scores_path(options)}.")
