"""
Correlated factors: disentanglement by intervention
===================================================

A VAE takes correlated factors for one and learns their sum and difference.
:class:`~unweave.methods.InterventionAutoencoder` asks that one code can be exchanged alone, and comes closer to the
factors in most seeds. Nothing guarantees it: train several seeds and compare.
"""

# %%
# What we have
# ------------
#
# A lamp on a line, seen by 12 color pixels. Its position and its color are the factors. In the data they are
# correlated: lamps on the left are mostly red, lamps on the right mostly green. All combinations occur, some are rare.

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import unweave


def draw_factors(n: int, correlation: float, seed: int) -> np.ndarray:
    """Draw two uniform factors between 0 and 1, (n, 2)."""
    covariance = [[1, correlation], [correlation, 1]]
    return np.asarray(norm.cdf(np.random.default_rng(seed).multivariate_normal([0, 0], covariance, n)))


def photograph(factors: np.ndarray) -> np.ndarray:
    """Render lamps, (n, 2) -> (n, 3, 1, 12)."""
    position, angle = factors[:, :1], factors[:, 1] * np.pi / 2
    light = np.exp(-0.5 * ((np.arange(12) - 3 - 5 * position) / 1.5) ** 2)
    rgb = np.stack([np.cos(angle), np.sin(angle), np.full(len(angle), 0.3)], 1)
    return (rgb[:, :, None, None] * light[:, None, None]).clip(0, 1).astype(np.float32)


factors = draw_factors(3_000, correlation=0.8, seed=0)
images = photograph(factors)
print(f"correlation of the factors: {np.corrcoef(factors.T)[0, 1]:.2f}")

# %%
# A fair test
# -----------
#
# Codes are scored on new images in which position and color are independent. Otherwise a code for both would look
# right.

test_factors = draw_factors(1_500, correlation=0.0, seed=1)
test_images = photograph(test_factors)

# %%
# Train four seeds of each
# ------------------------
#
# The intervention autoencoder replaces one code of an image by that of another image and decodes. A discriminator asks
# whether the result looks like data; weights allow for combinations that are rare. The exchange must also be undone by
# another one, and be easy to learn for a linear map (``diff_mode="ridge"``).

network: dict[str, Any] = {"latent_dim": 2, "network": "mlp", "layers": (64, 64), "steps": 1_000, "lr": 2e-3}
weights: dict[str, Any] = {"lambda_in": 2.0, "lambda_adv": 3.0, "lambda_diff": 5.0, "diff_after": 0.0}
models = {
    "VAE": [unweave.methods.BetaVAE(beta=1.0, seed=seed, **network).fit(images) for seed in range(4)],
    "intervention": [
        unweave.methods.InterventionAutoencoder(
            diff_mode="ridge", weight_lr=2e-3, discriminator_hidden=(64,), seed=seed, **weights, **network
        ).fit(images)
        for seed in range(4)
    ],
}


def last_loss(model: unweave.Method) -> float:
    """Return the mean loss of the last fifth of the steps."""
    return float(model.history["loss"].tail(200).mean())


for name, seeds in models.items():
    scores = [unweave.metrics.mcc(test_factors, model.transform(test_images)) for model in seeds]
    print(f"{name:12} MCC ", *(f"{score:.2f}" for score in scores))
    print(f"{'':12} loss", *(f"{last_loss(model):.2f}" for model in seeds))

# %%
# A choice without labels
# -----------------------
#
# We take the seed with the lowest loss, which needs no labels.

chosen = {name: min(seeds, key=last_loss) for name, seeds in models.items()}
for name, model in chosen.items():
    print(f"{name:12} MCC {unweave.metrics.mcc(test_factors, model.transform(test_images)):.2f}")

# %%
# A picture of the result
# -----------------------
#
# Top: a grid of factors, and where its lines go in the codes. Lines of one position (blue) and of one color (orange)
# should run along the axes. Bottom: images as rows of pixels, and both codes changed one at a time. One code should
# move the lamp, the other one should change its color.

ticks, along = np.linspace(0.02, 0.98, 9), np.linspace(0.02, 0.98, 40)
lines = [(np.stack([np.full(40, t), along], 1), "tab:blue") for t in ticks]
lines += [(np.stack([along, np.full(40, t)], 1), "tab:orange") for t in ticks]


def traverse(model: unweave.Method) -> np.ndarray:
    """Return both codes changed one at a time, side by side, as rows of pixels, (24, 26, 3)."""
    z, columns = model.transform(test_images), []
    for code in (0, 1):
        low, high = np.quantile(z[:, code], [0.05, 0.95])
        line = np.repeat(np.median(z, 0, keepdims=True), 24, 0)
        line[:, code] = np.linspace(low, high, 24)
        columns.append(model.inverse_transform(line)[:, :, 0].transpose(0, 2, 1))
    return np.concatenate([columns[0], np.ones((24, 2, 3)), columns[1]], 1)


figure, axes = plt.subplots(2, 3, figsize=(7, 4.9), layout="constrained")
axes[0, 0].scatter(*factors[:1_000].T, c=images[:1_000, :, 0].max(2), s=4)
for line, color in lines:
    axes[0, 0].plot(*line.T, color=color, linewidth=0.6)
    for axis, model in zip(axes[0, 1:], chosen.values(), strict=True):
        axis.plot(*model.transform(photograph(line)).T, color=color, linewidth=1)
axes[0, 0].set(title="factors", xlabel="position", ylabel="color")
axes[1, 0].imshow(images[:24, :, 0].transpose(0, 2, 1), aspect="auto")
axes[1, 0].set_xlabel("24 images")
for column, (name, model) in zip(axes[:, 1:].T, chosen.items(), strict=True):
    score = unweave.metrics.mcc(test_factors, model.transform(test_images))
    column[0].set(title=f"{name}: {score:.2f}", xlabel="code 1", ylabel="code 2")
    column[1].imshow(traverse(model), aspect="auto")
    column[1].set_xlabel("code 1       code 2")
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
plt.show()

# %%
# The VAE changes position and color together with its first code, and hardly uses the second one. Of the intervention
# autoencoder, code 2 changes the color alone. Code 1 moves the lamp, and still takes some color along.
#
# When it fails
# -------------
#
# - A VAE is sometimes right by chance, as its last seed here. Without labels its loss does not tell which one it is.
# - The weights of the loss were set by hand on these data, with the truth at hand. With others, some seeds fail.
# - On larger images the paper's numbers were not reproduced. :doc:`/papers/intervention` has all results.
# - With one feature there is nothing to exchange, which is an error:

try:
    unweave.methods.InterventionAutoencoder(latent_dim=1, steps=10).fit(images)
except unweave.InputError as error:
    print(error)

# %%
# Related
# -------
#
# - :doc:`/gallery/methods/plot_beta_vae` shows what a VAE learns from independent factors.
# - :doc:`/gallery/methods/plot_ada_gvae` uses pairs, which work with every seed.
# - :class:`unweave.datasets.Resampled` makes correlated versions of known datasets.
