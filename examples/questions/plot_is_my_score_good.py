"""
Is my score good?
=================

Compare it with its chance level: the score of the same codes, shuffled. Some metrics give 0.4 or more to codes that
know nothing, others give 0.2 to codes that know a lot. An interval says how much a score varies with the rows.
"""

# %%
# A score without a reference
# ---------------------------
# Somebody tells you that the codes of 250 images have these scores. Are they good?

import warnings

import matplotlib.pyplot as plt
import numpy as np

import unweave

rng = np.random.default_rng(0)
factors = rng.integers(0, [3, 6, 20, 16, 16], size=(250, 5))  # shape, scale, orientation, x, y
secret = rng.normal(size=(250, 5))
print(f"irs        {unweave.metrics.irs(factors, secret):.2f}")
print(f"modularity {unweave.metrics.modularity(factors, secret):.2f}")
print(f"mig        {unweave.metrics.mig(factors, secret):.2f}")

# %%
# They are worth nothing: the codes are random numbers. IRS asks whether a code stays the same while a factor does. In a
# group of few rows, any code varies less than in all rows. Modularity asks for *one* factor per code, and chance makes
# one factor look a little better than the others.
#
# Chance levels and intervals
# ---------------------------
# The next codes do know the factors: each has a code, with some noise, and somewhat rotated. One call computes
# all metrics. ``chance=True`` adds the scores of shuffled codes, ``bootstrap=10`` adds 95 % intervals.

rotation = np.linalg.qr(np.eye(5) + 0.25 * rng.normal(size=(5, 5)))[0]
learned = (factors - factors.mean(0)) / factors.std(0) @ rotation + 0.2 * rng.normal(size=(250, 5))
table = unweave.metrics.score_all(factors, learned, chance=True, bootstrap=10)
table.round(3)

# %%
# What counts is the way from chance to best. A metric can be compared with itself alone. Here the modularity of 0.66 is
# hardly above chance, and the MIG of 0.20 is far from it.

names = ["mcc", "mig", "sap[svm]", "sap[r2]", "dci[trees].disentanglement", "dci[trees].completeness"]
names += ["modularity", "explicitness", "infomec.modularity", "irs[q99]", "factor-vae-score.accuracy"]
shown = table.loc[names[::-1]]
figure, axis = plt.subplots(figsize=(7, 4.9), constrained_layout=True)
axis.hlines(shown.index, shown["chance"], 1, color="0.9", linewidth=8)
axis.hlines(shown.index, shown["low"], shown["high"], color="tab:blue", linewidth=8)
axis.plot(shown["value"], shown.index, "o", color="tab:blue", label="score with 95 % interval")
axis.plot(shown["chance"], shown.index, "X", color="tab:red", markersize=8, label="chance: codes shuffled")
axis.set(xlim=(-0.02, 1.02), xlabel="score")
figure.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()

# %%
# When it fails
# -------------
# With few rows, all chance levels rise, and a classifier has too little to learn from. A warning says so:

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    few = unweave.metrics.irs(unweave.metrics.prepared(factors[:30], [True] * 5), secret[:30])
print(f"irs of 30 random codes: {few:.2f}")
print(caught[0].message)

# %%
# - An interval is about rows. Models of other seeds differ, too, and often more. Train several, and show all of them:
#   :doc:`/gallery/questions/plot_compare_methods`.
# - On pure noise, ``dci`` by lasso may keep one code per factor, which looks disentangled. Read it beside its
#   informativeness.
# - A metric has variants, in brackets. Never compare one variant with another.
#
# For codes of another tool, the command line does the same:
# ``unweave score codes.csv --factors factors.csv --all --chance --bootstrap 20``.
#
# Related
# -------
# - :doc:`Metrics in the user guide </guide/score>`: definitions, variants, chance levels and intervals.
# - :doc:`/gallery/questions/plot_why_is_mig_low`: reasons for a low score.
# - :func:`unweave.metrics.score_all`, :func:`unweave.metrics.irs`, :func:`unweave.metrics.modularity`,
#   :func:`unweave.metrics.mig`
