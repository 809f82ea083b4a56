"""
Features of a pretrained network
================================

:func:`unweave.features` applies a trained network once to all observations. The result is a table that every method and
metric takes, for example to find out what the network knows.
"""

# %%
# What you have
# -------------
# A network that somebody trained: from timm, torchvision, Hugging Face, or your own. As a stand-in, we train one
# for a few seconds. Its only task is to tell the color and the shape of the object in a room.

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn import functional as F

import unweave

room = unweave.datasets.Shapes3D().load()
color, shape = room.column("object"), room.column("shape")
torch.manual_seed(0)
trunk = nn.Sequential(
    *(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU()),
    *(nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 32), nn.ReLU()),
)
head = nn.Linear(32, 10 + 4)
optimizer = torch.optim.Adam([*trunk.parameters(), *head.parameters()], lr=2e-3)
rng = torch.Generator().manual_seed(0)
for _ in range(300):
    images, factors = room.draw(64, rng)
    logits = head(trunk(F.avg_pool2d(images, 2)))
    loss = F.cross_entropy(logits[:, :10], factors[:, color]) + F.cross_entropy(logits[:, 10:], factors[:, shape])
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()

# %%
# Images in, features out
# -----------------------
# ``transform`` changes images to what the network was trained on: size, channels, scale. Here it halves their size. The
# network is in evaluation mode, and no gradients are computed. The factors of the data stay with the features.


def halve(images: torch.Tensor) -> torch.Tensor:
    """Average 2 x 2 pixels, (n, 3, 64, 64) -> (n, 3, 32, 32)."""
    return F.avg_pool2d(images, 2)


rooms = room.freeze(2_000, rng)
table = unweave.features(trunk, rooms, transform=halve)
print(table)

# %%
# Any method learns from the table. Two principal components show how the network sorts the rooms:

method = unweave.methods.PCA(latent_dim=2).fit(table)
codes = method.transform(table)
print(method.summary()[0])

# %%
# What does the network know?
# ---------------------------
# A probe is a fresh classifier that predicts a factor from the features. Its accuracy on held-out rows says how much of
# the factor is left in them.

truth = table.c.numpy()
probes = [unweave.metrics.nuisance_probe(truth[:, j], table.x) for j in range(6)]
names = [factor.name for factor in table.factors]
for name, probe in zip(names, probes, strict=True):
    print(f"{name:12} {probe.accuracy:.2f}  (chance {probe.chance:.2f})")

# %%
# Color and shape of the object can be read off. Size and orientation are nearly gone. A part of floor and wall is still
# there, although nobody asked for it.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.4), constrained_layout=True)
hues = plt.get_cmap("hsv")(truth[:, color] / 10)
axes[0].scatter(*codes.T, c=hues, s=8)
axes[0].set(xlabel="component 1", ylabel="component 2", title="features of 2,000 rooms, by object color")
axes[1].barh(names, [probe.accuracy for probe in probes], label="accuracy of a probe")
axes[1].barh(names, [probe.chance for probe in probes], color="0.75", label="chance")
axes[1].set(xlim=(0, 1), title="what the features know")
axes[1].invert_yaxis()
axes[1].legend(loc="lower right")
plt.show()

# %%
# When it fails
# -------------
# If the network does not take the images as they are, the error says what it was given:

try:
    unweave.features(trunk, rooms)
except unweave.InputError as error:
    print(error)

# %%
# - With ``out="features.parquet"`` the table is written to a file, for the command line and for later.
# - Features differ in scale. ``unweave.as_data(table, scale="standard")`` standardizes them before a method learns.
# - To train through the network instead, pass it to a method: ``BetaVAE(encoder=trunk, keep_weights=True)``.
#
# Related
# -------
# - :doc:`/guide/extend`: networks of your own as encoders and decoders.
# - :doc:`/gallery/questions/plot_ignore_the_lab`: a classifier that forgets what it should not know.
# - :func:`unweave.features`, :func:`unweave.metrics.nuisance_probe`, :class:`unweave.methods.PCA`
