"""Scaling of columns: its statistics, which data are scaled, and the data that methods learn from."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers import generator
from unweave import Factor, InputError, Mixing, OwnData, as_data, as_pairs
from unweave.data.scaling import NORMAL_IQR, Scaling, scale_data
from unweave.data.splits import correlate, hold_out
from unweave.data.supervision import pairs

X = np.random.default_rng(0).normal(size=(200, 3)) * [1, 500, 1e-3] + [5, -70, 1e6]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def scaled(x, mode="standard"):
    return Scaling.measure(torch.as_tensor(x), mode).apply(torch.as_tensor(x)).numpy()


def test_standard_columns_have_mean_0_and_deviation_1():
    z = scaled(X)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(z.std(0), 1, rtol=1e-6)


def test_robust_columns_have_median_0_and_ignore_outliers():
    x = X.copy()
    x[:20] *= 1e6  # a tenth of the rows
    z = scaled(x, "robust")
    np.testing.assert_allclose(np.median(z, 0), 0, atol=1e-6)
    np.testing.assert_allclose(np.subtract(*np.quantile(z, (0.75, 0.25), axis=0)), NORMAL_IQR, rtol=1e-6)
    assert 0.5 < z[20:, 1].std() < 2 < 1e3 < scaled(x)[:, 1].std() / scaled(x)[20:, 1].std()


def test_both_modes_agree_on_normal_columns():
    x = torch.randn(100_000, 2, generator=generator(), dtype=torch.float64)
    standard, robust = (Scaling.measure(x, mode) for mode in ("standard", "robust"))
    torch.testing.assert_close(standard.scale, robust.scale, rtol=0.02, atol=0)


@pytest.mark.parametrize("mode", ["standard", "robust"])
def test_constant_columns_become_zero(mode):
    rounding = np.where(np.arange(50) % 2, 0.3, 0.1 + 0.2)  # differ in the last bit
    x = np.stack([rounding, np.full(50, 1e9 / 3), np.arange(50.0)], 1)
    z = scaled(x, mode)
    np.testing.assert_allclose(z[:, :2], 0, atol=1e-6)
    assert z[:, 2].std() > 0.7


def test_a_column_of_mostly_equal_values_is_scaled_by_its_deviation():
    x = np.r_[np.zeros(90), np.ones(10)][:, None]
    np.testing.assert_allclose(scaled(x, "robust").max(), 1 / x.std())


def test_blocks_of_columns_give_the_same_statistics(monkeypatch):
    whole = Scaling.measure(torch.as_tensor(X), "robust")
    monkeypatch.setattr("unweave.data.scaling.MAX_BLOCK_ELEMENTS", 250)
    blocks = Scaling.measure(torch.as_tensor(X), "robust")
    assert torch.equal(whole.shift, blocks.shift) and torch.equal(whole.scale, blocks.scale)


def test_scaling_is_inverted_in_the_precision_of_the_rows():
    scaling = Scaling.measure(torch.as_tensor(X), "standard")
    for dtype in (torch.float32, torch.float64):
        x = torch.as_tensor(X, dtype=dtype)
        assert scaling.apply(x).dtype == scaling.invert(x).dtype == dtype
    torch.testing.assert_close(scaling.invert(scaling.apply(torch.as_tensor(X))), torch.as_tensor(X))


def test_the_log_volume_is_the_jacobian_of_the_scaling():
    scaling = Scaling.measure(torch.as_tensor(X), "standard")
    matrix = torch.autograd.functional.jacobian(lambda row: scaling.apply(row[None])[0], torch.as_tensor(X[0]))
    assert scaling.log_volume() == pytest.approx(-float(torch.linalg.slogdet(matrix).logabsdet))


# Which data are scaled ------------------------------------------------------------------------------------------------


def test_tables_with_named_columns_are_standardized_and_nothing_else(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    FRAME.to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    modes = {name: OwnData(path=tmp_path / name).load().scale for name in ("x.csv", "x.parquet", "x.npy")}
    assert modes == {"x.csv": "standard", "x.parquet": "standard", "x.npy": "none"}
    assert as_data(FRAME).scale == "standard"
    assert as_data(X).scale == as_data(pd.DataFrame(X)).scale == "none"
    assert as_data(X, scale="robust").scale == as_data(as_data(FRAME), scale="robust").scale == "robust"


def test_the_names_of_the_columns_are_kept(tmp_path):
    FRAME.assign(b=1.0, label=["u", "v"] * 100).to_csv(tmp_path / "x.csv", index=False)
    data = OwnData(path=tmp_path / "x.csv", factors=("label",), drop_constant=True).load()
    assert data.feature_names == ("a", "c")
    assert as_data(FRAME).feature_names == ("a", "b", "c")
    assert as_data(X).feature_names == ()


def test_the_scale_is_part_of_the_recipe_where_there_is_one(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    np.save(tmp_path / "x.npy", X)
    table, array = (OwnData(path=tmp_path / name).recipe() for name in ("x.csv", "x.npy"))
    assert table["scale"] == "standard"
    assert "scale" not in array, "the keys of runs on arrays and images stay as they were"
    assert OwnData(path=tmp_path / "x.csv", scale="robust").recipe()["scale"] == "robust"
    assert OwnData(path=tmp_path / "x.csv", scale="standard").recipe() == table


def test_images_are_not_scaled():
    images = np.zeros((4, 1, 3, 3), np.uint8)
    for data in (images, as_data(images)):
        with pytest.raises(InputError, match=r"scale='standard' scales the columns of a table.*\(1, 3, 3\)"):
            as_data(data, scale="standard")
    with pytest.raises(InputError, match="scale='unit': expected 'auto', 'none', 'standard', 'robust'"):
        as_data(X, scale="unit")


def test_columns_of_different_units_that_are_not_scaled_get_a_warning():
    with pytest.warns(UserWarning, match=r"'b' varies [\d,]{6,8} times as much as 'c'.*--data.scale standard"):
        as_data(FRAME, scale="none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_data(FRAME)
        as_data(X)
        as_data(FRAME[["a"]].assign(d=9 * FRAME["a"], e=1.0), scale="none")


# The data that methods learn from -------------------------------------------------------------------------------------


def test_scaled_data_remember_their_scaling_and_are_not_scaled_twice():
    data = as_data(FRAME, np.arange(200) % 2)
    learned = scale_data(data)
    np.testing.assert_allclose(learned.x, scaled(X))
    assert learned.scaling is not None and scale_data(learned) is learned
    assert data.scaling is None and torch.equal(data.x, torch.as_tensor(X))
    assert scale_data(as_data(X)).scaling is None


def test_a_training_set_is_scaled_by_its_own_rows():
    train, test = hold_out(as_data(FRAME), 50)
    learned = scale_data(train)
    x = learned.collect(1_000, generator()).x
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(x.std(0, correction=0), 1, rtol=1e-6)
    assert abs(float(learned.scaling.apply(test.collect(1_000, generator()).x).mean())) > 1e-3


def test_pairs_and_correlated_data_are_scaled_too():
    paired = as_pairs(FRAME, FRAME + 1, np.arange(200) % 2)
    assert paired.scale == "standard"
    plan = pairs(scale_data(paired), 10, generator())
    difference = scale_data(paired).render(plan.views["x2"]) - scale_data(paired).render(plan.views["x"])
    np.testing.assert_allclose(difference[:, 1].abs().numpy(), 1 / np.r_[X, X + 1][:, 1].std(), rtol=1e-6)
    y = pd.DataFrame({"u": np.arange(200) % 2, "v": np.arange(200) // 2 % 2})
    tied = scale_data(correlate(as_data(FRAME, y), ("u", "v"), joint=torch.eye(2)))
    assert abs(float(tied.draw(2_000, generator()).x[:, 1].mean())) < 0.2


def test_any_other_data_can_be_scaled():
    prior = lambda n, rng: torch.rand(n, 2, generator=rng, dtype=torch.float64)  # noqa: E731
    data = Mixing([Factor("u"), Factor("v")], (2,), prior, lambda z: 100 * z + 7)
    learned = scale_data(as_data(data, scale="standard"))
    x, c = learned.draw(5_000, generator())
    np.testing.assert_allclose(x.mean(0), 0, atol=0.05)
    np.testing.assert_allclose(x.std(0), 1, atol=0.05)
    torch.testing.assert_close(x, learned.scaling.apply(100 * c + 7))
