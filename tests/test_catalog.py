"""Catalog: names, variants, scorers."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import unweave
from unweave import InputError, catalog
from unweave.methods import PCA, LinearICA

RNG = np.random.default_rng(0)


GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), -1).reshape(-1, 3).repeat(30, 0)  # (1920, 3)


CODES = GRID + 0.05 * RNG.normal(size=GRID.shape)


def test_an_unknown_variant_names_the_nearest_one():
    assert list(catalog.find_metrics(["dci[gbt]", "sap"])) == ["dci[gbt]", "sap[svm]", "sap[r2]"]
    assert "dci[gbt]" not in catalog.find_metrics(["dci"], every=True)
    with pytest.raises(InputError, match=r"no variant of dci named 'gbd'; did you mean 'gbt'"):
        catalog.find_metrics(["dci[gbd]"])


def test_grid_search_selects_by_our_metrics():
    c = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    x = np.column_stack([c, 0.1 * RNG.normal(size=(400, 3))])
    scoring = {"mcc": unweave.scorer("mcc"), "d": unweave.scorer("dci[trees].disentanglement")}
    search = GridSearchCV(PCA(), {"latent_dim": [1, 2]}, scoring=scoring, refit="mcc", cv=2).fit(x, c)
    assert search.best_params_ == {"latent_dim": 2}
    assert search.cv_results_["mean_test_d"].min() >= 0
    fitted = LinearICA(latent_dim=2).fit(x)
    assert unweave.scorer("unsupervised.total_correlation")(fitted, x) == pytest.approx(0, abs=0.05)
    assert unweave.scorer("local-isometry")(fitted, x) > 0.6
    again = pickle.loads(pickle.dumps(scoring["d"]))
    assert again(fitted, x, c) == scoring["d"](fitted, x, c)


def test_scorers_say_what_they_lack():
    fitted = PCA(latent_dim=2).fit(CODES)
    with pytest.raises(InputError, match="pass them as y"):
        unweave.scorer("mcc")(fitted, CODES)
    with pytest.raises(InputError, match=r"no part of .* named ''.*completeness"):
        unweave.scorer("dci[lasso]")(fitted, CODES, GRID)
    with pytest.raises(InputError, match=r"sap includes the variants sap\[svm\], sap\[r2\]"):
        unweave.scorer("sap")
    with pytest.raises(InputError, match="it takes runs"):
        unweave.scorer("udr")
