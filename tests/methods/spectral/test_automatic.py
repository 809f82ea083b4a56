"""Automatic choice of dimension and neighborhood size, and disconnected graphs."""

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet, swiss_roll
from unweave import InputError
from unweave.datasets import SquaresXC, SquaresXY
from unweave.methods import HessianICA
from unweave.methods.spectral.automatic import EmbeddingSearch, fewest_dimensions
from unweave.methods.spectral.isometry import ColumnChoice
from unweave.methods.spectral.point_cloud import Embedding, build_cloud
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


# The search, with embeddings whose isometry and confidence are given -------------------------------------------------


class Trials:
    """A search over embeddings that are not computed: isometry and confidence are functions of (d, k)."""

    def __init__(self, isometry, confidence=None, n=240, n_neighbors="auto", dims=5, intrinsic=2):
        rng = np.random.default_rng(0)
        flat = rng.uniform(size=(n, intrinsic)) @ rng.normal(size=(intrinsic, dims))
        cloud = build_cloud(torch.from_numpy(flat), rng, n_neighbors=(6, 48))
        self.embedded = []

        def embed(cloud, d, k):
            self.embedded.append((d, k))
            return Embedding(k, d, np.zeros((n, d)), np.zeros(d), ColumnChoice((0,), isometry(d, k)), {})

        trust = None if confidence is None else lambda cloud, e: confidence(e.d, e.k)
        self.search = EmbeddingSearch(cloud, embed, lambda d: 1 + d + d * (d + 1) // 2, n_neighbors, trust)

    def choose(self, dimensions):
        return self.search._choose_trial(self.search._try_dimensions(dimensions))


def of_dimension(values):
    return lambda d, k: values[d]


@pytest.mark.parametrize(
    ("isometry", "confidence", "chosen"),
    [
        ({1: 0.3, 2: 0.95, 3: 0.955}, None, 2),
        ({1: 0.3, 2: 0.94, 3: 0.955}, None, 3),
        ({1: 0.45, 2: 0.95}, {1: 0.2, 2: 0.9}, 2),
        ({1: 0.45, 2: 0.95}, {1: 0.9, 2: 0.9}, 1),
        ({1: 0.45, 2: 0.95}, {1: 0.86, 2: 0.9}, 1),
        ({1: 0.45, 2: 0.95}, {1: 0.84, 2: 0.9}, 2),
        ({1: 0.4, 2: 0.95}, {1: 0.9, 2: 0.1}, 2),
        ({1: 0.3, 2: 0.89, 3: 0.5}, {1: 0.0, 2: 0.1, 3: 0.9}, 3),
        ({1: 0.3, 2: 0.9, 3: 0.5}, {1: 0.0, 2: 0.1, 3: 0.9}, 2),
    ],
)
def test_confidence_decides_between_dimensions_where_isometry_does_not(isometry, confidence, chosen):
    trials = Trials(of_dimension(isometry), confidence and of_dimension(confidence))
    assert trials.choose(isometry).d == chosen


def test_few_points_do_not_show_confidence():
    for n, chosen in ((199, 2), (200, 1)):
        assert Trials(of_dimension({1: 0.45, 2: 0.95}), lambda d, k: 0.9, n=n).choose((1, 2)).d == chosen


@pytest.mark.parametrize(("isometry", "is_noisy"), [(0.69, True), (0.7, False)])
def test_noise_wants_large_neighborhoods(isometry, is_noisy):
    trials = Trials(lambda d, k: isometry, lambda d, k: 0.9 if k > 30 and d == 2 else 0.5)
    found = trials.choose((2, 3))
    first = trials.search.first_size(2)
    assert (found.d, found.k) == ((2, trials.search.connected_sizes(2)[-1]) if is_noisy else (2, first))
    assert len(trials.embedded) == (4 if is_noisy else 2), "none is computed twice"


def test_sizes_are_a_geometric_grid_between_the_smallest_and_a_quarter_of_the_points():
    sizes = Trials(of_dimension({})).search.connected_sizes(2)
    assert sizes == sorted({round(k) for k in np.geomspace(6, 48, 8)})
    assert Trials(of_dimension({})).search.first_size(2) == 15, "the fourth"
    assert Trials(of_dimension({}), n=80).search.connected_sizes(2)[-1] == 20
    assert Trials(of_dimension({}), n=30).search.connected_sizes(2)[-1] == 12, "twice the smallest at least"
    assert Trials(of_dimension({}), n=9).search.connected_sizes(2)[-1] == 8
    assert Trials(of_dimension({}), n_neighbors=9).search.first_size(2) == 9


@pytest.mark.parametrize("best", range(8))
def test_the_best_size_is_found_on_a_grid_with_one_maximum(best):
    trials = Trials(lambda d, k: 0.95 - 0.01 * abs(sizes.index(k) - best))
    sizes = trials.search.connected_sizes(2)
    found, tried = trials.search.choose_neighbors(trials.search.embedding(2, sizes[3]))
    assert found.k == sizes[best]
    assert tried[str(found.k)] == pytest.approx(found.choice.score) and list(map(int, tried)) == sorted(map(int, tried))
    assert len(tried) <= 6


@pytest.mark.parametrize(
    ("isometry", "confidence", "robust"), [(0.69, 0.9, True), (0.71, 0.9, False), (0.6, 0.69, False), (0.6, 0.72, True)]
)
def test_confidence_chooses_neighborhoods_where_noise_decides_distances(isometry, confidence, robust):
    """Isometry is highest in the smallest neighborhood, confidence in the largest."""
    trials = Trials(lambda d, k: isometry - 0.0001 * (k - 6), lambda d, k: confidence + 0.0001 * (k - 48))
    found, _ = trials.search.choose_neighbors(trials.search.embedding(2, 15))
    assert found.k == (48 if robust else 6)


def test_a_given_size_is_not_searched():
    trials = Trials(lambda d, k: 0.5, n_neighbors=9)
    first = trials.search.embedding(2, 9)
    assert trials.search.choose_neighbors(first) == (first, {}) and trials.embedded == [(2, 9)]


def test_dimensions_near_the_estimates_are_tried_and_the_usual_ones_where_these_fail():
    good = Trials(lambda d, k: 0.95 if d == 2 else 0.3)
    found = good.search.choose_dimension("auto")
    assert found.d == 2 and {d for d, _ in good.embedded} == {1, 2}
    votes = dict(found.votes)
    assert votes["gap"] == 2 and abs(votes["likelihood"] - 2) < 0.5 and votes["isometry in 2 dimensions"] == 0.95
    assert votes["lowest"] <= 2 <= votes["highest"] <= 3
    poor = Trials(lambda d, k: 0.5 + 0.1 * d)
    found = poor.search.choose_dimension("auto")
    assert {d for d, _ in poor.embedded} == {1, 2, 3, 4} and found.d == 4
    few = Trials(lambda d, k: 0.5 + 0.1 * d, n=25)
    few.search.choose_dimension("auto")
    assert {d for d, _ in few.embedded} == {1, 2, 3}, "twice the ten neighbors of three dimensions"
    assert Trials(lambda d, k: 0.5, n=120, n_neighbors=12).search.choose_dimension(3).d == 3
    flat = Trials(lambda d, k: 0.5, dims=2)
    flat.search.choose_dimension("auto")
    assert {d for d, _ in flat.embedded} == {1, 2}, "no more than features"


def test_a_curve_has_one_dimension_at_least_and_a_connected_graph():
    t = np.random.default_rng(0).uniform(0, 2, 300)
    method = HessianICA().fit(np.stack([np.cos(t), np.sin(t), t], 1))
    assert method.latent_dim_ == method.dimension_["lowest"] == 1
    assert f"The neighbor graph of {method.n_neighbors_} neighbors is connected." in method.diagnosis_
