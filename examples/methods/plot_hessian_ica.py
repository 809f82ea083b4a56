"""
Factors of images without labels: HLLE + ICA
============================================

:class:`~unweave.methods.HessianICA` recovers the two coordinates of a moving square from its images alone.
It needs no labels, no network and no tuning; it needs images that change smoothly with a few independent factors.
"""

# %%
# What we have
# ------------
#
# A thousand images of 32 x 32 pixels show a white square at random positions. The two coordinates are the factors.
# The method sees only the pixels. We keep the true coordinates to score the result.

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

data = unweave.datasets.SquaresXY(points=1_000, size=32, side=8).load()
sample = data.collect(1_000, torch.Generator())  # all of them, in order
images = sample.x.numpy()  # (1000, 1, 32, 32)
positions = sample.c.numpy()  # (1000, 2), the truth
print(data)

# %%
# Two ways to two codes
# ---------------------
#
# PCA takes the two directions of largest variance. HLLE + ICA first flattens the manifold of images with a neighbor
# graph (HLLE), then rotates the flat coordinates until they are independent (ICA). The number of codes is estimated.

pca = unweave.methods.PCA(latent_dim=2).fit(images)
hlle = unweave.methods.HessianICA(latent_dim="auto").fit(images)
pca_codes, hlle_codes = pca.transform(images), hlle.transform(images)

scores = {name: unweave.metrics.mcc(positions, z) for name, z in (("PCA", pca_codes), ("HLLE + ICA", hlle_codes))}
for name, score in scores.items():
    print(f"{name}: MCC {score:.3f}")

# %%
# MCC is the mean correlation of each factor with the code that matches it best. 1 is perfect.
#
# A picture of the result
# -----------------------
#
# Every dot is an image, and its color is the true position of the square. PCA folds the plane of positions.
# HLLE + ICA returns the plane, with one factor along each axis. Order and sign of the codes are arbitrary.

corners = np.array([[[0.06, 0.42, 0.80], [0.13, 0.70, 0.45]], [[0.87, 0.20, 0.35], [0.98, 0.80, 0.25]]])
u, v = (positions / positions.max(0)).T[:, :, None]
colors = (1 - u) * ((1 - v) * corners[0, 0] + v * corners[0, 1]) + u * ((1 - v) * corners[1, 0] + v * corners[1, 1])

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), layout="constrained")
framed = np.pad(images[:40, 0], ((0, 0), (1, 1), (1, 1)), constant_values=0.4)
sheet = np.block([list(row) for row in framed.reshape(5, 8, 34, 34)])
axes[0, 0].imshow(sheet, cmap="gray")
axes[0, 0].set_title("images")
axes[0, 1].scatter(*positions.T, c=colors, s=6)
axes[0, 1].set_title("true positions")
axes[1, 0].scatter(*pca_codes.T, c=colors, s=6)
axes[1, 0].set_title(f"PCA: MCC {scores['PCA']:.3f}")
axes[1, 1].scatter(*hlle_codes.T, c=colors, s=6)
axes[1, 1].set_title(f"HLLE + ICA: MCC {scores['HLLE + ICA']:.3f}")
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
plt.show()

# %%
# Why is PCA worse? :func:`unweave.explain` says what each code contains.

for finding in unweave.explain(positions, pca_codes, names=["x", "y"]).findings:
    print(finding)

# %%
# Without the truth
# -----------------
#
# On your own images there are no true positions. The method then reports what it saw: the estimated dimension, whether
# the neighbor graph is connected, and whether near images have near codes (local isometry).

for sentence in hlle.diagnosis_:
    print("-", sentence)

# %%
# New images are encoded without a new fit.

new = unweave.datasets.SquaresXY(points=500, size=32, side=8, seed=1).load()
new_images, new_positions = new.collect(500, torch.Generator())
print(f"MCC of 500 new images: {unweave.metrics.mcc(new_positions, hlle.transform(new_images)):.3f}")

# %%
# When it fails
# -------------
#
# The images must form one connected cloud. Two groups with nothing in between are an error, which names the remedy:

groups = np.concatenate([images[:500], 1 - images[500:]])  # half of the images are inverted
try:
    unweave.methods.HessianICA(latent_dim=2, n_neighbors=12).fit(groups)
except unweave.InputError as error:
    print(error)

# %%
# Two more things to watch for in the diagnosis:
#
# - "The embedding does not keep near distances": there are too few images, more factors than codes, or much noise.
# - "Factor 1 is close to Gaussian": ICA cannot determine the axes of Gaussian factors.
#
# Related
# -------
#
# - :doc:`/gallery/methods/plot_hessian_autoencoder` adds a decoder to these codes.
# - :doc:`/gallery/methods/plot_linear_ica` is enough where the data are a linear mixture.
# - :class:`unweave.methods.TangentICA` and :class:`unweave.methods.LaplacianICA` use other operators.
