"""
How many factors are in my data?
================================

Most methods estimate the number themselves with ``latent_dim="auto"``. Of curved data ask HLLE+ICA or
:func:`unweave.advise`, of data with classes GIN, and of linear mixtures PCA: on curved data PCA counts too many.
"""

# %%
# Three kinds of data
# -------------------
# Each has 20 or 10 columns and a few factors. The first is a linear mixture of three factors. The second is a sheet of
# two factors, curved in 20 dimensions. The third has two informative factors, eight columns of noise, and classes. All
# are mixed, so that no single column is a factor.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

import unweave

rng = np.random.default_rng(0)
linear = rng.uniform(size=(1_000, 3)) @ rng.normal(size=(3, 20)) + 0.01 * rng.normal(size=(1_000, 20))
sheet = unweave.datasets.FlatSheet(dimensions=2, width=20, points=1_000).load()
curved = sheet.collect(1_000, torch.Generator()).x.numpy() + 0.002 * rng.normal(size=(1_000, 20))
mixture = unweave.datasets.GaussianMixture(points=5_000).load()

# %%
# PCA: how many directions?
# -------------------------
# ``latent_dim="auto"`` keeps as many components as predict held-out values best.

pca = {name: unweave.methods.PCA(latent_dim="auto").fit(x) for name, x in (("linear", linear), ("curved", curved))}
for name, method in pca.items():
    print(f"{name}: {method.summary()[0]}")

# %%
# A linear mixture has as many directions as factors. A curved sheet bends into six, although it has two factors.
#
# HLLE+ICA: how many dimensions?
# ------------------------------
# It looks at neighborhoods, which are flat even where the data are curved. Three estimates are compared: growth of
# distances (likelihood), spectra of neighborhoods (gap), and how well an embedding keeps near distances (isometry).

hlle = {
    name: unweave.methods.HessianICA(latent_dim="auto").fit(x) for name, x in (("linear", linear), ("curved", curved))
}
for name, spectral in hlle.items():
    print(f"{name}: {spectral.summary()[0]}")

# %%
# Before any training, :func:`unweave.advise` measures the intrinsic dimension with an interval:

facts = {name: unweave.advise(x, timed=False).facts for name, x in (("linear", linear), ("curved", curved))}
for name, fact in facts.items():
    print(f"{name}: {fact.lines()[1]}")
estimates = {name: fact.dimension.estimate for name, fact in facts.items() if fact.dimension}

# %%
# GIN: which variables are informative?
# -------------------------------------
# With classes, GIN trains a volume-preserving flow. Its outputs have different deviations: informative ones vary much,
# noise varies little. The number is read off where the deviations fall.

gin = unweave.methods.GIN(steps=300).fit(mixture)
low, high = gin.informative_interval()
print(f"{gin.n_informative_} informative variables (95 % interval: {low} to {high})")

# %%
# All answers
# -----------

answers: dict[str, list[float]] = {
    "truth": [3, 2],
    "PCA": [method.latent_dim_ for method in pca.values()],
    "HLLE+ICA": [method.latent_dim_ for method in hlle.values()],
    "intrinsic dimension": [round(estimate, 1) for estimate in estimates.values()],
}
pd.DataFrame(answers, index=["linear mixture", "curved sheet"])

# %%
# Blue bars are what a method counts. The dashed line is the truth.

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), constrained_layout=True)
panels = {
    "linear mixture: spectrum of PCA": (pca["linear"].variance_spectrum_[:10], pca["linear"].latent_dim_, 3),
    "curved sheet: spectrum of PCA": (pca["curved"].variance_spectrum_[:10], pca["curved"].latent_dim_, 2),
    "classes and noise: spectrum of GIN": (gin.spectrum_, gin.n_informative_, 2),
}
for axis, (title, (values, number, truth)) in zip(axes.flat, panels.items(), strict=False):
    colors = ["tab:blue" if i < number else "0.8" for i in range(len(values))]
    axis.bar(np.arange(1, len(values) + 1), values, color=colors)
    axis.axvline(truth + 0.5, color="tab:red", linestyle="--")
    axis.set(title=title, yscale="log", xticks=range(1, 11))
names = ["PCA", "HLLE+ICA", "intrinsic dim."]
axes[1, 1].bar(names, [answers[name][1] for name in ("PCA", "HLLE+ICA", "intrinsic dimension")], width=0.6)
axes[1, 1].axhline(2, color="tab:red", linestyle="--")
axes[1, 1].set(title="curved sheet: number of factors")
plt.show()

# %%
# When it fails
# -------------
# Noise has dimensions, too. With enough of it, neighborhoods look round, and the intrinsic dimension rises:

for deviation in (0.002, 0.02, 0.1):
    noisy = curved + deviation * rng.normal(size=curved.shape)
    print(f"noise {deviation}: {unweave.advise(noisy, timed=False).facts.lines()[1]}")

# %%
# - HLLE+ICA says how sure it is, and lists all of its estimates. If they disagree, try the neighboring numbers, and
#   compare the local isometry in ``method.summary()``.
# - PCA needs more columns than factors. With as many, nothing can be predicted from the rest.
# - A VAE with too many codes leaves some unused. Count the codes that vary, as in
#   :doc:`/gallery/questions/plot_what_does_this_code_do`.
#
# Related
# -------
# - :doc:`/methods/flows`, :doc:`/methods/spectral` and :doc:`/methods/linear`: how each number is estimated.
# - :doc:`/guide/choose`: which method for what you have.
# - :doc:`/gallery/methods/plot_gin`: GIN, its spectrum and its factors.
# - :func:`unweave.advise`, :class:`unweave.methods.PCA`, :class:`unweave.methods.HessianICA`,
#   :class:`unweave.methods.GIN`
