"""
A folder of photographs
=======================

Point :class:`unweave.OwnData` at a folder of images, and at a table of what you know about them. HLLE+ICA then finds
the angle of a turntable from the photographs alone.
"""

# %%
# What you have
# -------------
# A toy scene stands on a turntable. A camera took 72 photographs of it, in no particular order. A table says at which
# angle each was taken. We draw such photographs here, so that the example needs no files.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

import unweave

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
BALLS = ((0.62, 0.0, (230, 70, 60)), (0.5, 2.1, (70, 140, 230)), (0.4, 4.0, (250, 190, 50)))


def photograph(azimuth: float, size: int = 48) -> Image.Image:
    """Draw three balls on a turntable that is rotated by an angle in degrees."""
    row, column = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    disc = 1 / (1 + np.exp(30 * (column**2 + (row / 0.55) ** 2 - 0.85)))
    picture = np.array([225, 232, 240]) - disc[..., None] * np.array([75, 65, 50])
    scene = [(radius, np.deg2rad(azimuth) + offset, color) for radius, offset, color in BALLS]
    for radius, angle, color in sorted(scene, key=lambda ball: np.sin(ball[1])):  # the nearest ball last
        nearness = 1 + 0.25 * np.sin(angle)
        y, x = 0.55 * radius * np.sin(angle) - 0.1, radius * np.cos(angle)
        distance = np.hypot(row - y, column - x) / (0.24 * nearness)
        light = 1 - 0.5 * np.hypot(row - y + 0.08, column - x + 0.08)
        opacity = 1 / (1 + np.exp(12 * (distance - 1)))
        picture += opacity[..., None] * (np.array(color) * light[..., None] - picture)
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


azimuths = np.random.default_rng(0).permutation(np.arange(0, 360, 5))
(folder / "photos").mkdir()
for i, azimuth in enumerate(azimuths):
    photograph(azimuth).save(folder / "photos" / f"img_{i:02}.png")

table = pd.DataFrame({"image": [f"img_{i:02}.png" for i in range(72)], "azimuth": azimuths, "day": "2026-03-01"})
table.sample(frac=1, random_state=0).to_csv(folder / "factors.csv", index=False)
table.head(3)

# %%
# Read the folder
# ---------------
# The table is joined by file name. An angle is a *circular* factor: say so, because 359 degrees is next to 0. The notes
# say what was matched, and which columns were left out.

dataset = unweave.OwnData(path=folder / "photos", table=folder / "factors.csv", circular=("azimuth=360",))
data = dataset.load()
for note in data.notes:
    print("-", note)

# %%
# Find the angle
# --------------
# :class:`~unweave.methods.HessianICA` gets the photographs and no labels. It chooses the number of codes itself, and
# notices that these photographs form a closed loop: the only code is an angle.

method = unweave.methods.HessianICA(latent_dim="auto").fit(data)
angle = method.transform(data)[:, 0]
for sentence in method.summary():
    print("-", sentence)

# %%
# How good is it? The table knows the truth, so we can ask for the median error in degrees.

truth = unweave.metrics.prepared(azimuths, kinds=("circular", 360), code_periods=method.code_periods())
print(f"angle error: {unweave.metrics.angle_error(truth, angle):.2f} degrees")
print(f"mcc:         {unweave.metrics.mcc(truth, angle):.3f}")

# %%
# Some of the photographs, placed at the angle that was found for them. In the middle: the code of all 72 and the truth.

figure, axis = plt.subplots(figsize=(7, 4.9), constrained_layout=True)
for i in np.argsort(angle)[::4]:
    x, y = 1.5 * np.cos(angle[i]), np.sin(angle[i])
    with Image.open(folder / "photos" / f"img_{i:02}.png") as picture:
        axis.imshow(picture, extent=(x - 0.16, x + 0.16, y - 0.16, y + 0.16))
axis.set(xlim=(-1.68, 1.68), ylim=(-1.18, 1.18))
axis.axis("off")
inset = axis.inset_axes((0.34, 0.32, 0.37, 0.4))
inset.scatter(azimuths, np.rad2deg(angle), c=azimuths, cmap="twilight", edgecolor="gray", linewidth=0.5)
inset.set(xlabel="azimuth in the table", ylabel="code (degrees)", xticks=(0, 180, 360), yticks=(0, 180, 360))
plt.show()

# %%
# Zero and direction of a recovered angle are arbitrary: nothing in the photographs says where north is. The scores
# ignore both.
#
# On the command line, the whole example is one line:
#
# .. code-block:: console
#
#     $ unweave fit hessian-ica photos/ --data.table factors.csv --data.circular azimuth=360 --latent-dim auto
#
# When it fails
# -------------
# All photographs must have one size. Otherwise the message names two of them, and says what to do:

photograph(10, size=64).save(folder / "photos" / "img_72.png")
try:
    dataset.load()
except unweave.InputError as error:
    print(str(error).replace(str(folder), "."))

# %%
# With ``resize`` all are cropped to their central square and resized. A photograph without a row in the table is left
# out and counted:

notes = unweave.OwnData(path=folder / "photos", table=folder / "factors.csv", resize=48).load().notes
print(notes[0])

# %%
# Without ``circular``, the azimuth is an ordinary number, and its jump from 355 to 0 lowers every score. A note tells
# you that the values look like an angle:

print(notes[-1])

# %%
# Related
# -------
# - :doc:`/guide/your-data`: all settings of :class:`unweave.OwnData`, kinds of factors, held-out rows.
# - :doc:`/gallery/data/plot_table`: a table instead of photographs.
# - :doc:`/gallery/questions/plot_what_does_this_code_do`: look at the photographs along each code.
# - :doc:`/gallery/methods/plot_hessian_ica`: how HLLE+ICA works, and what it needs.
# - :class:`unweave.methods.HessianICA`, :func:`unweave.metrics.angle_error`, :func:`unweave.metrics.prepared`
