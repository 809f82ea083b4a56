"""Draw the picture of the front page: `python docs/hero.py` writes docs/_static/hero-light.png and hero-dark.png."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import unweave

FOLDER = Path(__file__).parent / "_static"
THEMES = {"light": ("#ffffff", "#1f2430"), "dark": ("#14181e", "#e8eaf0")}  # background and text
POSITION, COLOR = "#2b7fb8", "#d9622b"  # lines along which one factor varies
GRID = 15


def show_images(ax: Axes, images: np.ndarray, columns: int) -> None:
    """Show images (n, 3, h, w) as a contact sheet."""
    rows = len(images) // columns
    padded = np.pad(images, [(0, 0), (0, 0), (2, 2), (2, 2)], constant_values=np.nan)
    c, h, w = padded.shape[1:]
    sheet = padded.reshape(rows, columns, c, h, w).transpose(0, 3, 1, 4, 2).reshape(rows * h, columns * w, c)
    alpha = ~np.isnan(sheet[..., :1])
    ax.imshow(np.concatenate([np.nan_to_num(sheet), alpha], 2))
    ax.set_axis_off()


def show_grid(ax: Axes, codes: np.ndarray, samples: np.ndarray, title: str) -> None:
    """Show where the codes put a regular grid of the two true factors, (GRID * GRID, 2)."""
    grid = codes.reshape(GRID, GRID, 2)
    ax.plot(*samples.T, ".", color="#8a93a3", markersize=2, alpha=0.6, zorder=0)
    ax.plot(grid[:, :, 0], grid[:, :, 1], color=POSITION, linewidth=1.2)
    ax.plot(grid[:, :, 0].T, grid[:, :, 1].T, color=COLOR, linewidth=1.2)
    ax.set(title=title, xlabel="code 1", ylabel="code 2", xticks=[], yticks=[])
    ax.set_box_aspect(1)


def along(codes: np.ndarray, k: int, count: int) -> np.ndarray:
    """Return the rows whose code k rises in equal steps while the other code stays near its median."""
    center = np.median(codes, 0)
    targets = np.repeat(center[None], count, 0)
    targets[:, k] = np.quantile(codes[:, k], np.linspace(0.03, 0.97, count))
    scaled = codes / codes.std(0)
    return np.array([np.square(scaled - target / codes.std(0)).sum(1).argmin() for target in targets])


def draw(theme: str) -> None:
    """Draw the picture in one theme."""
    background, text = THEMES[theme]
    data = unweave.datasets.SquaresXC(points=2_000, size=32, side=10).load()
    assert data.sources is not None
    images = data.render(data.sources)
    steps = torch.linspace(0, 1, GRID)
    grid = torch.cartesian_prod(steps * (32 - 10), steps)
    pca = unweave.methods.PCA(latent_dim=2).fit(images)
    ours = unweave.methods.HessianICA(latent_dim=2).fit(images)
    scores = {
        name: unweave.metrics.mcc(data.sources, method.transform(images))
        for name, method in (("PCA", pca), ("HLLE + ICA", ours))
    }
    order = np.argmax(np.abs(np.corrcoef(data.sources.T.numpy(), ours.transform(images).T)[:2, 2:]), 1)
    style: Any = {"text.color": text, "axes.labelcolor": text, "axes.edgecolor": "#8a93a3", "axes.titlecolor": text}
    style |= {"font.size": 11, "axes.titlesize": 12, "figure.facecolor": background}
    with mpl.rc_context(style):
        figure = plt.figure(figsize=(8.4, 4.1), layout="constrained")
        axes = figure.subplot_mosaic("AABBCC;DDDEEE", height_ratios=[2.9, 1])
        show_images(axes["A"], images[:25].numpy(), 5)
        axes["A"].set_title("2,000 images, no labels")
        for ax, name in ((axes["B"], "PCA"), (axes["C"], "HLLE + ICA")):
            method, chosen = (pca, [0, 1]) if name == "PCA" else (ours, order)
            codes, samples = (method.transform(x)[:, chosen] for x in (data.render(grid), images))
            show_grid(ax, codes, samples, f"{name} (MCC {scores[name]:.2f})")
            ax.set_facecolor(background)
        for ax, k, label, color in (
            (axes["D"], order[0], "code 1 is the position", POSITION),
            (axes["E"], order[1], "code 2 is the color", COLOR),
        ):
            show_images(ax, images[along(ours.transform(images), int(k), 6)].numpy(), 6)
            ax.set_title(label, color=color, weight="bold")
        figure.savefig(FOLDER / f"hero-{theme}.png", dpi=160)


if __name__ == "__main__":
    for name in THEMES:
        draw(name)
