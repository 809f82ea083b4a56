"""
Data that are larger than memory
================================

Pass a memory map, an HDF5 array, or a dataset with ``__len__`` and ``__getitem__``: rows are read when they are needed.
With the same seed the model is the same as with all rows in memory, to the bit.
"""

# %%
# What you have
# -------------
# A file of images that does not fit into memory. We write a small one, in parts, as you would write a large one.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

temporary = tempfile.TemporaryDirectory()
path = Path(temporary.name) / "images.npy"
scene = unweave.datasets.SquaresXY(points=5_000, size=16, side=6).load()
positions = scene.collect(5_000, torch.Generator()).c

file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(5_000, 1, 16, 16))
for start in range(0, 5_000, 1_000):
    file[start : start + 1_000] = (255 * scene.render(positions[start : start + 1_000])).round()
file.flush()
print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")

# %%
# Train from the file
# -------------------
# ``mmap_mode="r"`` opens the file and reads nothing yet. ``fit`` and ``transform`` take the map as they take an array.

images = np.load(path, mmap_mode="r")
method = unweave.methods.BetaVAE(latent_dim=2, steps=500, widths=(8, 16), hidden=(32,), batch_size=32, lr=2e-3)
codes = method.fit(images).transform(images)
print(f"MCC {unweave.metrics.mcc(positions, codes):.3f}")

# %%
# The model does not depend on where the rows come from:

in_memory = method.fit(np.array(images)).transform(np.array(images))
print("equal codes:", np.array_equal(codes, in_memory))

# %%
# What is read, and when
# ----------------------
# Anything with ``__len__`` and ``__getitem__`` can be the source: a torch ``Dataset``, a Hugging Face dataset, an h5py
# or zarr array. This one keeps a list of what is read. ``memory=0`` means that no rows are kept.

reads: list[int] = []


class Frames:
    """Images of the file, one by one."""

    def __len__(self) -> int:
        return len(images)

    def __getitem__(self, i: int) -> np.ndarray:
        reads.append(i)
        return images[i]


data = unweave.as_data(Frames(), positions, memory=0)
print(data)
method.set_params(steps=200).fit(data)
during_fit = len(reads)
codes = method.transform(data)

# %%
# Each dot is one row that was read. ``fit`` checks some rows first. Then it reads the batches of several steps at once,
# in the order of the file, while earlier steps are computed. ``transform`` passes over all rows once.

figure, axis = plt.subplots(figsize=(7, 4.6), constrained_layout=True)
order = np.arange(len(reads))
axis.scatter(order[:during_fit], reads[:during_fit], s=1, label="fit")
axis.scatter(order[during_fit:], reads[during_fit:], s=1, label="transform")
axis.set(xlabel="reads, in order of time", ylabel="row of the file", title="Rows that are read on demand")
axis.legend(markerscale=8, loc="lower right")
plt.show()

# %%
# When it fails
# -------------
# All items must have one shape. The message names one that differs:


class Cropped(Frames):
    """The same images, of which one lost half of its rows."""

    def __getitem__(self, i: int) -> np.ndarray:
        return images[i][:, :8] if i == 7 else images[i]


try:
    method.fit(unweave.as_data(Cropped()))
except unweave.InputError as error:
    print(error)

# %%
# - Items must not change from one reading to the next. Augment inside a method, not inside the dataset.
# - PCA, ICA and spectral methods cannot learn in batches. They learn from a random sample, and a warning says how many
#   rows it has.
# - ``.npz``, ``.csv`` and ``.parquet`` files are always read completely.
#
# Related
# -------
# - :doc:`/guide/large-data`: all sources, limits of memory, and measured speeds.
# - :doc:`/gallery/data/plot_arrays`: data that fit.
# - :func:`unweave.as_data`, :class:`unweave.LazyTable`, :class:`unweave.OwnData` (``memory``)
