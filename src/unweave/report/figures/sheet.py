"""A contact sheet: random observations, and for each factor a row in which it alone changes."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.report.figures.style import make_panels
from unweave.utils.errors import InputError

ACROSS = 12  # images in a row
MOST_FACTORS = 8


def draw_sheet(data: FactorData, title: str, rng: Generator) -> Figure:
    """Two rows of random observations, then a row per factor, where the data can be rendered with the others fixed."""
    if len(data.shape) not in (2, 3):
        raise InputError(f"{title} has observations of shape {data.shape}: only images can be shown on a sheet")
    rows = [("random", data.render(data.sample(ACROSS, rng))) for _ in range(2)]
    start = data.sample(1, rng)
    for j, factor in enumerate(data.factors[:MOST_FACTORS]):
        images = _varied(data, start, j, rng)
        if images is not None and not factor.noise:
            rows.append((factor.name, images))
    figure, axes = make_panels(1, width=ACROSS * 0.62 + 1.2, height=len(rows) * 0.66 + 0.4)
    picture = np.concatenate([join_images(images) for _, images in rows], 0)
    axes[0].imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    size = picture.shape[0] / len(rows)
    axes[0].set_yticks([(i + 0.5) * size for i in range(len(rows))], [name for name, _ in rows])
    axes[0].set_xticks([])
    axes[0].spines[:].set_visible(False)
    axes[0].tick_params(length=0)
    axes[0].set_title(title)
    return figure


def _varied(data: FactorData, start: Tensor, j: int, rng: Generator) -> Tensor | None:
    """The starting point with factor j running through its values; None where there are no such observations."""
    c = data.labels(start).repeat(ACROSS, 1).double()
    factor = data.factors[j]
    if factor.size is not None:
        levels = data.levels(j)
        c[:, j] = levels[torch.linspace(0, len(levels) - 1, ACROSS).round().long()].double()
    else:
        seen = data.labels(data.sample(500, rng))[:, j].double()
        c[:, j] = torch.linspace(float(seen.min()), float(seen.max()), ACROSS)
    try:
        points = data.locate(c.to(data.labels(start).dtype), rng)
    except InputError:
        return None  # a table lacks some of these combinations
    return data.render(points)


def join_images(images: Tensor) -> np.ndarray:
    """Images side by side with a thin gap, (n, channels, h, w) or (n, h, w) -> (h, n w, 3)."""
    x = images.detach().float().cpu().clamp(0, 1)
    x = x[:, None] if x.ndim == 3 else x
    x = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x[:, :3]
    x = torch.nn.functional.pad(x, (1, 1, 1, 1), value=1.0)
    return torch.cat(list(x), 2).permute(1, 2, 0).numpy()
