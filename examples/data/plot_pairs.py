"""
Pairs of your own
=================

Two observations that differ in one thing tell a method what a factor is. :func:`unweave.as_pairs` makes data of such
pairs, and Ada-GVAE learns one code for each thing that can change.
"""

# %%
# What you have
# -------------
# Before and after: the same scene twice, with one thing changed. Nobody notes which one. Here the scene is a lamp in a
# round room, seen by 16 x 16 sensors. Between the two photographs of a pair somebody pushes it.

import matplotlib.pyplot as plt
import numpy as np

import unweave

rng = np.random.default_rng(0)
row, column = np.mgrid[-1:1:16j, -1:1:16j]


def random_places(n: int) -> np.ndarray:
    """Draw places uniformly in a disc, (n, 2)."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(0, 1, n))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def photograph(places: np.ndarray) -> np.ndarray:
    """Return the brightness of every sensor, from 0 to 10, (n, 2) -> (n, 256)."""
    x, y = 0.6 * places.T[:, :, None, None]
    return 10 * np.exp(-4 * ((column - x) ** 2 + (row - y) ** 2)).reshape(len(places), -1)


# %%
# Two ways to push a lamp
# -----------------------
# In the first set of pairs it moves to the side, or up and down. In the second set it moves along one of the diagonals.
# The first photographs are the same in both.

DIAGONALS = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
before, target = random_places(2_000), random_places(2_000)
which = np.eye(2)[rng.integers(0, 2, 2_000)]  # the one factor that changes
after_straight = np.where(which, target, before)
after_diagonal = np.where(which, target @ DIAGONALS, before @ DIAGONALS) @ DIAGONALS

X = photograph(before)
straight = unweave.as_pairs(X, photograph(after_straight), changed=1)
diagonal = unweave.as_pairs(X, photograph(after_diagonal), changed=1)
print(straight)

# %%
# Learn from the pairs
# --------------------
# The method sees no places, and is not told which factor changed. It gets pairs, and the number of factors that differ.

method = unweave.methods.AdaGVAE(latent_dim=2, layers=(64, 64), steps=800, lr=2e-3)
codes = {"pushed straight": method.fit(straight).transform(X), "pushed diagonally": method.fit(diagonal).transform(X)}
for name, z in codes.items():
    across, along_diagonals = unweave.metrics.mcc(before, z), unweave.metrics.mcc(before @ DIAGONALS, z)
    print(f"{name}: MCC with x and y {across:.2f}, with the diagonals {along_diagonals:.2f}")

# %%
# The same photographs, two answers: the pairs decide what counts as a factor. In a round room nothing else could, since
# every pair of axes describes the places equally well.

figure, axes = plt.subplots(2, 3, figsize=(7.5, 5), constrained_layout=True)
for line, (name, z), pairs in zip(axes, codes.items(), (after_straight, after_diagonal), strict=True):
    for start, end in zip(before[:40], pairs[:40], strict=True):
        line[0].annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "0.4"})
    line[0].set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), title=name, xlabel="x", ylabel="y")
    for j, axis in enumerate(line[1:]):
        axis.scatter(*before.T, c=z[:, j], cmap="coolwarm", s=5)
        axis.set(title=f"code {j + 1}", xticks=[], yticks=[])
for axis in axes.flat:
    axis.set_aspect("equal")
plt.show()

# %%
# When it fails
# -------------
# Pairs are row by row. A missing partner is an error:

try:
    unweave.as_pairs(X, X[:-1])
except unweave.InputError as error:
    print(error)

# %%
# - Now and then a seed ends in a fold, where two places have the same code. Train several seeds, see
#   :doc:`/gallery/questions/plot_which_seed`.
# - If all factors change in every pair, nothing says which codes belong to which: MCC falls to that of a plain VAE.
# - If a pair shares a class, pass it as ``y``. :class:`~unweave.methods.SwapContrast` learns from both.
# - Labels can replace pairs. ``method.fit(X, y)`` pairs observations that share the label.
#
# Related
# -------
# - :doc:`/guide/pairs`: pairs, nuisances, labels and augmentations.
# - :doc:`/gallery/questions/plot_rotated_factors`: why codes are rotated without pairs.
# - :doc:`/gallery/methods/plot_ada_gvae`: Ada-GVAE on images.
# - :func:`unweave.as_pairs`, :class:`unweave.methods.AdaGVAE`, :class:`unweave.methods.AdaMLVAE`
