"""
What if my factors are correlated?
==================================

Methods that look for independent factors find other axes, and some scores mislead: MIG falls for perfect codes, MCC
rises for useless ones. Score on rows with independent factors, and learn from pairs if you can.
"""

# %%
# What you have
# -------------
# Two factors that go together: tall people are heavier, large toys are red. We draw factors with correlations up to
# 0.9, and mix them into six columns.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import norm

import unweave

rng = np.random.default_rng(0)
mixing = 9 * rng.normal(size=(2, 6))
LEVELS = (0, 0.2, 0.4, 0.6, 0.8, 0.9)


def draw_factors(correlation: float) -> np.ndarray:
    """Draw two Gaussian variables with a correlation, made uniform on [-1, 1], (3000, 2)."""
    return 2 * norm.cdf(rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 3_000)) - 1


factors = {level: draw_factors(level) for level in LEVELS}
independent = draw_factors(0)

# %%
# What it does to scores
# ----------------------
# *Perfect* codes are the factors themselves. *Useless* codes are two copies of their sum. Neither depends on a method.


def double_sum(factors: np.ndarray) -> np.ndarray:
    """Return two codes that are both the sum of the factors, (n, 2)."""
    return factors.sum(1, keepdims=True).repeat(2, 1)


scores = pd.DataFrame(
    {
        "perfect codes: MCC": {level: unweave.metrics.mcc(c, c) for level, c in factors.items()},
        "perfect codes: MIG": {level: unweave.metrics.mig(c, c) for level, c in factors.items()},
        "useless codes: MCC": {level: unweave.metrics.mcc(c, double_sum(c)) for level, c in factors.items()},
    }
)
print(f"useless codes, independent rows: MCC {unweave.metrics.mcc(independent, double_sum(independent)):.2f}")
scores.round(2)

# %%
# MIG is the gap to the second-best code, which now knows the factor as well, through the correlation. MCC is high for
# the sum, since each factor is correlated with it. On rows with independent factors, the useless codes are exposed.
#
# What it does to methods
# -----------------------
# ICA asks for independent codes, and correlated factors are not. It learns from the correlated rows here, and is scored
# on the independent ones.

ica = {}
for level, c in factors.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where it finds no clear axes
        ica[level] = unweave.methods.LinearICA(latent_dim=2).fit(c @ mixing)
scores["ICA, independent rows"] = [
    unweave.metrics.mcc(independent, method.transform(independent @ mixing)) for method in ica.values()
]
print(scores["ICA, independent rows"].round(2).to_dict())

# %%
# What helps: pairs
# -----------------
# Two observations in which one factor has changed say more than the distribution. The pairs may follow the correlation,
# too. Here the new value of a factor is drawn as it occurs beside the other one.

level = 0.9
gaussian = norm.ppf((factors[level] + 1) / 2)
redrawn = level * gaussian[:, ::-1] + np.sqrt(1 - level**2) * rng.normal(size=(3_000, 2))
partner = 2 * norm.cdf(np.where(np.eye(2)[rng.integers(0, 2, 3_000)], redrawn, gaussian)) - 1
pairs = unweave.as_pairs(factors[level] @ mixing, partner @ mixing, changed=1)
vae = unweave.methods.AdaGVAE(latent_dim=2, layers=(32,), steps=600, lr=2e-3).fit(pairs)
with_pairs = unweave.metrics.mcc(independent, vae.transform(independent @ mixing))
print(f"correlation {level}: MCC of Ada-GVAE {with_pairs:.2f}, of ICA {scores['ICA, independent rows'][level]:.2f}")

# %%
# Left: factors with a correlation of 0.8. The arrows show what one unit of each code of ICA means. They should be
# parallel to the axes. Right: everything above.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.6), constrained_layout=True, width_ratios=[1, 1.25])
axes[0].scatter(*factors[0.8].T, s=3, color="0.7")
for j, color in enumerate(("tab:blue", "tab:orange")):
    step = np.linalg.lstsq(mixing.T, ica[0.8].inverse_transform(np.eye(2))[j] - ica[0.8].inverse_transform([[0, 0]])[0])
    axes[0].annotate("", step[0], (0, 0), arrowprops={"width": 3, "color": color})
axes[0].set(xlabel="factor 1", ylabel="factor 2", title="axes of ICA", aspect="equal")
for name, style in zip(scores, ("k-", "k--", "r-", "b-"), strict=True):
    axes[1].plot(scores.index, scores[name], style, marker="o", label=name)
axes[1].plot(level, with_pairs, "g*", markersize=16, label="pairs, independent rows")
axes[1].set(xlabel="correlation of the factors", ylabel="score", title="scores", ylim=(0.45, 1.03))
axes[1].legend(loc="lower left")
plt.show()

# %%
# When it fails
# -------------
# If one factor is a function of the other, there is one factor. No score, and no method, can separate them. Compare the
# intrinsic dimension with the number of factors that you expect:

tied = independent[:, :1].repeat(2, 1) @ mixing
print(unweave.advise(tied, timed=False).facts.lines()[1])

# %%
# - If you know the factors of your training rows, resample them until the factors are independent, and score on those.
# - :class:`unweave.datasets.Resampled` has images with correlated factors, and independent ones for the scores.
# - :class:`unweave.methods.InterventionAutoencoder` is made for correlated factors of images.
#
# Related
# -------
# - :doc:`/gallery/data/plot_pairs`: pairs of your own.
# - :doc:`/gallery/questions/plot_rotated_factors`: the same loss of axes, for Gaussian factors.
# - :doc:`/methods/intervention`: how the intervention autoencoder works.
# - :doc:`/gallery/methods/plot_intervention`: an autoencoder for correlated factors.
# - :class:`unweave.methods.AdaGVAE`, :class:`unweave.methods.LinearICA`, :func:`unweave.metrics.mig`,
#   :func:`unweave.metrics.mcc`
