"""
Classifiers that ignore a nuisance, side by side
================================================

Six methods learn to predict a class and to ignore a nuisance that is tied to it. The worst group says how well that
works: it is the accuracy of the combination of class and nuisance that a classifier handles worst.
"""

# %%
# What we have
# ------------
#
# Samples of three kinds come from two laboratories. In training, nine of ten samples of kind ``a`` come from Oslo and
# most others from Bonn. The laboratory shifts three columns by more than the kind does. Later, laboratory and kind are
# independent, so a classifier that relies on the laboratory fails.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unweave


def measure(n: int, tie: float, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Draw n samples with 12 columns; for a share `tie` of them, the kind decides the laboratory."""
    rng = np.random.default_rng(seed)
    kind, lab = rng.integers(0, 3, n), rng.integers(0, 2, n)
    lab = np.where(rng.random(n) < tie, kind == 0, lab).astype(int)
    x = rng.normal(size=(n, 12))
    x[:, :3] += 2 * np.eye(3)[kind]
    x[:, 3:6] += 3 * lab[:, None]
    return x, pd.DataFrame({"kind": np.array(list("abc"))[kind], "lab": np.array(["Bonn", "Oslo"])[lab]})


X, y = measure(3_000, tie=0.9, seed=0)
X_new, y_new = measure(3_000, tie=0.0, seed=1)

# %%
# Six methods, three seeds each
# -----------------------------
#
# All get the same table: the first column is the class, the second is the nuisance. The plain classifier and UAI do not
# use the nuisance. One seed says little, so each is trained three times.

common = {"layers": (64,), "steps": 300, "lr": 1e-3}
methods = {
    "plain": unweave.methods.CNNClassifier(latent_dim=8),
    "UAI": unweave.methods.UAI(latent_dim=12),
    "CAI": unweave.methods.CAI(latent_dim=8, strength=0.3),
    "CVIB": unweave.methods.CVIB(latent_dim=8, strength=0.1),
    "VFAE": unweave.methods.VFAE(latent_dim=8, mmd=10.0),
    "swap and contrast": unweave.methods.SwapContrast(predictive_dim=8, nuisance_dim=4, beta=10),
}
rows = []
for name, method in methods.items():
    for seed in range(3):
        fitted = method.set_params(seed=seed, **common).fit(X, y)
        predicted = fitted.predict(X_new)
        codes = fitted.transform(X_new)[:, :8]
        worst = unweave.metrics.worst_group_accuracy(y_new["kind"], predicted, y_new)
        probe = unweave.metrics.nuisance_probe(y_new["lab"] == "Oslo", codes).accuracy
        rows.append({"method": name, "accuracy": fitted.score(X_new, y_new), "worst group": worst, "probe": probe})
scores = pd.DataFrame(rows)
print(scores.groupby("method", sort=False).mean().round(2).to_string())

# %%
# The probe is a fresh classifier that looks for the laboratory in the codes. Half right is chance.
#
# The worst group
# ---------------
#
# Dots are seeds, bars are means.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
order = list(methods)
for axis, column, title, best in (
    (axes[0], "worst group", "accuracy of the worst group (1 is best)", 1.0),
    (axes[1], "probe", "laboratory found by a probe (0.5 is best)", 0.5),
):
    means = scores.groupby("method")[column].mean()[order]
    axis.barh(order, means, color=["#8a93a3", *["#6db3e3"] * 4, "#d9622b"])
    axis.plot(scores[column], scores["method"], "o", color="black", markersize=4)
    axis.axvline(best, color="black", linewidth=1, linestyle=":")
    axis.set(title=title, xlim=(0, 1.02))
axes[0].invert_yaxis()
plt.show()

# %%
# What to watch out for
# ---------------------
#
# - Strengths decide, and ours were set by hand with little effort, so this is no ranking of the methods. Choose them on
#   nuisances that are held out of training, never on those that you report.
# - A probe near chance is neither needed nor enough. The classifier only must not use what is left.
# - UAI is not told the nuisance. It separates what predicts from what does not, and here the laboratory predicts.
#
# Related
# -------
#
# - :doc:`/gallery/questions/plot_ignore_the_lab` looks at two of them group by group.
# - :doc:`/gallery/methods/plot_swap_contrast` does it with images.
# - :func:`unweave.metrics.worst_group_accuracy`, :func:`unweave.metrics.nuisance_probe`
