"""
Factors from augmentations: self-supervised GIN
===============================================

Slightly changed copies of each observation can take the place of labels. :class:`~unweave.methods.SelfSupervisedGIN`
learns which directions the copies vary along, and separates them from noise. Whether its axes are the factors depends
on the augmentations, and the diagnosis says so.
"""

# %%
# What we have
# ------------
#
# A simulator makes ten numbers from two factors, ``z1`` and ``z2``, and eight sources of noise. It can render an
# observation again with slightly different factors. There are no labels; colors in the picture show five groups in the
# data, which the method does not see.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.linear_model import LinearRegression

import unweave

data = unweave.datasets.GaussianMixture(points=3_000, blocks=4).load()
x, sources = data.collect(3_000, torch.Generator())  # (3000, 10), (3000, 11)
groups, factors = sources[:, 0].numpy(), sources[:, 1:3].numpy()  # factors: (3000, 2), the truth
print([factor.name for factor in data.factors])

# %%
# Augmented copies
# ----------------
#
# Eight copies of each observation move along both factors by random steps with standard deviation 1. The method renders
# them during training. All it learns from is which observations are copies of each other.

method = unweave.methods.SelfSupervisedGIN(
    augment=("z1", "z2"), spread=1.0, copies=8, batch_size=50, steps=600, blocks=4, latent_dim=2
)
codes = method.fit(data).transform(x)
pca_codes = unweave.methods.PCA(latent_dim=2).fit_transform(x)


def report(name: str, z: np.ndarray, truth: np.ndarray) -> float:
    """Print two scores of codes z: does each factor have its own code, and is it a linear function of both?"""
    score = unweave.metrics.mcc(truth, z)
    plane = LinearRegression().fit(z, truth).score(z, truth)
    print(f"{name:20} MCC {score:.3f}, linear R2 {plane:.3f}")
    return score


pca_score = report("PCA", pca_codes, factors)
score = report("self-supervised GIN", codes, factors)

# %%
# A picture of the result
# -----------------------
#
# We render copies of one observation and encode them, too (black). They are spread along both codes, and the codes are
# the factors. The spectrum shows that two of the ten outputs of the flow vary much more than the others.

copies = sources[:1].repeat(60, 1)
copies[:, 1:3] += torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
copied_codes = method.transform(data.render(copies))
correlations = np.corrcoef(factors.T, codes.T)[:2, 2:]
best = np.abs(correlations).argmax(1)
signs = np.sign(correlations[[0, 1], best])

figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), layout="constrained")
dots = {"c": groups, "cmap": "Set1", "vmax": 8, "s": 4, "linewidths": 0}
axes[0, 0].scatter(*factors.T, **dots)
axes[0, 0].scatter(*copies[:, 1:3].T, c="black", s=7)
axes[0, 0].set(title="true factors, copies of one", xlabel="z1", ylabel="z2")
axes[0, 1].scatter(*pca_codes.T, **dots)
axes[0, 1].set(title=f"observed (PCA): MCC {pca_score:.2f}")
axes[1, 0].scatter(*(codes[:, best] * signs).T, **dots)
axes[1, 0].scatter(*(copied_codes[:, best] * signs).T, c="black", s=7)
axes[1, 0].set(title=f"recovered: MCC {score:.3f}", xlabel=f"code {best[0] + 1}", ylabel=f"code {best[1] + 1}")
for axis in axes.flat[:3]:
    axis.set(xticks=[], yticks=[])
informative = np.arange(1, 11) <= method.n_informative_
axes[1, 1].bar(range(1, 11), method.spectrum_, color=np.where(informative, "tab:blue", "lightgray"))
axes[1, 1].set(yscale="log", xlabel="output of the flow", ylabel="spread", xticks=range(1, 11))
axes[1, 1].set_title(f"{method.n_informative_} outputs are informative")
axes[1, 1].spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The diagnosis names a limit
# ---------------------------

for sentence in method.diagnosis_:
    print("-", sentence)

# %%
# "2 of 4 independent ways" is the caveat. All copies move equally far along both factors, so a rotated pair of codes
# would explain them just as well. The theorem asks for moves whose size differs between observations.
#
# When it fails
# -------------
#
# The caveat is real. We rotate both factors by 45 degrees before they are mixed, and train again. The codes still span
# the plane of the factors (R2), but their axes are no longer the factors (MCC).

turn = torch.tensor([[1.0, 1.0], [-1.0, 1.0]]) / 2**0.5


def mix(sources: torch.Tensor) -> torch.Tensor:
    """Rotate the two factors, then mix as before."""
    return data.mix(torch.cat([sources[..., :1], sources[..., 1:3] @ turn.T, sources[..., 3:]], -1))


rotated = unweave.Mixing(data.factors, data.shape, data.prior, mix, points=3_000, seed=1)
x, sources = rotated.collect(3_000, torch.Generator())
report("rotated factors", method.fit(rotated).transform(x), sources[:, 1:3].numpy())

# %%
# Your own data
# -------------
#
# Images need no simulator: ``SelfSupervisedGIN().fit(images)`` moves, rotates and scales them. Other augmentations come
# from a :class:`unweave.Mixing` with your own function, as above. Rows of a plain table can only be copied with noise,
# and the diagnosis then reads "Noise moves all directions alike, and identifies no variables: name augmentations."
#
# Related
# -------
#
# - :doc:`/gallery/methods/plot_gin` has a stronger guarantee, from labels.
# - :doc:`/gallery/methods/plot_ada_gvae` learns from pairs that share factors.
# - :class:`unweave.methods.SelfSupervisedGIN` documents all settings.
