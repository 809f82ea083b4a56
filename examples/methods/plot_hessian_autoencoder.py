"""
A decoder for factors found without labels: the Hessian autoencoder
===================================================================

:class:`~unweave.methods.HessianAutoencoder` finds the codes of HLLE + ICA first, then trains an encoder and a decoder
for them. Its decoder draws images between two observations, along one factor at a time.
"""

# %%
# What we have
# ------------
#
# Images of a colored square that moves along the diagonal. Position and color are the two factors. There are no labels.

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

# sphinx_gallery_thumbnail_number = 2

data = unweave.datasets.SquaresXC(points=1_000, size=16, side=6, blur=0.7).load()
sample = data.collect(1_000, torch.Generator())  # all of them, in order
images, factors = sample.x.numpy(), sample.c.numpy()  # (1000, 3, 16, 16) and (1000, 2)

# %%
# Two autoencoders
# ----------------
#
# Both have the same small network and two codes. The plain one is free to use its codes as it likes. The Hessian
# autoencoder gets the codes of HLLE + ICA as targets.

plain = unweave.methods.Autoencoder(latent_dim=2, widths=(16, 32), hidden=(64,), steps=1_200, lr=2e-3).fit(images)
hessian = unweave.methods.HessianAutoencoder(latent_dim=2).set_params(**plain.get_params()).fit(images)
for method in (plain, hessian):
    codes = method.transform(images)
    error = np.square(method.inverse_transform(codes) - images).mean() / images.var()
    print(f"{method.name:20} MCC {unweave.metrics.mcc(factors, codes):.2f}, unexplained variance {error:.3f}")

# %%
# From one image to another
# -------------------------
#
# We take two images and replace the codes of the first by those of the second, one code at a time. With the Hessian
# autoencoder, the square first moves and then changes its color. A plain autoencoder has no reason to do so.

start = np.square(factors - [1, 0.05]).sum(1).argmin()  # top left, red
end = np.square(factors - [9, 0.95]).sum(1).argmin()  # bottom right, green


def path(method: unweave.Method) -> np.ndarray:
    """Decode codes that go from `start` to `end`: first the code of the position, then the other one."""
    codes = method.transform(images)
    first = int(np.argmax([abs(np.corrcoef(factors[:, 0], code)[0, 1]) for code in codes.T]))
    z = np.repeat(codes[[start]], 11, 0)
    z[:6, first] = np.linspace(codes[start, first], codes[end, first], 6)
    z[6:, first] = codes[end, first]
    z[5:, 1 - first] = np.linspace(codes[start, 1 - first], codes[end, 1 - first], 6)
    return method.inverse_transform(z).clip(0, 1)


figure, axes = plt.subplots(2, 13, figsize=(10, 2.1), layout="constrained")
for row, (title, method) in zip(axes, (("plain", plain), ("Hessian", hessian)), strict=True):
    shown = [images[start], *path(method), images[end]]
    for axis, image in zip(row, shown, strict=True):
        axis.imshow(image.transpose(1, 2, 0))
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(title)
axes[0, 0].set_title("start", fontsize=9)
axes[0, 3].set_title("one code", fontsize=9)
axes[0, 9].set_title("the other", fontsize=9)
axes[0, 12].set_title("end", fontsize=9)
plt.show()

# %%
# The codes of both
# -----------------
#
# Every dot is an image, in the color of its square.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
angle = factors[:, 1] * np.pi / 2
colors = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
for axis, (title, method) in zip(axes, (("plain autoencoder", plain), ("Hessian autoencoder", hessian)), strict=True):
    axis.scatter(*method.transform(images).T, c=colors, s=8)
    axis.set(title=title, xlabel="code 1", ylabel="code 2", xticks=[], yticks=[])
plt.show()

# %%
# When it fails
# -------------
#
# The codes are those of HLLE + ICA, so it needs what HLLE + ICA needs: a connected cloud of images that change smoothly
# with a few factors. ``diagnosis_`` reports about it:

print(*hessian.diagnosis_, sep="\n")

# %%
# Related
# -------
#
# - :doc:`/gallery/methods/plot_hessian_ica` explains the codes.
# - :doc:`/gallery/questions/plot_what_does_this_code_do` shows codes without a decoder.
# - :class:`unweave.methods.IRMAE` is another autoencoder of the same paper's comparison.
