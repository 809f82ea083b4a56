"""
Datasets that need no files
===========================

Eight datasets are made by the package itself, with known factors. Load one by its class, draw observations with their
factors, and use them to try a method or a metric.
"""

# %%
# Load and draw
# -------------
# A dataset is a recipe with settings. ``load`` returns the data: named factors, a sampler, and a renderer.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave
from unweave import datasets

room = datasets.Shapes3D().load()
for factor in room.factors:
    print("-", factor.summary())
images, factors = room.draw(4, torch.Generator().manual_seed(0))
print(images.shape, factors.shape)

# %%
# All of them
# -----------
# Five are images, three are points in several dimensions. Colors of points are one of their factors.

picture_sets = [
    datasets.SquaresXY(),
    datasets.SquaresXC(),
    datasets.DSprites(),
    datasets.ContinuousSprites(vary=("x", "y", "scale", "angle")),
    datasets.Shapes3D(),
]
point_sets = [
    datasets.SwissRoll(points=2_000),
    datasets.FlatSheet(points=2_000),
    datasets.GaussianMixture(points=2_000),
]


def contact_sheet(images: torch.Tensor, columns: int) -> np.ndarray:
    """Put images (n, channels, height, width) side by side, as an array (height, width, 3)."""
    tiles = torch.nn.functional.pad(images.expand(-1, 3, -1, -1), (1, 1, 1, 1), value=1.0)
    rows = [torch.cat(list(tiles[i : i + columns]), 2) for i in range(0, len(tiles), columns)]
    return torch.cat(rows, 1).permute(1, 2, 0).clamp(0, 1).numpy()


figure = plt.figure(figsize=(10, 6.2), constrained_layout=True)
for place, dataset in enumerate(picture_sets, 1):
    data = dataset.load()
    axis = figure.add_subplot(2, 4, place)
    axis.imshow(contact_sheet(data.draw(16, torch.Generator().manual_seed(1)).x, columns=4))
    axis.set_title(dataset.name, weight="bold")
    axis.set_xlabel("\n".join([", ".join(f.name for f in data.factors[i : i + 3]) for i in (0, 3)]))
    axis.set(xticks=[], yticks=[])
for place, dataset in enumerate(point_sets, 6):
    data = dataset.load()
    points, sources = data.collect(2_000, torch.Generator())
    axis = figure.add_subplot(2, 4, place, projection="3d")
    axis.scatter(*points[:, :3].T, c=sources[:, 0], cmap="viridis", s=3)
    axis.set_title(dataset.name, weight="bold")
    names = [factor.name for factor in data.factors if not factor.noise]
    axis.text2D(0.5, -0.1, ", ".join(names), transform=axis.transAxes, ha="center")
    axis.set(xticks=[], yticks=[], zticks=[])
plt.show()

# %%
# Change one factor at a time
# ---------------------------
# A point of these data *is* its factors. So you can render any combination, for example a row of rooms for each factor.

start = torch.tensor([0, 3, 6, 5, 2, 7])
rows = []
for j, factor in enumerate(room.factors):
    points = start.repeat(8, 1)
    points[:, j] = torch.linspace(0, (factor.size or 1) - 1, 8).round().long()
    rows.append(room.render(points))
figure, axis = plt.subplots(figsize=(7, 5.3), constrained_layout=True)
axis.imshow(contact_sheet(torch.cat(rows), columns=8))
axis.set(xticks=[], yticks=[])
axis.set_yticks([66 * j + 33 for j in range(6)], [factor.name for factor in room.factors])
plt.show()

# %%
# A slice for quick experiments
# -----------------------------
# :class:`~unweave.datasets.Slice` lets a few factors vary and keeps the others. It is small, and a method finds both
# factors in a second.

scenes = datasets.Slice(of="shapes3d", vary=("scale", "orientation"))
images, factors = scenes.load().collect(1_000, torch.Generator())
codes = unweave.methods.HessianICA(latent_dim=2).fit_transform(images)
print(f"{len(images)} images, MCC {unweave.metrics.mcc(factors, codes):.2f}")

# %%
# When it fails
# -------------
# Other datasets are files of other people. The message says which file is missing, where to put it, and its license:

try:
    datasets.MNIST().load()
except unweave.InputError as error:
    print(str(error).replace(str(Path.home()), "~"))

# %%
# ``unweave data list`` shows the state of every dataset on your machine. A substitute for published data says so in
# every result:

print(datasets.DSprites().title(), "|", datasets.Shapes3D().title())

# %%
# Related
# -------
# - :doc:`/guide/datasets`: all datasets, their files and substitutes.
# - :doc:`/gallery/data/plot_generator`: make data of your own generator.
# - :class:`unweave.datasets.Shapes3D`, :class:`unweave.datasets.DSprites`, :class:`unweave.datasets.Slice`
