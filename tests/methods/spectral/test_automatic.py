"""Automatic choice of dimension and neighborhood size, and disconnected graphs."""

import numpy as np
import pytest

from tests.helpers import flat_sheet, swiss_roll
from unweave import InputError
from unweave.datasets import SquaresXC, SquaresXY
from unweave.methods import HessianICA
from unweave.methods.spectral.automatic import fewest_dimensions
from unweave.metrics import mcc


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_all_settings_of_a_swiss_roll_are_chosen_well(noise):
    x, z = swiss_roll(3000, noise=noise)
    method = HessianICA().fit(x)
    assert method.latent_dim_ == 2
    assert mcc(z, method.transform(x)) > 0.999
    assert method.isometry_ > 0.99
    assert any("2 dimensions (sure" in text for text in method.diagnosis_)


@pytest.mark.parametrize("d", [3, 4])
def test_three_and_four_dimensions_are_recovered(d):
    x, z = flat_sheet(2500, d, width=30)
    method = HessianICA().fit(x)
    assert method.latent_dim_ == d
    assert mcc(z, method.transform(x)) > 0.99


def clumps():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(size=(250, 3)), 100 + rng.uniform(size=(80, 3))])


def test_components_are_an_error_or_the_largest_is_used():
    x = clumps()
    with pytest.raises(InputError, match=r"falls into 2 parts \(sizes 250, 80\).*on_disconnected='largest'"):
        HessianICA(latent_dim=2, n_neighbors=10).fit(x)
    method = HessianICA(latent_dim=2, n_neighbors=10, on_disconnected="largest").fit(x)
    assert len(method.points_) == 250
    assert method.transform(x).shape == (330, 2)


def test_a_far_clump_does_not_decide_the_neighborhood_size():
    x, z = swiss_roll(2000)
    far = np.vstack([x, 0.1 * x[:30] + [300, 0, 0]])
    method = HessianICA(latent_dim=2, on_disconnected="largest").fit(far)
    assert mcc(z, method.transform(x)) > 0.999
    assert any("30 of 2,030 points are in other parts" in text for text in method.diagnosis_)
    with pytest.warns(UserWarning, match="the second has 30 points.*on_disconnected='largest'"):
        HessianICA(latent_dim=2).fit(far)


def test_a_disconnected_graph_is_an_error_with_the_sizes_of_its_components():
    x = np.random.default_rng(0).uniform(size=(300, 3))
    x[200:] += 100
    with pytest.raises(InputError, match=r"2 parts \(sizes 200, 100\)"):
        HessianICA(n_neighbors=10).fit(x)
    with pytest.raises(InputError, match=r"n_neighbors=48 falls into 2 parts"):
        HessianICA().fit(x)


def test_neighbors_are_checked_against_dimension_and_samples():
    x = np.random.default_rng(0).uniform(size=(30, 5))
    with pytest.raises(InputError, match="n_neighbors=9 is too few for latent_dim=3: a neighborhood needs at least 10"):
        HessianICA(latent_dim=3, n_neighbors=9).fit(x)
    with pytest.raises(InputError, match="n_samples=30 is too few for n_neighbors=30"):
        HessianICA(n_neighbors=30).fit(x)
    with pytest.raises(InputError, match="n_samples=8 is too few for n_neighbors=10"):
        HessianICA(latent_dim=3).fit(x[:8])


def test_the_search_is_recorded_for_the_chosen_blur_and_reset_by_a_refit():
    data = SquaresXY(points=500, size=32, side=10, blur=3.0).load()
    method = HessianICA().fit(data)
    assert method.dimension_ == HessianICA(smooth=method.smooth_).fit(data).dimension_
    assert method.searched_
    method.set_params(latent_dim=2, n_neighbors=10).fit(data)
    assert method.dimension_ == {}
    assert method.searched_ == {}


def test_of_almost_equal_scores_fewer_dimensions_win():
    assert fewest_dimensions({2: 0.98, 3: 0.985, 4: 0.8}, 0.01) == 2
    assert fewest_dimensions({2: 0.95, 3: 1.0}, 0.01) == 3
    assert fewest_dimensions({2: 0.95, 3: 1.0}, 0.06) == 2


def noisy_strip(noise, n=700):
    """A strip whose width is three to fifteen deviations of noise in 30 dimensions."""
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(n, 2)) * [6, 1]
    return np.pad(z, ((0, 0), (0, 28))) + noise * rng.normal(size=(n, 30)), z


def test_large_neighborhoods_are_chosen_where_noise_decides_near_distances():
    """Isometry of points prefers small ones there, which lose a factor; confidence in the codes does not."""
    x, z = noisy_strip(0.08)
    method = HessianICA(latent_dim=2, loops="never").fit(x)
    isometry = method.searched_
    assert method.n_neighbors_ > 20 and mcc(z, method.codes_) > 0.95
    assert max(isometry.values()) < 0.7 < method.averaged_isometry_
    small = HessianICA(latent_dim=2, loops="never", n_neighbors=11).fit(x)
    assert mcc(z, small.codes_) < 0.8


def test_a_hard_edged_image_manifold_has_as_many_codes_as_factors():
    """Edges fill more dimensions than the factors, and isometry alone would take four."""
    data = SquaresXC(points=400, size=32, side=10).load()
    method = HessianICA(smooth=0.0).fit(data)
    assert method.latent_dim_ == 2 and method.straightened_
    isometry = {d: method.dimension_[f"isometry in {d} dimensions"] for d in (2, 3, 4)}
    assert isometry[2] < isometry[3] and mcc(data.sources, method.codes_) > 0.95


def test_the_dimension_of_a_noisy_strip():
    x, z = noisy_strip(0.04, n=500)
    method = HessianICA(loops="never").fit(x)
    assert method.latent_dim_ == 2 and mcc(z, method.codes_) > 0.98
    assert "because of noise or of a small factor: compare latent_dim=" in method.diagnosis_[0]
    assert method.dimension_["lowest"] <= 2 < method.dimension_["highest"]
