"""
How do I add a metric of my own?
================================

Mark a function of true factors and codes with :func:`unweave.metric`. It then works in tables, in runs and studies, and
as a scikit-learn scorer. Check it on codes whose answer you know before you trust it.
"""

# %%
# What you want
# -------------
# Means hide failures. MCC is the *mean* over factors, so it stays high if one of four is lost. You want to know the
# worst one: how well is the factor recovered that is recovered least?

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import unweave


@unweave.metric(paper="none: an example", best=1.0)
def worst_factor(factors: np.ndarray, codes: np.ndarray) -> float:
    """Return the smallest, over factors, of the largest |correlation| with a code; 1 is best."""
    k = np.shape(factors)[1]
    correlations = np.abs(np.corrcoef(factors, codes, rowvar=False)[:k, k:])  # (k, d)
    return float(correlations.max(1).min())


# %%
# It is still an ordinary function, with the truth first:

rng = np.random.default_rng(0)
factors = rng.uniform(size=(1_000, 4))
lost = factors.copy()
lost[:, 3] = rng.uniform(size=1_000)
print(f"mcc {unweave.metrics.mcc(factors, lost):.2f}, worst factor {worst_factor(factors, lost):.2f}")

# %%
# Test it
# -------
# Change codes by a known amount, and see what the metric does. Here noise is added to all codes, or to one of them.

amounts = np.linspace(0, 2, 12)
noise = rng.normal(size=factors.shape)
deviation = factors.std(0)
cases = {"noise on all codes": np.ones(4), "noise on one code": np.eye(4)[3]}
figure, axes = plt.subplots(1, 2, figsize=(7, 4.2), sharey=True, constrained_layout=True)
for axis, (title, mask) in zip(axes, cases.items(), strict=True):
    codes = [factors + amount * deviation * mask * noise for amount in amounts]
    axis.plot(amounts, [unweave.metrics.mcc(factors, z) for z in codes], "o-", label="mcc")
    axis.plot(amounts, [worst_factor(factors, z) for z in codes], "s-", label="worst factor")
    axis.set(title=title, xlabel="noise / deviation of a factor", ylim=(0, 1.03))
axes[0].set_ylabel("score")
axes[0].legend(loc="lower left")
plt.show()

# %%
# With noise on one code, MCC falls little, and the worst factor falls as before. That is what we wanted.
#
# Use it
# ------
# Tables take metrics by name. The other columns are computed as usual.

models = {"all factors": factors + 0.2 * deviation * noise, "one factor lost": lost}
metrics: dict[str, Any] = {"mcc": unweave.metrics.mcc, "mig": unweave.metrics.mig, "worst-factor": worst_factor}
unweave.metrics.score_many(factors, models, metrics=metrics).round(2)

# %%
# In a file ``mine.py`` the metric has a name for the command line, for studies and for scikit-learn:
#
# .. code-block:: console
#
#     $ unweave score codes.csv --factors factors.csv --metrics mcc mine.py:worst_factor --chance --bootstrap 20
#
# .. code-block:: python
#
#     unweave.execute(runs, "runs", metrics=["mcc", "mine.py:worst_factor"])
#     GridSearchCV(method, grid, scoring=unweave.scorer("mine.py:worst_factor"))
#
# When it fails
# -------------
# A constant code has no correlation, and numpy answers with NaN. Metrics of the package never do: a dead code counts as
# zero. Yours should do the same, so test it:

dead = lost.copy()
dead[:, 3] = 0
with np.errstate(invalid="ignore"):
    print("ours:", worst_factor(factors, dead), " mcc:", round(unweave.metrics.mcc(factors, dead), 2))

# %%
# ``np.nan_to_num(correlations)`` repairs it. Also think of these before you publish a number:
#
# - What do shuffled codes get? See :doc:`/gallery/questions/plot_is_my_score_good`.
# - Is it defined for classes without an order, and for angles? Say so with ``kinds`` in :func:`unweave.metric`.
# - A metric with several numbers returns a named tuple. Each field becomes a column.
#
# Related
# -------
# - :doc:`/guide/extend`: methods, losses, networks, datasets and metrics of your own.
# - :doc:`/gallery/questions/plot_own_method`: a method of your own.
# - :func:`unweave.metric`, :func:`unweave.metrics.score_many`, :func:`unweave.scorer`, :func:`unweave.metrics.mcc`
