"""
Factors from pairs: Ada-GVAE
============================

Pairs of images that share some of their factors tell a VAE which codes belong to which factor.
:class:`~unweave.methods.AdaGVAE` then learns one code per factor with every seed, a VAE of the same size with some.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# What we have
# ------------
#
# Three thousand pairs of images of a square. The two images of a pair differ in one coordinate, and share the other. It
# is not known which: there are no labels. Two frames of a video are a typical pair of this kind.

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

data = unweave.datasets.SquaresXY(points=6_000, size=16, side=6, blur=1).load()
positions = data.collect(6_000, torch.Generator()).c  # (6000, 2)
first, other = positions[:3_000], positions[3_000:]
is_changed = torch.eye(2, dtype=torch.bool)[torch.arange(3_000) % 2]  # x in every other pair, y in the others
second = torch.where(is_changed, other, first)

X, X2 = data.render(first).numpy(), data.render(second).numpy()  # (3000, 1, 16, 16) each
pairs = unweave.as_pairs(X, X2, changed=1)
print(pairs)

# %%
# Here are six pairs, one above the other.

figure, axes = plt.subplots(2, 6, figsize=(7, 2.4), layout="constrained")
for axis, image in zip(axes.flat, np.concatenate([X[:6, 0], X2[:6, 0]]), strict=True):
    axis.imshow(image, cmap="gray")
    axis.set(xticks=[], yticks=[])
plt.show()

# %%
# Train
# -----
#
# Both methods get the same images, network, number of steps and weight of the KL term. The VAE takes the images one by
# one. Ada-GVAE takes the pairs: the codes that differ least within a pair are assumed to be shared, and get the average
# posterior. We train three seeds of each, since the result of a VAE depends on its random start.

settings: dict[str, Any] = {
    "latent_dim": 4,
    "beta": 2.0,
    "network": "mlp",
    "layers": (128, 64),
    "steps": 800,
    "lr": 2e-3,
}
models = {
    "VAE": [unweave.methods.BetaVAE(seed=seed, **settings).fit(pairs) for seed in range(3)],
    "Ada-GVAE": [unweave.methods.AdaGVAE(seed=seed, **settings).fit(pairs) for seed in range(3)],
}
for name, seeds in models.items():
    scores = [unweave.metrics.mcc(first, model.transform(X)) for model in seeds]
    print(f"{name:9} MCC", *(f"{score:.3f}" for score in scores))

# %%
# What the codes do
# -----------------
#
# The plane shows the two codes with the largest spread. Its colors are the true positions. Below it, one of these codes
# is changed at a time and decoded. We take the second seed, in which the VAE is worst: its codes move the square along
# both axes. A code of Ada-GVAE moves it along one axis.

u, v = (first / first.max()).numpy().T
colors = np.stack([0.1 + 0.85 * u, 0.45 + 0.3 * v, 0.85 - 0.6 * u * (1 - v) - 0.3 * v], 1)

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), height_ratios=[3, 2], layout="constrained")
for (above, below), (name, seeds) in zip(axes.T, models.items(), strict=True):
    model = seeds[1]
    z = model.transform(X)
    a, b = np.argsort(-z.std(0))[:2]
    above.scatter(z[:, a], z[:, b], c=colors, s=5, linewidths=0)
    above.set(xticks=[], yticks=[], xlabel=f"code {a + 1}", ylabel=f"code {b + 1}")
    above.set_title(f"{name}, seed 1: MCC {unweave.metrics.mcc(first, z):.3f}")
    rows = []
    for code in (a, b):
        line = np.zeros((6, 4), np.float32)
        line[:, code] = np.linspace(-1.5, 1.5, 6)
        rows.append(np.concatenate(list(np.pad(model.inverse_transform(line)[:, 0], 1, constant_values=0.5)[1:-1]), 1))
    below.imshow(np.concatenate(rows), cmap="gray", vmin=0, vmax=1)
    below.set(xticks=[], yticks=[8, 26], yticklabels=[f"code {a + 1}", f"code {b + 1}"])
    below.tick_params(length=0)
plt.show()

# %%
# When it fails
# -------------
#
# - Every factor must be shared in some pairs and changed in others. A factor that always changes has no code of its own
#   that is ever shared.
# - Pairs of unequal length are an error:

try:
    unweave.as_pairs(X, X2[:100])
except unweave.InputError as error:
    print(error)

# %%
# - An array without pairs or labels is an error, too. Labels say which rows may form a pair: those with equal labels.

try:
    unweave.methods.AdaGVAE(steps=10).fit(X)
except unweave.InputError as error:
    print(error)

# %%
# Related
# -------
#
# - :doc:`/gallery/data/plot_pairs` makes pairs from your own arrays and labels.
# - :doc:`/gallery/methods/plot_beta_vae` explains the weight ``beta``.
# - :class:`unweave.methods.AdaMLVAE` averages the codes of a pair in another way.
