"""
Why are my factors rotated?
===========================

Two Gaussian factors can be rotated into each other without a trace in the data, so no method without side information
finds their axes. The method warns. Pairs or labels fix the axes; without them, trust the space and not the axes.
"""

# %%
# What happens
# ------------
# Two factors are mixed into six columns. Once they are uniform, and once they are Gaussian. ICA gets both tables.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import unweave

rng = np.random.default_rng(0)
mixing = 3 * rng.normal(size=(2, 6))
uniform, gaussian = rng.uniform(-1.7, 1.7, (2_000, 2)), rng.normal(size=(2_000, 2))

ica = unweave.methods.LinearICA(latent_dim=2)
codes = {"uniform factors, ICA": ica.fit_transform(uniform @ mixing)}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    codes["Gaussian factors, ICA"] = ica.fit_transform(gaussian @ mixing)

# %%
# The uniform factors are recovered. For the Gaussian ones ICA warns, and the score is low:

print("uniform: ", round(unweave.metrics.mcc(uniform, codes["uniform factors, ICA"]), 3))
print("Gaussian:", round(unweave.metrics.mcc(gaussian, codes["Gaussian factors, ICA"]), 3))
print(caught[0].message)

# %%
# The reason is geometry. A square that was rotated looks rotated, since it has corners. A round cloud has none.
#
# What is lost, and what is not
# -----------------------------
# Only the axes are lost. Both codes together still determine both factors, as a linear regression shows:

informativeness = unweave.metrics.dci(gaussian, codes["Gaussian factors, ICA"], estimator="lasso").informativeness
print(f"informativeness {informativeness:.2f}")

# %%
# So predictions from all codes, distances and clusters are fine. Statements about *single* codes are not.
#
# What to do
# ----------
# Bring something that tells the axes apart. Here we have pairs of rows in which one factor has changed, and nobody
# says which one. Ada-GVAE learns from them.

changed = np.eye(2)[rng.integers(0, 2, 2_000)]
partner = np.where(changed, rng.normal(size=(2_000, 2)), gaussian)
pairs = unweave.as_pairs(gaussian @ mixing, partner @ mixing, changed=1)
vae = unweave.methods.AdaGVAE(latent_dim=2, layers=(32,), steps=600, lr=2e-3).fit(pairs)
codes["Gaussian factors, pairs"] = vae.transform(gaussian @ mixing)
print(round(unweave.metrics.mcc(gaussian, codes["Gaussian factors, pairs"]), 3))

# %%
# The color is the first factor. It should change along one axis only.

truth = {"uniform factors, ICA": uniform}
panels = {"Gaussian factors": gaussian, **codes}
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), constrained_layout=True)
for axis, (name, z) in zip(axes.flat, panels.items(), strict=True):
    factors = truth.get(name, gaussian)
    axis.scatter(*z.T, c=factors[:, 0], cmap="coolwarm", s=4)
    axis.set_title(name if z is gaussian else f"{name}: MCC {unweave.metrics.mcc(factors, z):.2f}")
    axis.set(xticks=[], yticks=[], xlim=(-3.5, 3.5), ylim=(-2.6, 2.6), aspect="equal")
plt.show()

# %%
# Which side information?
# -----------------------
# ======================================= =================================================================
# you have                                method
# ======================================= =================================================================
# pairs that share factors                :class:`~unweave.methods.AdaGVAE`
# classes that change the factors         :class:`~unweave.methods.GIN`, :class:`~unweave.methods.IVAE`
# images that may be moved or rotated     :class:`~unweave.methods.SelfSupervisedGIN`
# nothing                                 trust the space; look for factors that are not Gaussian
# ======================================= =================================================================
#
# When it fails
# -------------
# HLLE+ICA ends with the same ICA, and names each factor that is close to Gaussian:

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    hlle = unweave.methods.HessianICA(latent_dim=2).fit(gaussian @ mixing)
for sentence in hlle.summary()[-2:]:
    print("-", sentence)

# %%
# - With one or two hundred rows nobody can tell whether a factor is Gaussian. Then there is no warning.
# - Rotated codes may have other reasons, such as a wrong ``latent_dim``. :func:`unweave.explain` lists what it sees.
#
# Related
# -------
# - :doc:`/gallery/data/plot_pairs`: the same images with two kinds of pairs give two answers.
# - :doc:`/guide/choose`: which method for what you have.
# - :doc:`/gallery/methods/plot_gin`: labels fix the axes.
# - :class:`unweave.methods.LinearICA`, :class:`unweave.methods.AdaGVAE`, :func:`unweave.as_pairs`,
#   :func:`unweave.metrics.mcc`
