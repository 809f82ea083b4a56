"""
How do I add a method of my own?
================================

Write a class with two functions, ``learn`` and ``encode``. It is then a scikit-learn estimator that standardizes
tables, can be saved, and is scored and drawn like every other method.
"""

# %%
# What you want
# -------------
# Psychologists rotate principal components until each question belongs to one component: *varimax* (Kaiser, 1958). The
# package does not have it. Twenty lines later it does.
#
# Settings are fields of the class. ``latent_dim`` and ``seed`` are inherited. Learned values end in an underscore. Both
# functions see tensors, with columns that are scaled already.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from torch import Tensor

import unweave


class Varimax(unweave.Method):
    """Principal components, rotated so that each column has a large loading on few codes."""

    paper = "Kaiser (1958)"

    rounds: int = 50
    """Iterations of the rotation."""

    def learn(self, data: unweave.FactorData) -> None:
        """Learn the matrix that makes codes of centered rows, (columns, latent_dim)."""
        x = data.collect(10_000, torch.Generator().manual_seed(self.seed)).x.flatten(1).double()
        _, s, vt = torch.linalg.svd(x - x.mean(0), full_matrices=False)
        loadings = vt[: self.latent_dim].T * s[: self.latent_dim]
        rotation = torch.eye(self.latent_dim, dtype=x.dtype)
        for _ in range(self.rounds):
            rotated = loadings @ rotation
            u, _, v = torch.linalg.svd(loadings.T @ (rotated**3 - rotated * rotated.square().mean(0)))
            rotation = u @ v
        self.mean_, self.loadings_ = x.mean(0), loadings @ rotation
        self.weights_ = torch.linalg.pinv(self.loadings_).T * len(x) ** 0.5

    def encode(self, x: Tensor) -> Tensor:
        """Return codes, (n, latent_dim)."""
        return (x.flatten(1) - self.mean_.to(x)) @ self.weights_.to(x)


# %%
# Use it
# ------
# A survey of 800 people has twelve questions about three traits. Each question is about one of them, with some noise.
# The traits are Gaussian, so ICA cannot find their axes.

rng = np.random.default_rng(0)
traits = rng.normal(size=(800, 3))
belongs_to = np.repeat(np.eye(3), 4, axis=0) + 0.1 * rng.normal(size=(12, 3))
answers = pd.DataFrame(traits @ belongs_to.T + 0.4 * rng.normal(size=(800, 12))).add_prefix("q")

method = Varimax(latent_dim=3).fit(answers)
print(method)
print(method.summary()[0])

# %%
# Score it beside the others:

others = {"PCA": unweave.methods.PCA(latent_dim=3), "ICA": unweave.methods.LinearICA(latent_dim=3)}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ICA warns of Gaussian factors
    codes = {name: other.fit_transform(answers) for name, other in others.items()}
codes["varimax"] = method.transform(answers)
scores = {name: unweave.metrics.mcc(traits, z) for name, z in codes.items()}
print({name: round(score, 2) for name, score in scores.items()})

# %%
# Draw it. Each code of varimax has its own four questions:

figure, axes = plt.subplots(3, 1, figsize=(7, 4.9), sharex=True, constrained_layout=True)
for axis, (name, z) in zip(axes, codes.items(), strict=True):
    loadings = np.corrcoef(z.T, answers.T)[:3, 3:]
    image = axis.imshow(loadings, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    axis.set_title(f"{name}: MCC {scores[name]:.2f}")
    axis.set_yticks(range(3), ["code 1", "code 2", "code 3"])
axes[-1].set_xticks(range(12), list(answers.columns))
figure.colorbar(image, ax=axes, label="loading")
plt.show()

# %%
# Everything else comes with the class: copies, settings, pipelines, searches.

print(clone(method).set_params(latent_dim=4, rounds=10))

# %%
# Move the class into a file ``mine.py``. Then it can be saved, loaded and used in studies, and has a command line with
# its field as a flag. The code of the class is part of the record of a run, so it must be in a file.
#
# .. code-block:: console
#
#     $ unweave fit mine.py:Varimax answers.csv --latent-dim 3 --rounds 100 --out runs/varimax
#
# .. code-block:: python
#
#     from mine import Varimax
#
#     method = Varimax.load("runs/varimax")
#
# When it fails
# -------------
# Arguments are checked before ``learn`` is called, and messages name the setting:

for wrong in (Varimax(latent_dim=0), Varimax(latent_dim=3, rounds="many")):  # type: ignore[arg-type]
    try:
        wrong.fit(answers)
    except unweave.InputError as error:
        print("-", error)

# %%
# - A method with a network derives from :class:`unweave.Neural` and defines ``build``, ``loss`` and ``encode``. The
#   trainer does the rest, for many seeds at once.
# - A method with a decoder defines ``decode``. Then traversals and reconstructions are drawn, too.
# - Draw all random numbers from a generator with ``self.seed``. The same seed must give the same codes.
#
# Related
# -------
# - :doc:`/guide/extend`: methods, losses, networks, datasets and metrics of your own.
# - :doc:`/gallery/questions/plot_own_metric`: a metric of your own.
# - :doc:`/gallery/questions/plot_rotated_factors`: why ICA fails on Gaussian traits.
# - :class:`unweave.Method`, :class:`unweave.Neural`, :func:`unweave.metrics.mcc`
