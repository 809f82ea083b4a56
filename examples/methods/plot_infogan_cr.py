"""
A generator with readable codes: InfoGAN-CR
===========================================

:class:`~unweave.methods.InfoGANCR` trains a generator of images whose inputs can be read back from its images. Here
its two codes become the two coordinates of a square, without labels and without reconstructions.
"""

# %%
# What we have
# ------------
#
# Two thousand images of 16 x 16 pixels show a soft square at random positions. Both coordinates are uniform.

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

data = unweave.datasets.SquaresXY(points=2_000, size=16, side=6, blur=1).load()
images, positions = data.collect(2_000, torch.Generator())  # (2000, 1, 16, 16), (2000, 2)

# %%
# Train
# -----
#
# Three networks play together. The generator draws images from codes. The discriminator tells them from real ones. An
# encoder predicts the codes of a generated image, and ``info`` is the weight of that. The contrastive regularizer (CR)
# also asks which code two images share.

gan = unweave.methods.InfoGANCR(latent_dim=2, network="mlp", layers=(128, 128), info=1.0, steps=1_500)
gan.fit(images)
codes = gan.transform(images)
pca_codes = unweave.methods.PCA(latent_dim=2).fit_transform(images)
print(f"PCA        MCC {unweave.metrics.mcc(positions, pca_codes):.3f}")
print(f"InfoGAN-CR MCC {unweave.metrics.mcc(positions, codes):.3f}")

# %%
# A map of the codes
# ------------------
#
# Codes lie between -1 and 1. We generate an image for each point of a grid of codes. From column to column only one
# code changes, from row to row only the other one. The code that follows the horizontal position is put on the columns.

correlations = np.corrcoef(positions.T, codes.T)[:2, 2:]
across, down = np.abs(correlations).argmax(1)
grid = np.zeros((5, 7, 2), np.float32)
grid[:, :, across] = np.linspace(-0.9, 0.9, 7) * np.sign(correlations[0, across])
grid[:, :, down] = np.linspace(-0.9, 0.9, 5)[:, None] * np.sign(correlations[1, down])
generated = gan.inverse_transform(grid.reshape(-1, 2))


def sheet(pictures: np.ndarray) -> np.ndarray:
    """Return 35 images, (35, 1, 16, 16), in five rows of seven."""
    framed = np.pad(pictures[:, 0], ((0, 0), (1, 0), (1, 0)), constant_values=0.45)
    return np.block([list(row) for row in framed.reshape(5, 7, 17, 17)])


figure, axis = plt.subplots(figsize=(7, 4.9), layout="constrained")
axis.imshow(sheet(generated), cmap="gray", vmin=0, vmax=1)
axis.set(xticks=[], yticks=[])
axis.set_title("generated images", fontsize=14)
axis.set_xlabel(f"code {across + 1}", fontsize=14)
axis.set_ylabel(f"code {down + 1}", fontsize=14)
plt.show()

# %%
# Real images beside generated ones, and how the training went. A discriminator that can only guess has a loss of
# 2 log 2, which is 1.39.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.imshow(sheet(images[:35].numpy()), cmap="gray", vmin=0, vmax=1)
left.set(xticks=[], yticks=[], title="real images")
history = gan.history.set_index("step").rolling(25).mean()
right.plot(history["discriminator"], label="discriminator")
right.plot(history["info"], label="encoder (info)")
right.plot(history["contrast"], label="pair classifier")
right.axhline(2 * np.log(2), color="gray", linestyle=":")
right.set(xlabel="step", title="losses")
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to watch out for
# ---------------------
#
# - It works here because codes and positions are both uniform on a square: corners must become corners. A factor with
#   another distribution is bent to fit, or mixed.
# - A GAN may leave out part of the data. Compare generated images with real ones, and check reconstructions:

reconstructed = gan.inverse_transform(codes)
error = np.square(reconstructed - images.numpy()).sum() / np.square(images.numpy() - images.numpy().mean(0)).sum()
print(f"share of the variance that reconstructions explain: {1 - error:.2f}")

# %%
# - Training a GAN is less stable than training a VAE: compare several seeds. :doc:`/methods/vae` has notes on our
#   choices.
#
# Related
# -------
#
# - :doc:`/gallery/methods/plot_hessian_ica` recovers such positions without a network.
# - :doc:`/gallery/methods/plot_beta_vae` learns codes and a decoder by reconstruction.
# - :class:`unweave.methods.InfoGANCR` documents all settings.
