"""
What beta does in a beta-VAE
============================

:class:`~unweave.methods.BetaVAE` learns codes and a decoder, so that every code can be turned and its effect seen.
``beta`` is the price of information: too low and codes share factors, too high and factors are lost.
"""

# %%
# What we have
# ------------
#
# Small color images of a blurred square. Its position on the diagonal and its color are the factors. The images are
# made by the package, so the true factors are known.

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

dataset = unweave.datasets.SquaresXC(points=2_000, size=16, side=6, blur=3)
images, factors = dataset.load().collect(2_000, torch.Generator())  # (2000, 3, 16, 16), (2000, 2)

# %%
# Train several at once
# ---------------------
#
# A sweep is the product of its axes, here five values of ``beta``. Add ``seed=range(10)`` for ten models of each.
# Models that differ only in seeds and weights of the loss are trained together, as the lanes of one pack. Each is
# stored in a folder of its own.

betas = [0.1, 0.3, 1, 3, 10]
vae = unweave.methods.BetaVAE(latent_dim=4, network="mlp", layers=(128, 64), steps=800, lr=1.5e-3)
folder = tempfile.mkdtemp()
table = unweave.execute(unweave.sweep(dataset, vae, beta=betas), folder, metrics=["mcc", "mig"])
print(table[["beta", "mcc", "mig"]].round(2).to_string(index=False))

# %%
# MCC asks whether each factor has a code, MIG also whether it has only one.
#
# What each code does
# -------------------
#
# We take a model with ``beta=1``, change one code at a time from its 5 % to its 95 % quantile, and decode. Two codes
# carry a factor each. The other two are unused: their posterior equals the prior, so their KL divergence is zero and
# the image does not change. Brightness is scaled for display.

models = {beta: unweave.load(f"{folder}/{key}") for beta, key in zip(betas, table["key"], strict=True)}


def nats(model: unweave.Method) -> np.ndarray:
    """Return the mean KL divergence of each code from the prior, (codes,)."""
    assert isinstance(model, unweave.methods.BetaVAE)
    with torch.no_grad():
        return model.kl_per_code(images).mean(0).numpy()


def traverse(model: unweave.Method, code: int, steps: int = 7) -> np.ndarray:
    """Return images in a row, (17, steps * 17, 3), with one code changed and the others at their medians."""
    z = model.transform(images)
    low, high = np.quantile(z[:, code], [0.05, 0.95])
    line = np.repeat(np.median(z, 0, keepdims=True), steps, 0)
    line[:, code] = np.linspace(low, high, steps)
    decoded = model.inverse_transform(line).transpose(0, 2, 3, 1) / float(images.max())  # (steps, 16, 16, 3)
    return np.concatenate(list(np.pad(decoded, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=1)), 1)


model, information = models[1], nats(models[1])
order = np.argsort(-information)
figure, axis = plt.subplots(figsize=(7, 4.1), layout="constrained")
axis.imshow(np.concatenate([traverse(model, code) for code in order]).clip(0, 1), interpolation="nearest")
axis.set_yticks(
    8 + 17 * np.arange(4), [f"code {code + 1}\n{information[code]:.1f} nats" for code in order], fontsize=13
)
axis.set_title("beta = 1: one code at a time", fontsize=14)
axis.set_xticks([])
axis.tick_params(length=0)
axis.spines[:].set_visible(False)
plt.show()

# %%
# What beta does
# --------------
#
# Each nat that a code carries costs ``beta``. As the price rises, codes are given up one by one, and reconstructions
# become worse. With a low price all codes are used, and several share a factor.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
sorted_nats = np.array([np.sort(nats(m))[::-1] for m in models.values()])  # (models, codes)
places = range(len(models))
bottom = np.zeros(len(models))
for rank, values in enumerate(sorted_nats.T):
    left.bar(places, values, bottom=bottom, color=plt.get_cmap("Blues")(0.9 - 0.22 * rank), edgecolor="white")
    bottom += values
left.set(xticks=places, xticklabels=models, xlabel="beta", ylabel="KL divergence (nats)", title="information by code")
right.plot(places, [m.history["rec"].tail(20).mean() for m in models.values()], "o-", color="tab:red")
right.set(xticks=places, xticklabels=models, xlabel="beta", ylabel="nats per image", title="reconstruction error")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# When it fails
# -------------
#
# - Without labels, nothing guarantees that the codes of a VAE are the factors. It works here because the two factors
#   change the image by different amounts. Compare seeds, and see :doc:`/guide/select` for a choice without labels.
# - Scores of unused codes mean little: MCC ignores how small a code is. Look at the KL divergence beside it.
# - With too large a ``beta`` all codes are given up. The diagnosis then says so:

collapsed = vae.set_params(beta=300, steps=200).fit(images)
print(collapsed.diagnosis_[-1])

# %%
# Related
# -------
#
# - :class:`unweave.methods.FactorVAE`, :class:`unweave.methods.BetaTCVAE`, :class:`unweave.methods.AnnealedVAE` and
#   :class:`unweave.methods.DIPVAE` have other penalties and the same interface.
# - :doc:`/gallery/methods/plot_ada_gvae` adds pairs of images, which tell the factors apart.
# - :doc:`/gallery/methods/plot_hessian_ica` finds such factors without a network.
