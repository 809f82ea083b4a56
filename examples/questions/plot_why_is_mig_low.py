"""
Why is my MIG low?
==================

:func:`unweave.explain` looks at every code and every factor, and says what is wrong in sentences: codes are mixed,
split, duplicate or dead, or a factor is missing.
"""

# %%
# Five ways to score low
# ----------------------
# MIG is the gap between the two codes that know most about a factor. It is low for several reasons, and the number does
# not say for which. We make codes with one fault each, so that we know what the explanation should find.

import matplotlib.pyplot as plt
import numpy as np

import unweave

rng = np.random.default_rng(0)
names = ["size", "color", "height"]
factors = rng.uniform(-1, 1, (3_000, 3))
size, color, height = factors.T
noise = 0.05 * rng.normal(size=3_000)

codes = {
    "perfect": np.stack([size, color, height], 1),
    "mixed": np.stack([size + color, size - color, height], 1),
    "split": np.stack([size.clip(max=0), size.clip(min=0), color, height], 1),
    "duplicate": np.stack([size, color, height, noise - 2 * height], 1),
    "dead": np.stack([size, color, height, np.zeros(3_000)], 1),
    "missing": np.stack([size, color, noise], 1),
}

# %%
# Ask for the reason
# ------------------
# Give the true factors, the codes, and names for the sentences.

explanations = {name: unweave.explain(factors, z, names=names) for name, z in codes.items()}
for name, explanation in explanations.items():
    print(f"{name}: MIG {unweave.metrics.mig(factors, codes[name]):.2f}")
    for finding in explanation.findings:
        print("  -", finding)

# %%
# See it
# ------
# The matrices show the share of a factor's information that each code has. We want one dark cell in each row and each
# column. In the mixed codes no single code knows much: ``size + color`` may be 0 for any size.

figure, axes = plt.subplots(2, 3, figsize=(7, 4.9), constrained_layout=True)
for axis, (name, explanation) in zip(axes.flat, explanations.items(), strict=True):
    image = axis.imshow(explanation.information, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axis.set_title(f"{name}: MIG {unweave.metrics.mig(factors, codes[name]):.2f}")
    count = explanation.information.shape[1]
    axis.set_xticks(range(count), [f"z{j + 1}" for j in range(count)])
    axis.set_yticks(range(3), names)
figure.colorbar(image, ax=axes, label="information (share of the factor)")
plt.show()

# %%
# What to do
# ----------
# ============== ======================================================================================================
# finding        what helps
# ============== ======================================================================================================
# mixed, split   The axes are rotated: use ICA, labels or pairs, see :doc:`/gallery/questions/plot_rotated_factors`.
# split          A factor that goes around a circle takes two codes. State its kind, or group the two codes.
# duplicates     There are more codes than factors: lower ``latent_dim``, or take a larger ``beta``.
# dead           Nothing is wrong with the scores: dead codes do not count. The method needs fewer codes than it has.
# not in codes   Train longer, take a smaller ``beta``, or check that the factor is visible in the data at all.
# ============== ======================================================================================================
#
# When it fails
# -------------
# If no fault stands out although a score is low, the explanation says that instead of inventing one. This happens when
# codes are noisy: each knows its factor, and only a part of it.

noisy = factors + 0.4 * rng.normal(size=factors.shape)
for finding in unweave.explain(factors, noisy, names=names).findings:
    print("-", finding)

# %%
# On the command line, ``unweave explain codes.csv --factors factors.csv`` prints the same sentences, and
# ``--out explain.png`` draws the matrices.
#
# Related
# -------
# - :doc:`Metrics in the user guide </guide/score>`: definitions of all metrics.
# - :doc:`/gallery/questions/plot_is_my_score_good`: chance levels and intervals.
# - :doc:`/gallery/questions/plot_what_does_this_code_do`: look at the observations instead of the numbers.
# - :func:`unweave.explain`, :func:`unweave.metrics.mig`, :func:`unweave.metrics.dci`
