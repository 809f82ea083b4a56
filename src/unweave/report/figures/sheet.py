"""Contact sheets of datasets."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.data.preview import vary_factor
from unweave.report.figures.style import make_panels
from unweave.utils.errors import InputError

COLUMNS = 12  # images in a row
RANDOM_ROWS = 2
MAX_FACTORS = 8


def draw_sheet(data: FactorData, title: str, rng: Generator) -> Figure:
    """Return two rows of random images, then one row per factor in which only this factor changes.

    Factors are left out where the data have no images with the other factors fixed.
    """
    if len(data.shape) not in (2, 3):
        raise InputError(f"{title} has observations of shape {data.shape}: only images can be shown on a sheet")
    rows = [("random", data.render(data.sample(COLUMNS, rng))) for _ in range(RANDOM_ROWS)]
    start = data.sample(1, rng)
    for j, factor in enumerate(data.factors[:MAX_FACTORS]):
        points = vary_factor(data, start, j, COLUMNS, rng)
        if points is not None and not factor.noise:
            rows.append((factor.name, data.render(points)))
    figure, (axis,) = make_panels(1, width=COLUMNS * 0.62 + 1.2, height=len(rows) * 0.66 + 0.4)
    picture = np.concatenate([join_images(images) for _, images in rows], 0)
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    size = picture.shape[0] / len(rows)
    axis.set_yticks([(i + 0.5) * size for i in range(len(rows))], [name for name, _ in rows])
    axis.set_xticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_title(title)
    return figure


def join_images(images: Tensor) -> np.ndarray:
    """Return images side by side with a thin gap, (n, channels, h, w) or (n, h, w) -> (h + 2, n (w + 2), 3)."""
    x = images.detach().float().cpu().clamp(0, 1)
    x = x[:, None] if x.ndim == 3 else x
    x = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x[:, :3]
    x = torch.nn.functional.pad(x, (1, 1, 1, 1), value=1.0)
    return torch.cat(list(x), 2).permute(1, 2, 0).numpy()
