"""
A table with identifiers, gaps and units
========================================

:class:`unweave.OwnData` reads a ``.csv`` file and decides what each column is. Methods standardize the columns, so that
units do not matter, and PCA and ICA say which columns make up each code.
"""

# %%
# What you have
# -------------
# A bakery measures its loaves: weight loss in grams, volume in milliliters, and so on. Some cells are empty. Oven
# temperature and hours of rest are noted, too. They are the factors that we hope to find in the measurements.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unweave

rng = np.random.default_rng(0)
n = 400
oven, rest = rng.uniform(200, 260, n).round(), rng.uniform(2, 18, n).round(1)
heat, time = (oven - 230) / 17, (rest - 10) / 4.6
loaves = pd.DataFrame(
    {
        "loaf_id": [f"L{i:04}" for i in range(n)],
        "flour": rng.choice(["wheat", "rye", "spelt"], n),
        "weight_loss_g": 85 + 12 * heat - 5 * time + 2 * rng.normal(size=n),
        "crust_mm": 3.1 + 0.7 * heat + 0.2 * time + 0.1 * rng.normal(size=n),
        "brightness": 0.5 - 0.11 * heat - 0.05 * time + 0.02 * rng.normal(size=n),
        "volume_ml": 2200 - 110 * heat + 330 * time + 60 * rng.normal(size=n),
        "acidity_ph": 4.4 - 0.31 * time + 0.05 * rng.normal(size=n),
        "holes_per_cm2": 6 + 0.6 * heat + 2.1 * time + 0.4 * rng.normal(size=n),
        "oven_celsius": oven,
        "rest_hours": rest,
    }
)
loaves.loc[rng.choice(n, 20, replace=False), "crust_mm"] = np.nan
temporary = tempfile.TemporaryDirectory()
path = Path(temporary.name) / "loaves.csv"
loaves.to_csv(path, index=False)
loaves.head(3).round(2)

# %%
# Read it
# -------
# Two columns are the true factors. They are for the scores, and are never learned from. A text column cannot be learned
# from either, so we leave ``flour`` out. A fifth of the rows is held out. Rows with gaps are dropped.

dataset = unweave.OwnData(
    path=path,
    factors=("oven_celsius", "rest_hours"),
    continuous=("oven_celsius",),
    ignore=("flour",),
    missing="drop",
    test=0.2,
)
data = dataset.load()
for note in data.notes:
    print("-", note)

# %%
# The identifier is recognized by itself. It names the rows and is not learned from. Without ``continuous``, 61 whole
# numbers would be taken for ordered levels.
#
# PCA and ICA
# -----------
# Both take linear combinations of the columns. PCA asks for the largest variance, ICA for independence. The number of
# codes is chosen by cross-validation, and the summary names the columns of each code.

pca = unweave.methods.PCA(latent_dim="auto").fit(data)
ica = unweave.methods.LinearICA(latent_dim="auto").fit(data)
for sentence in ica.summary():
    print("-", sentence)

# %%
# Score the rows that were not learned from
# -----------------------------------------
# :func:`~unweave.metrics.mcc` is the mean correlation of each factor with the code that matches it best; 1 is perfect.

held_out = dataset.evaluation_data(data)
truth = loaves.set_index("loaf_id").loc[list(held_out.row_names or ()), ["oven_celsius", "rest_hours"]]
codes = {"PCA": pca.transform(held_out), "ICA": ica.transform(held_out)}
scores = {name: unweave.metrics.mcc(truth, z) for name, z in codes.items()}
print({name: round(score, 3) for name, score in scores.items()})

# %%
# Upper row: the correlation of every column with every code. Lower row: the codes of held-out loaves. The first
# component of PCA is a bit of everything. ICA has one code for the oven and one for the rest.

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), constrained_layout=True, height_ratios=[1, 1.7])
for column, (name, method) in zip(axes.T, (("PCA", pca), ("ICA", ica)), strict=True):
    image = column[0].imshow(method.loadings_, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    column[0].set_title(f"{name}, MCC {scores[name]:.2f}")
    column[0].set_xticks(range(6), [c.split("_")[0] for c in method.column_names()], rotation=25)
    column[0].set_yticks(range(2), ["code 1", "code 2"])
    points = column[1].scatter(*codes[name].T, c=truth["oven_celsius"], cmap="inferno", s=18)
    column[1].set(xlabel="code 1", ylabel="code 2")
figure.colorbar(image, ax=axes[0], label="loading")
figure.colorbar(points, ax=axes[1], label="oven (celsius)")
plt.show()

# %%
# When it fails
# -------------
# Nothing is guessed about gaps and text. The message says what to choose:

for attempt in (unweave.OwnData(path=path), unweave.OwnData(path=path, ignore=("flour",))):
    try:
        attempt.load()
    except unweave.InputError as error:
        print("-", str(error).replace(str(path), path.name))

# %%
# Only columns with names are standardized. In a plain array the units decide, and milliliters are the largest numbers:
# the code is the volume alone, column 3.

array = loaves.dropna()[list(data.feature_names)].to_numpy()
in_units = unweave.methods.PCA(latent_dim=1).fit(array)
print(in_units.summary()[0])
print(in_units.summary()[1])

# %%
# Related
# -------
# - :doc:`/guide/your-data`: kinds of factors, missing values, scaling, held-out rows.
# - :doc:`/gallery/questions/plot_how_many_factors`: how the number of codes is chosen.
# - :doc:`/gallery/data/plot_arrays`: arrays and DataFrames that are in memory already.
# - :doc:`/gallery/methods/plot_linear_ica`: when ICA separates what PCA mixes.
# - :class:`unweave.OwnData`, :class:`unweave.methods.PCA`, :class:`unweave.methods.LinearICA`,
#   :func:`unweave.metrics.mcc`
