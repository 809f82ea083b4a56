"""
Data from a generator of your own
=================================

A function that makes images of latent vectors becomes data with known factors by :class:`unweave.GeneratorManifold`.
Then the truth is known, and every method can be scored on images of your own field.
"""

# %%
# What you have
# -------------
# A generator: a renderer, a simulator, or the decoder of a GAN. It maps latent vectors ``(n, d)`` to images
# ``(n, channels, height, width)``. Ours draws a flower from four numbers: petals, hue, size and rotation.

import matplotlib.pyplot as plt
import torch
from torch import Generator, Tensor

import unweave

row, column = torch.meshgrid(torch.linspace(-1, 1, 40), torch.linspace(-1, 1, 40), indexing="ij")
radius, angle = torch.hypot(row, column), torch.atan2(row, column)


def flowers(latent: Tensor) -> Tensor:
    """Draw a flower for each latent vector, (n, 4) -> (n, 3, 40, 40), in [0, 1]."""
    petals, hue, size, turn = latent.T[:, :, None, None, None]
    edge = (0.62 + 0.15 * size) * (1 + (0.22 + 0.12 * petals) * torch.cos(5 * angle - turn))
    color = 0.5 + 0.45 * torch.cos(0.8 + hue - torch.tensor([0.0, 2.1, 4.2])[:, None, None])
    picture = 1 + torch.sigmoid(25 * (edge - radius)) * (color * (0.75 + 0.25 * radius) - 1)
    yellow = torch.tensor([0.98, 0.82, 0.25])[:, None, None]
    return picture + torch.sigmoid(25 * (0.2 - radius)) * (yellow - picture)


# %%
# Choose directions
# -----------------
# Directions in the latent space say what varies: settings of a simulator, or principal directions of a GAN. Their
# coefficients are the factors, uniform and independent. Here rotation and hue vary, and the rest stays at zero.

directions = torch.tensor([[0.0, 0.0, 0.0, 2.5], [0.0, 2.2, 0.0, 0.0]])
data = unweave.GeneratorManifold(flowers, directions, spread=1, names=("rotation", "hue"), points=1_000)
print(data)

# %%
# Any combination of factors can be rendered:

figure, axes = plt.subplots(5, 7, figsize=(7, 4.9), constrained_layout=True)
for i, line in enumerate(axes):
    for j, axis in enumerate(line):
        combination = torch.tensor([[j / 3 - 1, i / 2 - 1]])
        axis.imshow(data.render(combination)[0].permute(1, 2, 0).clamp(0, 1))
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
figure.supxlabel("rotation")
figure.supylabel("hue")
plt.show()

# %%
# Does a method find them?
# ------------------------
# ``collect`` returns the images with their factors. HLLE+ICA sees the images alone.

images, factors = data.collect(1_000, Generator())
codes = unweave.methods.HessianICA(latent_dim=2).fit_transform(images)
baseline = unweave.methods.PCA(latent_dim=2).fit_transform(images)
print(f"HLLE+ICA: MCC {unweave.metrics.mcc(factors, codes):.3f}")
print(f"PCA:      MCC {unweave.metrics.mcc(factors, baseline):.3f}")

# %%
# Every dot is a flower, in its own color. Its size grows with the rotation. PCA bends the plane of the factors.
# HLLE+ICA flattens it, with one code for each factor.

figure, axes = plt.subplots(1, 2, figsize=(8, 4), constrained_layout=True)
colors = images[:, :, 12, 20].clamp(0, 1)  # a pixel of a petal
for axis, z, title in zip(axes, (baseline, codes), ("PCA", "HLLE+ICA"), strict=True):
    axis.scatter(*z.T, c=colors, s=10 + 20 * (1 + factors[:, 0]))
    axis.set(xlabel="code 1", ylabel="code 2", title=title)
plt.show()

# %%
# Other distributions
# -------------------
# :class:`unweave.Mixing` takes a sampler of your own in place of the uniform one. Here all four numbers vary, and small
# flowers are the most frequent. Without ``points``, every batch of training has new flowers.


def prior(n: int, rng: Generator) -> Tensor:
    """Draw n latent vectors, (n, 4)."""
    return 2 * torch.rand(n, 4, generator=rng).pow(torch.tensor([1, 1, 3, 1])) - 1


names = ("petals", "hue", "size", "rotation")
endless = unweave.Mixing([unweave.Factor(name) for name in names], (3, 40, 40), prior, flowers)
print(endless)

# %%
# When it fails
# -------------
# A generator must accept a batch, and directions must have the length of its latent vectors:

try:
    unweave.GeneratorManifold(flowers, directions, origin=torch.zeros(3))
except unweave.InputError as error:
    print(error)

# %%
# HLLE+ICA needs factors that change images smoothly. If one has jumps, such as the number of petals, the images lie in
# separate parts. Then the method stops, and says how many parts there are:


def with_jumps(latent: Tensor) -> Tensor:
    """Draw flowers whose rotation is one of two, (n, 4) -> (n, 3, 40, 40)."""
    return flowers(latent * torch.tensor([1, 1, 1, 0]) + torch.tensor([0, 0, 0, 2.5]) * latent.sign())


jumps = unweave.GeneratorManifold(with_jumps, directions, spread=1, names=("rotation", "hue"), points=1_000)
try:
    unweave.methods.HessianICA(latent_dim=2).fit(jumps)
except unweave.InputError as error:
    print(error)

# %%
#
# Related
# -------
# - :doc:`/guide/extend`: a dataset of your own as a class in a file, for studies and the command line.
# - :doc:`/gallery/data/plot_datasets`: the datasets that come with the package.
# - :class:`unweave.GeneratorManifold`, :class:`unweave.Mixing`, :class:`unweave.Factor`,
#   :class:`unweave.methods.HessianICA`
