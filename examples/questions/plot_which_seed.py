"""
Which seed do I trust?
======================

Train several seeds, and keep one that agrees with most others: UDR and ModelCentrality measure this without labels.
Check that they work on data like yours, since seeds may also agree on something wrong.
"""

# %%
# What you have
# -------------
# A lamp moves in a rectangular room and is seen by 10 x 10 sensors. The two coordinates are the factors. They are known
# here for a single purpose: to see whether the selection was right.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unweave

rng = np.random.default_rng(0)
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
row, column = np.mgrid[-1:1:10j, -1:1:10j]
places = rng.uniform(-1, 1, (1_000, 2))


def write_room(path: Path, depth: float, focus: float) -> unweave.OwnData:
    """Write what the sensors see into a file, with the places of the lamp."""
    x, y = 0.7 * places.T[:, :, None, None]
    brightness = 16 * np.exp(-focus * ((column - x) ** 2 + (row - depth * y) ** 2))
    np.savez(path, sensors=brightness.reshape(1_000, 100), x=places[:, 0], y=places[:, 1])
    return unweave.OwnData(path=path, columns=("sensors",), factors=("x", "y"))


data = write_room(folder / "rectangle.npz", depth=0.6, focus=10)

# %%
# Ten seeds at once
# -----------------
# A sweep over seeds is trained as one pack, much faster than one by one. ``execute`` stores and scores the runs, and
# repeats none that is finished.

method = unweave.methods.BetaVAE(latent_dim=4, layers=(64, 64), beta=30, lr=2e-3, steps=400)
table = unweave.execute(unweave.sweep(data, method, seed=range(10)), folder / "runs", metrics=["mcc"])
table.set_index("seed")[["mcc"]].round(2).transpose()

# %%
# The scores differ much, and without labels you would not see them.
#
# Select without labels
# ---------------------
# Load the models, encode the same observations, and compare the codes of the runs with each other. Codes that hardly
# vary are left out.


def active_codes(key: str, x: np.ndarray) -> np.ndarray:
    """Return the codes of a run, without those that have collapsed, (n, d)."""
    codes = unweave.load(folder / "runs" / key).transform(x)
    return codes[:, codes.std(0) > 0.05 * codes.std(0).max()]


x = np.load(folder / "rectangle.npz")["sensors"]
codes = [active_codes(key, x) for key in table["key"]]
table["udr"] = unweave.metrics.udr(codes)
table["centrality"] = unweave.metrics.model_centrality(codes)
for criterion in ("udr", "centrality"):
    best = table.iloc[int(table[criterion].argmax())]
    rank = table[criterion].corr(table["mcc"], method="spearman")
    print(f"{criterion}: seed {best['seed']} with MCC {best['mcc']:.2f}; rank correlation with the truth {rank:.2f}")
print(f"mean of all seeds: {table['mcc'].mean():.2f}, best: {table['mcc'].max():.2f}")

# %%
# On the command line this is ``unweave select runs``, which also knows likelihood, isometry and translation difficulty.

figure, axes = plt.subplots(1, 2, figsize=(7, 4.2), sharey=True, constrained_layout=True)
for axis, criterion, title in zip(axes, ("udr", "centrality"), ("UDR", "ModelCentrality"), strict=True):
    axis.scatter(table[criterion], table["mcc"], s=60)
    best = table.iloc[int(table[criterion].argmax())]
    axis.scatter(best[criterion], best["mcc"], s=260, facecolor="none", edgecolor="tab:red", linewidth=2)
    axis.annotate("selected", (best[criterion], best["mcc"]), (-10, -32), textcoords="offset points", color="tab:red")
    axis.set(xlabel=f"{title} (no labels)")
axes[0].set_ylabel("MCC (needs the truth)")
plt.show()

# %%
# When it fails
# -------------
# Agreement is not truth. In a square room with a blurred lamp, walls and diagonals look alike to a VAE with two codes.
# Most seeds settle on similar, rotated axes. Those that find the walls are outvoted, and UDR prefers the wrong ones:

square = write_room(folder / "square.npz", depth=1, focus=4)
runs = unweave.sweep(square, method, latent_dim=2, seed=range(8))
outvoted = unweave.execute(runs, folder / "runs", metrics=["mcc"])
x = np.load(folder / "square.npz")["sensors"]
outvoted["udr"] = unweave.metrics.udr([active_codes(key, x) for key in outvoted["key"]])
print(f"rank correlation of UDR with the truth: {outvoted['udr'].corr(outvoted['mcc'], method='spearman'):.2f}")

# %%
# - Before you rely on a criterion, test it on data with known factors that resemble yours, as we did here.
# - Below five runs, agreement is worth little. All runs must have seen the same observations.
# - If all codes of a run are constant, nothing can be compared. Its ``history`` shows the terms of the loss.
#
# Related
# -------
# - :doc:`Selection in the user guide </guide/select>`: all criteria, and when each one works.
# - :doc:`/gallery/questions/plot_compare_methods`: several methods and strengths in one study.
# - :doc:`/gallery/methods/plot_beta_vae`: what beta does.
# - :func:`unweave.metrics.udr`, :func:`unweave.metrics.model_centrality`, :func:`unweave.sweep`,
#   :func:`unweave.execute`, :func:`unweave.load`
