"""
Labels in a VAE: iVAE
=====================

A VAE alone does not find the factors behind nonlinearly mixed data. :class:`~unweave.methods.IVAE` gives its prior a
label, here the condition of a measurement, and the same network recovers the factors.
"""

# %%
# What we have
# ------------
#
# Four thousand rows of two numbers, measured under five conditions. Two independent factors are behind them. Under the
# first condition the first factor varies most, under the second the other one. The measurement rotates and bends them.

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import unweave

rng = np.random.default_rng(0)
spreads = np.array([[3, 0.3], [0.3, 3], [1.2, 1.2], [2, 0.8], [0.8, 2]])  # of both factors under each condition
condition = rng.integers(0, 5, 4_000)  # (4000,), the label
factors = spreads[condition] * rng.normal(size=(4_000, 2))  # the truth

a, b = (factors @ np.array([[1, 1], [-1, 1]]) / np.sqrt(2)).T  # rotated by 45 degrees
x = np.stack([a + 0.3 * b**2, b], 1) + 0.05 * rng.normal(size=(4_000, 2))  # bent, with noise

# %%
# With and without labels
# -----------------------
#
# Both get the same network, and assume the same noise in the data, with variance 0.05. In a VAE with unit variance this
# is the weight ``beta`` of the KL term. Three seeds of each show how much the random start matters.

settings: dict[str, Any] = {"latent_dim": 2, "layers": (64, 64), "steps": 1_500, "lr": 2e-3}
models = {
    "VAE": [unweave.methods.BetaVAE(beta=0.05, seed=seed, **settings).fit(x) for seed in range(3)],
    "iVAE": [unweave.methods.IVAE(noise_variance=0.05, seed=seed, **settings).fit(x, condition) for seed in range(3)],
}
for linear in (unweave.methods.PCA(latent_dim=2), unweave.methods.LinearICA(latent_dim=2)):
    print(f"{linear.name:10} MCC {unweave.metrics.mcc(factors, linear.fit_transform(x)):.3f}")
for name, seeds in models.items():
    print(f"{name:10} MCC", *(f"{unweave.metrics.mcc(factors, model.transform(x)):.3f}" for model in seeds))

# %%
# MCC is the mean correlation of each factor with its own code. ``transform`` needs no labels: they are used in training
# only.
#
# A picture of the result
# -----------------------
#
# Colors are conditions. The factors form a cross, and the measurement bends it. The VAE does not straighten it, since
# its prior is the same round Gaussian for all rows. iVAE has a prior for each condition. These fit best if the factors
# lie along its axes. We show the first seed of both.

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), layout="constrained")
panels = {
    "true factors": factors,
    "observed": x,
    f"VAE, seed 0: MCC {unweave.metrics.mcc(factors, models['VAE'][0].transform(x)):.2f}": models["VAE"][0].transform(
        x
    ),
    f"iVAE, seed 0: MCC {unweave.metrics.mcc(factors, models['iVAE'][0].transform(x)):.2f}": models["iVAE"][
        0
    ].transform(x),
}
palette = np.array(["tab:red", "tab:blue", "lightgray", "tab:orange", "tab:cyan"])
for axis, (title, points) in zip(axes.flat, panels.items(), strict=True):
    axis.scatter(*points.T, c=palette[condition], s=4, linewidths=0)
    axis.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# When it fails
# -------------
#
# The conditions must differ in how much each factor varies. Our prior has the mean zero under all conditions, as in the
# authors' code. Conditions that differ only in their means do not help it; :doc:`/gallery/methods/plot_gin` uses means
# as well. A label with one value is an error:

try:
    unweave.methods.IVAE(latent_dim=2, steps=10).fit(x, np.zeros(4_000, int))
except unweave.InputError as error:
    print(error)

# %%
# The noise variance is a setting, and nothing in the data gives it away. Try a few values, and compare seeds.
#
# Related
# -------
#
# - :doc:`/gallery/methods/plot_gin` learns from labels with a flow, and counts the informative codes.
# - :doc:`/gallery/methods/plot_ada_gvae` learns from pairs instead of labels.
# - :class:`unweave.methods.IVAE` documents all settings.
