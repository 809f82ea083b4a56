"""
Factors from labels: GIN
========================

With class labels, nonlinearly mixed factors can be recovered: each one by itself, up to order, sign and scale.
:class:`~unweave.methods.GIN` also finds out how many of its codes are informative, and how many are noise.
"""

# %%
# What we have
# ------------
#
# Four thousand rows of ten numbers, and for each row one of five classes. Two factors are behind the numbers. Their
# mean and spread differ between the classes. A random invertible network has mixed them with eight sources of noise.

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

data = unweave.datasets.GaussianMixture(points=4_000, clusters=5, seed=3).load()
rows, sources = data.collect(4_000, torch.Generator())  # all of them, in order
x = rows.numpy()  # (4000, 10)
classes = sources[:, 0].int().numpy()  # (4000,)
factors = sources[:, 1:3].numpy()  # (4000, 2), the truth
print(x.shape, np.bincount(classes))

# %%
# Can it work?
# ------------
#
# The theory asks for enough classes: 2 n + 1 for n factors. ``outlook`` checks this before any training.

gin = unweave.methods.GIN(steps=1_000, batch_size=250)
for sentence in gin.outlook(x, classes):
    print("-", sentence)

# %%
# Fit
# ---
#
# GIN is a flow: an invertible network that keeps volumes. It is trained so that every class is a Gaussian with
# independent coordinates. PCA and linear ICA get the same rows, without the classes.

codes = {
    "PCA": unweave.methods.PCA(latent_dim=2).fit_transform(x),
    "linear ICA": unweave.methods.LinearICA(latent_dim=2).fit_transform(x),
    "GIN": gin.fit(x, classes).transform(x),
}
scores = {name: unweave.metrics.mcc(factors, z) for name, z in codes.items()}
for name, score in scores.items():
    print(f"{name}: {codes[name].shape[1]} codes, MCC {score:.3f}")

# %%
# Which code is which factor?
# ---------------------------
#
# The table of correlations has a factor in each row and a code in each column. Each factor has one code. The other
# correlation is that of the factors themselves, which are independent only within a class. Order and sign of codes are
# arbitrary, so we match them to the factors for the picture.

correlations = np.corrcoef(factors.T, codes["GIN"].T)[:2, 2:]
print(correlations.round(2))
print(f"correlation of the factors: {np.corrcoef(factors.T)[0, 1]:.2f}")

best = np.abs(correlations).argmax(1)
matched = codes["GIN"][:, best] * np.sign(correlations[[0, 1], best])

# %%
# Two of ten codes are informative
# --------------------------------
#
# The flow has as many outputs as inputs. Because it keeps volumes, the spread of an output says how much it matters.
# The spectrum of these spreads falls steeply after the second one. GIN found this number by itself.

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), layout="constrained")
panels = {
    "true factors": factors,
    f"observed (PCA): MCC {scores['PCA']:.2f}": codes["PCA"],
    f"recovered (GIN): MCC {scores['GIN']:.3f}": matched,
}
for axis, (title, points) in zip(axes.flat, panels.items(), strict=False):
    axis.scatter(*points.T, c=classes, cmap="Set1", vmax=8, s=4, linewidths=0)
    axis.set(title=title, xticks=[], yticks=[])
axes[0, 0].set(xlabel="factor 1", ylabel="factor 2")
axes[1, 0].set(xlabel=f"code {best[0] + 1}", ylabel=f"code {best[1] + 1}")

informative = np.arange(1, 11) <= gin.n_informative_
axes[1, 1].bar(range(1, 11), gin.spectrum_, color=np.where(informative, "tab:blue", "lightgray"))
axes[1, 1].set(yscale="log", xlabel="output of the flow", ylabel="spread", xticks=range(1, 11))
axes[1, 1].set_title(f"{gin.n_informative_} outputs are informative")
axes[1, 1].spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# ``diagnosis_`` says the same in words.

for sentence in gin.diagnosis_:
    print("-", sentence)

# %%
# When it fails
# -------------
#
# With two classes only, there is no guarantee that the codes are the factors. ``outlook`` then says so:

for sentence in gin.outlook(x[classes < 2], classes[classes < 2]):
    print("-", sentence)

# %%
# Values must be of the order of one. Otherwise set ``standardize=True``. Training depends on the random start, so try
# ``restarts=5``, which keeps the most likely model of five.
#
# Related
# -------
#
# - :doc:`/gallery/methods/plot_self_supervised_gin` learns from augmentations instead of classes.
# - :doc:`/gallery/methods/plot_ivae` uses classes in a variational autoencoder.
# - :class:`unweave.methods.GIN` documents all settings, among them class probabilities instead of classes.
