"""
Unmix signals: linear ICA
=========================

:class:`~unweave.methods.LinearICA` separates signals that were mixed linearly. It needs no labels, only signals that
are independent and not Gaussian. :class:`~unweave.methods.PCA` finds the same plane, but not the signals.
"""

# %%
# What we have
# ------------
#
# Eight sensors record three sources at once: a sine wave, a square wave and a sawtooth. Every sensor hears all of them,
# each with its own weight, and a little noise. Rows are moments, columns are sensors.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unweave

rng = np.random.default_rng(3)
t = np.linspace(0, 8, 2_000)
sources = np.stack([np.sin(2 * t), np.sign(np.sin(3 * t)), 2 * (1.1 * t % 1) - 1], 1)
sources /= sources.std(0)  # (2000, 3)
mixing = rng.normal(size=(3, 8))
sensors = sources @ mixing + 0.1 * rng.normal(size=(2_000, 8))
table = pd.DataFrame(sensors, columns=[f"sensor {k}" for k in range(1, 9)])

# %%
# How many sources?
# -----------------
#
# ``latent_dim="auto"`` leaves out some values of the table, predicts them from the others, and takes the number of
# components that predicts best.

pca = unweave.methods.PCA(latent_dim="auto").fit(table)
ica = unweave.methods.LinearICA(latent_dim="auto").fit(table)
print(*ica.summary(), sep="\n")

# %%
# Scores
# ------
#
# MCC is the mean correlation of each source with its own code. 1 is perfect.

for method in (pca, ica):
    print(f"{method.name:10} MCC {unweave.metrics.mcc(sources, method.transform(table)):.3f}")

# %%
# The signals
# -----------
#
# PCA gives uncorrelated mixtures, ordered by variance. ICA gives the sources. Order, sign and size are arbitrary: data
# that are mixed cannot show them.

figure, axes = plt.subplots(3, 4, figsize=(9, 4.2), sharex=True, layout="constrained")
columns = {
    "sources": sources,
    "sensors": sensors[:, :3],
    "PCA": pca.transform(table),
    "linear ICA": ica.transform(table),
}
for k, (title, signals) in enumerate(columns.items()):
    axes[0, k].set_title(title)
    for axis, signal in zip(axes[:, k], signals.T, strict=False):
        axis.plot(t, signal, color=f"C{k}", linewidth=1)
        axis.set(yticks=[])
for axis in axes[-1]:
    axis.set_xlabel("time")
plt.show()

# %%
# Which sensor hears which source?
# --------------------------------
#
# ``inverse_transform`` maps codes back to sensors. A row of this matrix is the response of the sensors to one unit of a
# code, in standard deviations of the sensor.

baseline = ica.inverse_transform(np.zeros((1, 3)))
response = (ica.inverse_transform(np.eye(3)) - baseline) / sensors.std(0)
figure, axis = plt.subplots(figsize=(6, 2.3), layout="constrained")
drawn = axis.imshow(response, cmap="RdBu", vmin=-1, vmax=1)
axis.set(xticks=range(8), xticklabels=table.columns, yticks=range(3), yticklabels=["code 1", "code 2", "code 3"])
axis.tick_params(axis="x", rotation=45)
figure.colorbar(drawn, label="response")
plt.show()

# %%
# When it fails
# -------------
#
# Gaussian sources cannot be separated: every rotation of them fits as well. The method warns.

gaussian = rng.normal(size=(2_000, 3)) @ mixing
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    unweave.methods.LinearICA(latent_dim=3).fit(gaussian)
print(caught[-1].message)

# %%
# Related
# -------
#
# - :doc:`/gallery/methods/plot_hessian_ica` for data that are mixed by a curved map, such as images.
# - :doc:`/gallery/questions/plot_rotated_factors` shows what a rotation of Gaussian factors looks like.
# - :doc:`/gallery/data/plot_table` reads a table from a file, with gaps and identifiers.
