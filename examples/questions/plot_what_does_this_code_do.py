"""
What does this code do?
=======================

Look at it in three ways: real observations in the order of the code, a traversal of the decoder, and a matrix of codes
and factors. The first needs no decoder, and only the last needs labels.
"""

# %%
# What you have
# -------------
# A method that was fitted to images, here 1,500 faces that differ in smile, eyes and color. The factors are known, but
# the method does not see them. :class:`~unweave.methods.HessianAutoencoder` learns three codes, with a decoder.

import matplotlib.pyplot as plt
import numpy as np

import unweave

row, column = np.mgrid[-1:1:32j, -1:1:32j]


def fill(distance: np.ndarray) -> np.ndarray:
    """Return 1 inside of a shape, 0 outside, with a soft edge."""
    return 1 / (1 + np.exp(-14 * distance.clip(-4, 4)))


def draw_faces(factors: np.ndarray) -> np.ndarray:
    """Draw a face for each row of smile, eyes and color from -1 to 1, (n, 3) -> (n, 3, 32, 32)."""
    smile, eyes, hue = factors.T[:, :, None, None]
    skin = np.stack([0.98 + 0 * hue, 0.75 + 0.18 * hue, 0.38 - 0.22 * hue], 1)
    face = 1 + fill(0.92 - np.hypot(row, column)) * (skin - 1)
    mouth = fill(0.13 - np.abs(row - 0.42 + 0.9 * smile * (column**2 - 0.12))) * fill(0.52 - np.abs(column))
    pupils = [fill(1 - np.hypot((column - x) / 0.17, (row + 0.25) / (0.2 + 0.11 * eyes))) for x in (-0.36, 0.36)]
    ink = (mouth + pupils[0] + pupils[1]).clip(0, 1)[:, None]
    return face + ink * (np.array([0.25, 0.15, 0.1])[:, None, None] - face)


factors = np.random.default_rng(0).uniform(-1, 1, (1_500, 3))
images = draw_faces(factors)
method = unweave.methods.HessianAutoencoder(latent_dim=3, widths=(8, 16), steps=1_000, batch_size=32, lr=4e-3)
codes = method.fit_transform(images)

# %%
# Real observations along each code
# ---------------------------------
# Take images from low to high values of a code. Sorting alone is confusing, since the other codes vary, too. So take,
# near each value, the image whose other codes are closest to the middle.

scaled = (codes - np.median(codes, 0)) / codes.std(0)
STEPS = 7


def images_along(j: int) -> np.ndarray:
    """Return real images from low to high values of code j, with other codes near the middle."""
    targets = np.zeros((STEPS, 3))
    targets[:, j] = np.quantile(scaled[:, j], np.linspace(0.03, 0.97, STEPS))
    return images[[int(((scaled - target) ** 2).sum(1).argmin()) for target in targets]]


def draw_rows(rows: list[np.ndarray], title: str) -> None:
    """Draw a row of images for each code."""
    figure, axes = plt.subplots(3, STEPS, figsize=(7, 3.7), constrained_layout=True)
    for j, (line, pictures) in enumerate(zip(axes, rows, strict=True)):
        for axis, picture in zip(line, pictures, strict=True):
            axis.imshow(picture.transpose(1, 2, 0).clip(0, 1))
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        line[0].set_ylabel(f"code {j + 1}")
    figure.suptitle(title)
    plt.show()


draw_rows([images_along(j) for j in range(3)], "real images along each code")

# %%
# ``unweave draw RUN DATA`` does this for any method and any data. For a table it shows the columns that change most.
#
# Traversals of the decoder
# -------------------------
# Change one code, keep the others in the middle, and decode. These images need not exist in the data: they show what
# the model has learned. Blurred ones say that the decoder was trained briefly.


def decoded_along(j: int) -> np.ndarray:
    """Decode low to high values of code j, with the other codes at their medians."""
    path = np.repeat(np.median(codes, 0)[None], STEPS, 0)
    path[:, j] = np.quantile(codes[:, j], np.linspace(0.03, 0.97, STEPS))
    return method.inverse_transform(path)


draw_rows([decoded_along(j) for j in range(3)], "decoded images along each code")

# %%
# The factor-code matrix
# ----------------------
# With known factors, :func:`unweave.explain` says how important each code is for each factor, in numbers and in words.

names = ["smile", "eyes", "color"]
explanation = unweave.explain(factors, codes, names=names)
print(explanation.findings[0])
figure, axis = plt.subplots(figsize=(4.6, 3.4), constrained_layout=True)
image = axis.imshow(explanation.importance, cmap="Blues", vmin=0, vmax=1)
axis.set_xticks(range(3), ["code 1", "code 2", "code 3"])
axis.set_yticks(range(3), names)
figure.colorbar(image, label="importance")
plt.show()

# %%
# All three views agree: one code for the smile, one for the color, one for the eyes. Order and sign of codes are
# arbitrary. DCI is strict, and counts the traces of other factors that a forest of trees finds in a code.
#
# When it fails
# -------------
# A row in which several things change at once belongs to a mixed code. Here we mix codes 1 and 2 on purpose:

codes = codes @ np.array([[1, 1, 0], [1, -1, 0], [0, 0, 1.4]])
scaled = (codes - np.median(codes, 0)) / codes.std(0)
draw_rows([images_along(j) for j in range(3)], "real images along mixed codes")
for finding in unweave.explain(factors, codes, names=names).findings:
    print("-", finding)

# %%
# - A row in which nothing changes belongs to a dead code. Check ``codes.std(0)``.
# - A method without a decoder cannot be traversed. The error says so:

try:
    unweave.methods.HessianICA(latent_dim=3).fit(images[:300]).inverse_transform(codes[:1])
except unweave.InputError as error:
    print(error)

# %%
# Related
# -------
# - :doc:`Figures in the user guide </guide/figures>`: the figures of ``unweave draw`` and of the report.
# - :doc:`/gallery/questions/plot_why_is_mig_low`: the sentences of :func:`unweave.explain`, one by one.
# - :doc:`/gallery/methods/plot_hessian_autoencoder`: the method of this page.
# - :class:`unweave.methods.HessianAutoencoder`, :func:`unweave.explain`
