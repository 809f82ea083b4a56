"""
A classifier that ignores the lab
=================================

Label the nuisance, and :class:`unweave.methods.SwapContrast` learns to predict without it. On new samples, its worst
group is right far more often than that of a plain classifier.
"""

# %%
# What you have
# -------------
# Tissue of three kinds was measured in two laboratories, and kind ``a`` mostly in one of them. The laboratory leaves a
# mark on the measurements that is stronger than the kind. Later, every kind comes from both laboratories.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unweave

rng = np.random.default_rng(0)


def measure(n: int, tie: float) -> tuple[np.ndarray, pd.DataFrame]:
    """Draw n samples with 12 measurements; for a share `tie` of them, the kind decides the laboratory."""
    kind, lab = rng.integers(0, 3, n), rng.integers(0, 2, n)
    lab = np.where(rng.random(n) < tie, kind == 0, lab).astype(int)
    x = rng.normal(size=(n, 12))
    x[:, :3] += 2 * np.eye(3)[kind]
    x[:, 3:6] += 3 * lab[:, None]
    return x, pd.DataFrame({"kind": np.array(list("abc"))[kind], "lab": np.array(["Bonn", "Oslo"])[lab]})


X, y = measure(3_000, tie=0.9)
X_new, y_new = measure(3_000, tie=0.0)
pd.crosstab(y["kind"], y["lab"])

# %%
# Two classifiers
# ---------------
# The plain one learns the kind from the measurements, and so learns the laboratory as well. Swap and contrast gets the
# same table: the first column is the class, the others are nuisances.

plain = unweave.methods.CNNClassifier(latent_dim=8, layers=(64,), steps=300).fit(X, y)
swap = unweave.methods.SwapContrast(predictive_dim=8, nuisance_dim=4, layers=(64,), beta=10, steps=300).fit(X, y)

for name, method in (("plain", plain), ("swap and contrast", swap)):
    predicted = method.predict(X_new)
    worst = unweave.metrics.worst_group_accuracy(y_new["kind"], predicted, y_new)
    print(f"{name:18} accuracy {method.score(X_new, y_new):.2f}, worst group {worst:.2f}")

# %%
# Where it is right
# -----------------
# Accuracy of new samples, for each kind from each laboratory. The plain classifier guesses the kind by the laboratory:
# it fails where training had few samples.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.9), constrained_layout=True)
for axis, (name, method) in zip(axes, (("plain classifier", plain), ("swap and contrast", swap)), strict=True):
    right = pd.Series(method.predict(X_new) == y_new["kind"])
    groups = right.groupby([y_new["kind"], y_new["lab"]]).mean().unstack()
    image = axis.imshow(groups, cmap="RdYlGn", vmin=0, vmax=1, aspect="auto")
    for (i, j), accuracy in np.ndenumerate(groups.to_numpy()):
        axis.text(j, i, f"{accuracy:.2f}", ha="center", va="center", fontsize=14)
    axis.set_title(f"{name}\nworst group {groups.to_numpy().min():.2f}")
    axis.set_xticks(range(2), list(groups.columns))
    axis.set_yticks(range(3), [f"kind {kind}" for kind in groups.index])
figure.colorbar(image, ax=axes, label="accuracy")
plt.show()

# %%
# Is the laboratory gone?
# -----------------------
# A fresh classifier looks for it in the codes that predict. For swap and contrast these are the first eight; the other
# codes hold the rest. An accuracy of a half would mean that nothing is left.

for name, codes in (("plain", plain.transform(X_new)), ("swap and contrast", swap.transform(X_new)[:, :8])):
    probe = unweave.metrics.nuisance_probe(y_new["lab"] == "Oslo", codes)
    print(f"{name:18} finds the laboratory in {probe.accuracy:.0%} of the samples (chance {probe.chance:.0%})")

# %%
# Less is left, but not nothing. A high accuracy in the worst group does not need codes without any trace of the
# laboratory. The classifier only must not use it.
#
# When it fails
# -------------
# The method learns from pairs of one kind that differ in the laboratory. If every kind was measured in one laboratory
# alone, there are no such pairs, and no method can tell the two apart:

X_tied, y_tied = measure(600, tie=1.0)
try:
    unweave.methods.SwapContrast(layers=(64,), steps=100).fit(X_tied, y_tied)
except unweave.InputError as error:
    print(error)

# %%
# - ``beta`` is the weight of the contrastive loss. The default is for images. For a few columns, take about 10.
# - The nuisance must be known in training, and is not needed for new samples. It must be discrete.
#
# Related
# -------
# - :doc:`/guide/pairs`: nuisances, pairs and labels.
# - :doc:`/methods/invariance`: all classifiers of this family, with their losses.
# - :doc:`/gallery/methods/plot_swap_contrast`: the same method on images.
# - :doc:`/gallery/methods/plot_classifiers`: other classifiers that ignore a nuisance.
# - :class:`unweave.methods.SwapContrast`, :class:`unweave.methods.CNNClassifier`,
#   :func:`unweave.metrics.worst_group_accuracy`, :func:`unweave.metrics.nuisance_probe`
