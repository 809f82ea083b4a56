"""
Compare methods: which is best on my data?
==========================================

Make a study: :func:`unweave.sweep` lists the runs, :func:`unweave.execute` trains, scores and stores them. Draw every
seed as a dot, because seeds of a network often differ more than its settings do.
"""

# %%
# What you have
# -------------
# A file of 1,000 spectra with two peaks. Their positions are known for these spectra, so that methods can be compared.
# The best one is then used for spectra without labels.

import tempfile
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import stdtrit

import unweave

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
positions = np.random.default_rng(0).uniform([0.1, 0.6], [0.4, 0.9], (1_000, 2))
channels = np.linspace(0, 1, 60)
spectra = 5 * np.exp(-(((channels - positions[:, :, None]) / 0.06) ** 2)).sum(1)
np.savez(folder / "spectra.npz", spectra=spectra, left=positions[:, 0], right=positions[:, 1])
data = unweave.OwnData(path=folder / "spectra.npz", columns=("spectra",), factors=("left", "right"))

# %%
# List the runs
# -------------
# A method is named as on the command line. Each axis of a sweep is a setting with several values; a single value holds
# for all runs. Methods without randomness need one seed.

network: dict[str, Any] = {"latent_dim": 2, "layers": [(64,)], "steps": 300, "lr": 2e-3, "seed": range(5)}
runs = [
    *unweave.sweep(data, "pca", latent_dim=2),
    *unweave.sweep(data, "linear-ica", latent_dim=2),
    *unweave.sweep(data, "hessian-ica", latent_dim=2),
    *unweave.sweep(data, "autoencoder", **network),
    *unweave.sweep(data, "beta-vae", beta=[1, 4, 16], **network),
    *unweave.sweep(data, "beta-tc-vae", beta=4, **network),
]
print(len(runs), "runs")

# %%
# Execute them
# ------------
# Runs that differ in seeds and strengths alone are trained together. Each becomes a folder with model, codes, scores.
# Finished runs are not repeated. If the study was stopped, call it again.

table = unweave.execute(runs, folder / "runs", metrics=["mcc", "mig"])
table["name"] = table["method"] + table["beta"].map(", beta {}".format, na_action="ignore").fillna("")

# %%
# A mean without an interval says little. This is half of the 95 % interval of the mean, by Student's t:

groups = table.groupby("name", sort=False)["mcc"]
summary = groups.agg(["mean", "min", "max", "count"]).astype(float)
summary["+-"] = stdtrit(summary["count"] - 1, 0.975) * groups.std().astype(float) / np.sqrt(summary["count"])
summary.round(2)

# %%
# Every seed is a dot. The bar is the mean with its interval.

figure, axis = plt.subplots(figsize=(7, 4.9), constrained_layout=True)
for place, (name, row) in enumerate(summary.iterrows()):
    scores = groups.get_group(name).astype(float)
    axis.scatter(scores, np.full(len(scores), place), s=45, alpha=0.7)
    if len(scores) > 1:
        axis.errorbar(row["mean"], place + 0.25, xerr=row["+-"], color="0.3", capsize=4, marker="|", markersize=10)
axis.set_yticks(range(len(summary)), list(summary.index))
axis.set(xlabel="MCC (1 is best)", xlim=(0.35, 1.02))
axis.invert_yaxis()
axis.grid(axis="x", alpha=0.4)
plt.show()

# %%
# HLLE+ICA is best here. The networks were trained for a few seconds only, and their intervals overlap. From these five
# seeds nobody can say which strength is better. More seeds would make the intervals shorter, not the dots closer.
#
# Use the best model
# ------------------

best = table.iloc[int(table["mcc"].argmax())]
method = unweave.load(folder / "runs" / str(best["key"]))
print(best["name"], method.transform(spectra[:3]).round(2).tolist())

# %%
# ``unweave report runs`` writes a page about all runs. ``unweave study run FILE`` executes a study from a file, by
# several processes if you like.
#
# When it fails
# -------------
# A run that fails is named in a warning and recorded, and the others go on:

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    failed = unweave.execute(unweave.sweep(data, "pca", latent_dim=[2, 99]), folder / "runs", metrics=["mcc"])
print(str(caught[0].message).replace(str(folder), "."))
print(len(failed), "run finished")

# %%
# Related
# -------
# - :doc:`/guide/studies`: study files, stopping and resuming, several processes.
# - :doc:`/gallery/questions/plot_which_seed`: select a seed without labels.
# - :doc:`/gallery/questions/plot_is_my_score_good`: chance levels, and intervals for one model.
# - :func:`unweave.sweep`, :func:`unweave.execute`, :func:`unweave.load`
