"""
Arrays, DataFrames and scikit-learn
===================================

Every method is a scikit-learn transformer: ``fit``, ``transform``, pipelines, ``clone`` and ``GridSearchCV`` work.
:func:`unweave.as_data` adds the factors that you know, and :func:`unweave.scorer` makes a scorer of any metric.
"""

# %%
# What you have
# -------------
# A numpy array of 600 recordings with 16 channels, and a DataFrame of what was noted. Pressure, dose and heat are mixed
# in the channels, with some noise. Hour and site have no effect.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import unweave

rng = np.random.default_rng(0)
n = 600
factors = pd.DataFrame(
    {
        "pressure": rng.laplace(size=n),
        "dose": rng.integers(0, 5, n),
        "heat": rng.uniform(-1.7, 1.7, n),
        "hour": rng.integers(0, 24, n),
        "site": rng.choice(["north", "south"], n),
    }
)
sources = factors[["pressure", "dose", "heat"]]
X = sources.to_numpy() @ rng.normal(size=(3, 16)) + 0.5 * rng.normal(size=(n, 16))

# %%
# Fit and transform
# -----------------
# Rows are observations. Images are ``(n, channels, height, width)``, bytes or floats in [0, 1]. Arrays go in, arrays
# come out.

method = unweave.methods.LinearICA(latent_dim=3)
codes = method.fit_transform(X)
print(codes.shape, method.get_feature_names_out())

# %%
# Say what the factors are
# ------------------------
# The kind of a factor decides how it is scored and drawn. Text is nominal. Numbers are ordinal if they have few values,
# and continuous otherwise. An hour is an angle, which only you can know.

data = unweave.as_data(X, factors, kinds={"hour": ("circular", 24)})
for factor in data.factors:
    print("-", factor.summary())

# %%
# ``method.fit(data)`` takes such data, too. Methods that need no labels ignore the factors.
#
# A pipeline
# ----------
# Any step of scikit-learn may come first. ``set_output`` gives the codes as a DataFrame.

pipeline = Pipeline([("scale", StandardScaler()), ("codes", unweave.methods.LinearICA(latent_dim=3))])
pipeline.set_output(transform="pandas").fit_transform(X).head(3).round(2)

# %%
# Choose settings by cross-validation
# -----------------------------------
# ``unweave.scorer("mcc")`` scores codes of held-out rows against the true factors, which are given as ``y``. The search
# tries two methods with one to six codes each. With more codes than sources, ICA warns that it separates noise, which
# we know.

methods = [unweave.methods.PCA(), unweave.methods.LinearICA()]
grid = {"codes": methods, "codes__latent_dim": range(1, 7)}
search = GridSearchCV(pipeline, grid, scoring=unweave.scorer("mcc"), cv=5)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    search.fit(X, sources)
print(search.best_params_, f"MCC {search.best_score_:.3f}")

# %%
# The codes of PCA mix the sources, however many there are. ICA is right as soon as it has a code for each source.

results = pd.DataFrame(search.cv_results_)
results["method"] = results["param_codes"].map(lambda method: type(method).__name__)
figure, axis = plt.subplots(figsize=(6, 4.2), constrained_layout=True)
for name, rows in results.groupby("method"):
    axis.errorbar(
        rows["param_codes__latent_dim"].astype(int),
        rows["mean_test_score"],
        rows["std_test_score"],
        marker="o",
        capsize=4,
        label=name,
    )
axis.set(xlabel="latent_dim", ylabel="MCC of held-out rows", ylim=(0, 1.05))
axis.axvline(3, color="gray", linestyle=":", label="number of sources")
axis.legend(loc="lower right")
plt.show()

# %%
# When it fails
# -------------
# Metrics need numbers. Of a column of text, code the classes as 0, 1, 2, ... or leave it out:

try:
    unweave.metrics.mcc(factors, codes)
except unweave.InputError as error:
    print(error)

# %%
# An array with its axes swapped, or with gaps, is refused with the place of the fault:

X[7, 2] = np.nan
try:
    method.fit(X)
except unweave.InputError as error:
    print(error)

# %%
# Related
# -------
# - :doc:`/guide/your-data`: kinds of factors, and everything that ``fit`` takes.
# - :doc:`/guide/train`: settings, callbacks and seeds of methods with networks.
# - :doc:`/gallery/data/plot_table`: the same from a file.
# - :doc:`/gallery/questions/plot_compare_methods`: many methods and seeds in one study.
# - :func:`unweave.as_data`, :func:`unweave.scorer`, :class:`unweave.methods.LinearICA`
