"""
Separate what predicts from what does not: swap and contrast
============================================================

:class:`~unweave.methods.SwapContrast` learns two groups of codes: one that predicts the class, and one for nuisances.
Its classifier keeps working where the nuisance misleads a plain one.
"""

# %%
# What we have
# ------------
#
# Small images of three shapes in three colors. Nine of ten training squares are red, discs green, crosses blue. The
# shape is the class, the color is the nuisance. In new images every shape has every color equally often.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unweave

SHAPES, COLORS = ["square", "disc", "cross"], ["red", "green", "blue"]
RGB = np.array([[0.90, 0.20, 0.20], [0.20, 0.80, 0.30], [0.25, 0.40, 0.95]])


def draw(n: int, tie: float, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Draw n images (n, 3, 16, 16); for a share `tie` of them, the shape decides the color."""
    rng = np.random.default_rng(seed)
    shape, color = rng.integers(0, 3, n), rng.integers(0, 3, n)
    color = np.where(rng.random(n) < tie, shape, color)
    x, y, radius = (rng.uniform(low, high, (n, 1, 1)) for low, high in ((5.5, 9.5), (5.5, 9.5), (3, 4.5)))
    row, column = np.mgrid[:16, :16]
    u, v = np.abs(column - x) / radius, np.abs(row - y) / radius  # 1 at the edge of a shape
    cross = np.minimum(np.maximum(u, 3 * v), np.maximum(3 * u, v))
    distance = np.stack([np.maximum(u, v), 0.9 * np.hypot(u, v), cross])[shape, np.arange(n)]
    mask = np.clip(4 * (1.05 - distance), 0, 1)
    images = mask[:, None] * RGB[color][:, :, None, None] + 0.05 * rng.normal(size=(n, 3, 16, 16))
    labels = pd.DataFrame({"shape": np.array(SHAPES)[shape], "color": np.array(COLORS)[color]})
    return images.clip(0, 1), labels


X, y = draw(2_000, tie=0.9, seed=0)
X_new, y_new = draw(2_000, tie=0.0, seed=1)
print(pd.crosstab(y["shape"], y["color"]))

# %%
# Two classifiers
# ---------------
#
# Both have the same small convolutional encoder. Swap and contrast takes pairs of one shape and different colors from
# the table: the first column is the class, the second the nuisance.

plain = unweave.methods.CNNClassifier(latent_dim=12, widths=(16, 32), hidden=(64,), steps=800, lr=2e-3).fit(X, y)
swap = unweave.methods.SwapContrast(predictive_dim=12, nuisance_dim=4, beta=20)
swap.set_params(widths=(16, 32), hidden=(64,), steps=800, lr=2e-3).fit(X, y)
classifiers = {"plain": plain, "swap and contrast": swap}
for name, method in classifiers.items():
    worst = unweave.metrics.worst_group_accuracy(y_new["shape"], method.predict(X_new), y_new)
    print(f"{name:18} new images: accuracy {method.score(X_new, y_new):.2f}, worst group {worst:.2f}")

# %%
# Where each one is right
# -----------------------
#
# One new image of every group, and the accuracy of both classifiers on all images of this group. The plain classifier
# relies on the color: it fails on shapes in colors that were rare in training.

right = y_new.assign(**{name: method.predict(X_new) == y_new["shape"] for name, method in classifiers.items()})
accuracy = right.groupby(["shape", "color"])[list(classifiers)].mean()

figure, axes = plt.subplots(3, 3, figsize=(5.6, 4.9), layout="constrained")
for row, shape in zip(axes, SHAPES, strict=True):
    for axis, color in zip(row, COLORS, strict=True):
        example = np.flatnonzero((y_new["shape"] == shape) & (y_new["color"] == color))[0]
        axis.imshow(X_new[example].transpose(1, 2, 0))
        axis.set(xticks=[], yticks=[])
        before, after = accuracy.loc[[(shape, color)]].to_numpy()[0]
        axis.set_title(f"plain {before:.2f}, swap {after:.2f}", fontsize=9)
        frame = "C3" if before < 0.8 else "0.8"
        axis.spines[:].set(color=frame, linewidth=3)
figure.suptitle("accuracy on new images (red: plain below 0.8)")
plt.show()

# %%
# Is the color gone from the codes that predict?
# ----------------------------------------------
#
# ``transform`` returns twelve predictive codes first, then four for nuisances. A fresh classifier looks for the color
# in them. A third is chance.

codes = swap.transform(X_new)
colors = y_new["color"].map(COLORS.index).to_numpy()
for name, part in (("plain", plain.transform(X_new)), ("predictive", codes[:, :12]), ("nuisance", codes[:, 12:])):
    probe = unweave.metrics.nuisance_probe(colors, part)
    print(f"{name:12} codes: color found in {probe.accuracy:.0%}")

# %%
# Less is left than in the plain codes, but not nothing. The classifier only must not use it.
#
# When it fails
# -------------
#
# - ``beta``, the weight of the contrast, competes with the reconstruction. If it is too large, the decoder learns
#   nothing. The method says so: "Use a smaller beta: with beta=300 the class is learned, but the decoder explains 0% of
#   the variance."
# - Without pairs of one class that differ in the nuisance, there is nothing to learn from, which is an error.
#
# Related
# -------
#
# - :doc:`/gallery/questions/plot_ignore_the_lab` does the same with a table.
# - :doc:`/gallery/methods/plot_classifiers` compares six methods.
# - :doc:`/methods/invariance` has the losses.
