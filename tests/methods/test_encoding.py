"""Columns of tables on their way to a method and back: names, scaling, units.

Units are changed by powers of two, which no rounding error depends on: the same columns in other units must give the
same codes to the bit.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import unweave
from tests.helpers import METHODS, NETWORKS, small_method
from unweave import InputError, OwnData, Run, as_data, load
from unweave.experiments.history import final_likelihood
from unweave.experiments.run import read_run
from unweave.methods import GIN, PCA, BetaVAE, HessianICA, LinearICA
from unweave.methods.encoding import learned_scaling
from unweave.methods.neural import fit_pack
from unweave.metrics import translation_difficulty

UNITS = np.array([1.0, 2.0**4, 2.0**-3, 4.0])
Y = np.arange(120) % 3


@pytest.fixture(scope="module")
def table():
    """Two uniform factors in four columns, which have names."""
    z = np.random.default_rng(0).uniform(-1, 1, (120, 2))
    x = np.stack([z[:, 0], z[:, 1] + 9, z[:, 0] + 0.1 * z[:, 1] ** 2, z[:, 1] - 0.2 * z[:, 0] ** 2], 1)
    return pd.DataFrame(x, columns=["height", "weight", "age", "size"])


def quick(name):
    return small_method(name, **{"steps": 2} if name in NETWORKS else {})


@pytest.mark.parametrize("name", METHODS)
def test_codes_do_not_depend_on_the_units_of_a_table(name, table):
    method, other = (quick(name).fit(table * units, Y) for units in (1.0, UNITS))
    codes = method.transform(table)
    assert np.array_equal(codes, other.transform(table * UNITS))
    assert method.column_scaling_ == "standard" and any("standardized" in text for text in method.summary())
    if method.has_decoder():
        assert np.array_equal(method.inverse_transform(codes) * UNITS, other.inverse_transform(codes))


@pytest.mark.parametrize("method", [PCA(), LinearICA(), HessianICA(), BetaVAE(steps=3, layers=(8,)), GIN(steps=3)])
def test_a_saved_method_scales_as_it_was_fitted(method, table, tmp_path):
    method.fit(table, Y)
    method.save(tmp_path / "m")
    again = load(tmp_path / "m")
    new = table.iloc[:5] + 1
    assert np.array_equal(again.transform(new), method.transform(new))
    assert list(again.feature_names_in_) == list(table.columns)
    assert again.summary() == method.summary()


def test_rows_are_decoded_in_their_units(table):
    method = PCA(latent_dim=4).fit(table * UNITS)
    np.testing.assert_allclose(method.inverse_transform(method.transform(table * UNITS)), table * UNITS)


def test_data_that_are_not_scaled_leave_no_scaling_behind(table):
    method = PCA().fit(table)
    method.fit(table.to_numpy())
    assert learned_scaling(method) is None
    assert not hasattr(method, "feature_names_in_")
    method.fit(as_data(table, scale="none"))
    assert learned_scaling(method) is None and not any("standardized" in text for text in method.summary())
    np.testing.assert_allclose(
        method.components_.abs().numpy(), PCA().fit(table.to_numpy()).components_.abs().numpy(), atol=1e-12
    )


def test_robust_scaling_is_learned(table):
    outlier = table.copy()
    outlier.iloc[0] = 1e6
    method = PCA().fit(as_data(outlier, scale="robust"))
    np.testing.assert_allclose(method.column_shift_, outlier.median())
    assert "scaled robustly" in method.summary()[0]


def test_every_model_of_a_pack_scales_like_a_single_one(table):
    pack = [BetaVAE(seed=seed, steps=3, layers=(8,)) for seed in (0, 1)]
    assert fit_pack(pack, as_data(table)) == [None, None]
    for method in pack:
        assert method.column_scaling_ == "standard"
        single = BetaVAE(seed=method.seed, steps=3, layers=(8,)).fit(table)
        np.testing.assert_allclose(method.transform(table), single.transform(table), atol=1e-6)


def test_restarts_keep_the_scaling(table):
    method = GIN(steps=3, restarts=2).fit(table, Y)
    other = GIN(steps=3, restarts=2).fit(table * UNITS, Y)
    assert np.array_equal(method.transform(table), other.transform(table * UNITS))


def test_a_bernoulli_likelihood_is_refused_with_the_way_out(table):
    with pytest.raises(InputError, match="scale='none'"):
        BetaVAE(likelihood="bernoulli").fit(table.clip(0, 1))


# Names ----------------------------------------------------------------------------------------------------------------


def test_columns_of_other_data_are_matched_by_name(table):
    method = PCA().fit(table)
    shuffled = as_data(table[["size", "age", "height", "weight"]])
    assert np.array_equal(method.transform(shuffled), method.transform(table))
    with pytest.raises(InputError, match=r"other columns \(missing: 'age'; unknown: 'years'\)"):
        method.transform(as_data(table.rename(columns={"age": "years"})))
    with pytest.raises(InputError, match="missing: 'age'"):
        method.transform(as_data(table.drop(columns="age")))


def test_tensors_need_no_names(table):
    method = PCA().fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = method.transform(torch.tensor(table.to_numpy()))
    assert np.array_equal(codes, method.transform(table))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        method.transform(table.to_numpy())


# Densities and scores -------------------------------------------------------------------------------------------------


def test_densities_are_those_of_rows_in_their_units(table):
    method, other = (GIN(steps=3).fit(table * units, Y) for units in (1.0, UNITS))
    change = np.log(UNITS).sum()
    for y in (None, Y):
        np.testing.assert_allclose(other.log_prob(table * UNITS, y), method.log_prob(table, y) - change, rtol=1e-5)
    np.testing.assert_allclose(other.sample(0, 3), method.sample(0, 3) * UNITS, rtol=1e-6)
    np.testing.assert_allclose(other.transfer(table * UNITS, 1), method.transfer(table, 1) * UNITS, rtol=1e-6)
    assert final_likelihood(other, other.history) == pytest.approx(final_likelihood(method, method.history) - change)


def test_the_outlook_of_a_flow_is_that_of_scaled_columns(table):
    tiny = table * 2.0**-12
    assert GIN().outlook(table, Y) == GIN().outlook(tiny, Y) != GIN().outlook(tiny.to_numpy(), Y)


@pytest.mark.filterwarnings("ignore:the columns are not scaled")
def test_the_scores_of_a_run_do_not_depend_on_units(table, tmp_path):
    z = {"left": table["height"], "right": table["weight"]}
    for name, units in (("a", 1.0), ("b", UNITS)):
        (table * units).assign(**z).to_csv(tmp_path / f"{name}.csv", index=False)
    settings = {"factors": ("left", "right")}
    files = {name: OwnData(path=tmp_path / f"{name}.csv", **settings) for name in ("a", "b")}
    files["raw"] = OwnData(path=tmp_path / "b.csv", scale="none", **settings)
    methods = [PCA(), BetaVAE(latent_dim=2, steps=3, layers=(8,)), BetaVAE(latent_dim=2, steps=3, layers=(8,), seed=1)]
    metrics = ("mcc", "local-isometry")
    rows = {}
    for name, data in files.items():
        runs = [Run(data, method) for method in methods]
        unweave.execute(runs, tmp_path / name, metrics=metrics)
        rows[name] = [read_run(tmp_path / name / run.key) for run in runs]
    for a, b, raw in zip(rows["a"], rows["b"], rows["raw"], strict=True):
        assert a.scores == pytest.approx(b.scores, abs=1e-4)
        assert abs(a.scores["local-isometry"] - raw.scores["local-isometry"]) > 0.01
        assert any("standardized" in text for text in a.diagnosis)
        assert b.env["data"]["sha256"] == raw.env["data"]["sha256"], "the same observations"


def test_translations_are_compared_with_scaled_columns(table):
    settings = {"latent_dim": 2, "steps": 100, "layers": (8,), "beta": 0.1, "lr": 0.01}
    method, other = (BetaVAE(**settings).fit(table * units) for units in (1.0, UNITS))
    difficulty = translation_difficulty(method, method.transform(table)).difficulty
    assert translation_difficulty(other, other.transform(table * UNITS)).difficulty == pytest.approx(
        difficulty, rel=1e-4
    )
    assert difficulty > 1e-6


def test_scorers_compare_with_scaled_observations(table):
    score = unweave.scorer("local-isometry")
    method, other = (PCA().fit(table * units) for units in (1.0, UNITS))
    assert score(method, table) == pytest.approx(score(other, table * UNITS), abs=1e-9)
