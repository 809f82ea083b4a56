"""The parts of spectral embedding against exact answers, and the methods built on them."""

import warnings

import numpy as np
import pytest
import torch
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import csc_matrix
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import LocallyLinearEmbedding

from tests.methods.test_recovery import swiss_roll
from unweave import Factor, InputError, Mixing
from unweave.datasets import FlatSheet, SquaresXY
from unweave.methods import HessianICA, LaplacianICA, TangentICA
from unweave.methods.spectral.dimension import gap_dimension, likelihood_dimension
from unweave.methods.spectral.eigensolver import smallest_eigenvectors
from unweave.methods.spectral.hessian import hessian_operator
from unweave.methods.spectral.isometry import closest_pairs, select_columns
from unweave.methods.spectral.landmarks import average_landmarks
from unweave.methods.spectral.neighbors import (
    _find_by_all_distances,
    _move_self_first,
    find_neighbors,
    label_components,
)
from unweave.methods.spectral.out_of_sample import AffineMaps
from unweave.methods.spectral.point_cloud import build_cloud
from unweave.methods.spectral.preprocessing import blur_images, fit_projection, principal_directions, unique_rows
from unweave.methods.spectral.tangent import tangent_operator
from unweave.methods.spectral.tangent_space import (
    gram_matrices,
    gram_schmidt,
    leading_singular_vectors,
    tangent_coordinates,
)
from unweave.metrics import mcc


def flat(n, d, seed=0, width=20):
    """Each factor along one turn of a helix of its own: flat, but not a plane."""
    data = FlatSheet(dimensions=d, points=n, seed=seed, width=max(width, 3 * d)).load()
    return data.render(data.sources).numpy(), data.sources.numpy().astype(float)


# Neighbors -----------------------------------------------------------------------------------------------------


def test_neighbors_are_the_nearest_with_the_point_itself_first():
    x = np.random.default_rng(0).normal(size=(400, 3))
    near = find_neighbors(x, 7)
    assert near.shape == (400, 8)
    assert (near[:, 0] == np.arange(400)).all()
    exact = np.argsort(cdist(x, x), 1)[:, 1:8]
    shared = [len(set(a) & set(b)) for a, b in zip(near[:, 1:], exact, strict=True)]
    assert min(shared) == 7


def test_a_point_that_coincides_with_others_is_still_its_own_first_neighbor():
    x = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 5, 0)
    near = find_neighbors(x, 6)
    assert (near[:, 0] == np.arange(100)).all()
    assert all(len(set(row)) == 7 for row in near)


def test_neighbors_of_many_points_are_found_in_another_order_and_are_the_same(monkeypatch):
    x = np.random.default_rng(0).normal(size=(500, 3))
    before = find_neighbors(x, 5)
    monkeypatch.setattr("unweave.methods.spectral.neighbors.LARGE", 100)
    shared = [len(set(a) & set(b)) for a, b in zip(find_neighbors(x, 5), before, strict=True)]
    assert np.mean(shared) > 5.9, "a little slack is allowed in the search among many"
    monkeypatch.setattr("unweave.methods.spectral.neighbors.SLACK", 0.0)
    assert np.array_equal(find_neighbors(x, 5), before)


def test_parts_are_numbered_from_the_largest_on():
    x = np.concatenate(
        [np.random.default_rng(0).uniform(size=(30, 2)), 50 + np.random.default_rng(1).uniform(size=(70, 2))]
    )
    member = label_components(find_neighbors(x, 5))
    assert (member[:30] == 1).all()
    assert (member[30:] == 0).all()


# Local bases and operators --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d"), [(8, 2), (20, 3), (40, 5)])
def test_local_directions_are_those_of_a_singular_value_decomposition(k, d):
    x, _ = flat(500, d)
    cloud = torch.from_numpy(x)[torch.from_numpy(find_neighbors(x, k))[:, 1:]]
    ours = leading_singular_vectors((cloud - cloud[:, :1]) @ (cloud - cloud[:, :1]).mT, d)
    exact = torch.linalg.svd(cloud - cloud.mean(1, keepdim=True), full_matrices=False)[0][:, :, :d]
    cosines = torch.linalg.svdvals(ours.mT @ exact)[:, -1]
    assert cosines.quantile(0.02) > 0.999
    assert torch.allclose(ours.mT @ ours, torch.eye(d, dtype=ours.dtype).expand(500, d, d), atol=1e-5)


def test_gram_matrices_of_fewer_neighbors_are_corners():
    x, _ = flat(300, 2)
    points, near = torch.from_numpy(x), find_neighbors(x, 20)[:, 1:]
    few = tangent_coordinates(gram_matrices(points, near[:, :9]), 9, 2)
    corners = tangent_coordinates(gram_matrices(points, near), 9, 2)
    assert torch.allclose((few @ few.mT), (corners @ corners.mT), atol=1e-4)


@pytest.mark.parametrize("operator", [hessian_operator, tangent_operator])
def test_constants_and_coordinates_are_in_the_null_space_and_bends_are_not(operator):
    z = np.random.default_rng(0).uniform(size=(400, 2))
    near = find_neighbors(z, 12)[:, 1:]
    M = operator(tangent_coordinates(gram_matrices(torch.from_numpy(z), near), 12, 2), near)

    def energy(f):
        return f @ (M @ f) / (f @ f)

    assert energy(np.ones(400)) < 1e-14
    for f in (z[:, 0], z[:, 1], 3 * z[:, 0] - z[:, 1] + 2):
        assert energy(f) < 1e-8
    for f in (z[:, 0] ** 2, z[:, 0] * z[:, 1], np.sin(6 * z[:, 1])):
        assert energy(f - f.mean()) > 1e-6


def test_the_hessian_operator_is_scikit_learns():
    """Same points, same neighbors: the same space."""
    x, _ = flat(900, 2)
    near = find_neighbors(x, 12)[:, 1:]
    M = hessian_operator(tangent_coordinates(gram_matrices(torch.from_numpy(x), near), 12, 2), near)
    ours = smallest_eigenvectors(M, 2, n_converged=2)[1]
    lle = LocallyLinearEmbedding(n_components=2, n_neighbors=12, method="hessian", eigen_solver="dense", random_state=0)
    assert np.rad2deg(subspace_angles(ours, lle.fit_transform(x))).max() < 1


# Eigenvectors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "k", "direct"), [(300, 2, 10, True), (1500, 2, 10, True), (1500, 3, 18, True), (1200, 4, 25, False)]
)
def test_the_null_space_is_the_exact_one(n, d, k, direct):
    x, _ = flat(n, d)
    near = find_neighbors(x, k)[:, 1:]
    M = hessian_operator(tangent_coordinates(gram_matrices(torch.from_numpy(x), near), k, d), near)
    values, vectors = smallest_eigenvectors(M, d + 2, n_converged=d, direct=direct)
    exact_values, exact = eigh(M.toarray(), subset_by_index=(0, d))
    assert np.rad2deg(subspace_angles(vectors[:, :d], exact)).max() < 1
    np.testing.assert_allclose(values[:d], exact_values[1:], rtol=1e-3, atol=1e-12)
    assert np.abs(vectors[:, :d].sum(0)).max() < 1e-8, "the constant is projected out, not dropped by its place"


def test_an_exactly_singular_matrix_has_a_null_space_too():
    z = np.random.default_rng(0).uniform(size=(900, 2))
    near = find_neighbors(z, 10)[:, 1:]
    M = hessian_operator(tangent_coordinates(gram_matrices(torch.from_numpy(z), near), 10, 2), near)
    vectors = smallest_eigenvectors(M, 2, n_converged=2)[1]
    assert (
        np.rad2deg(subspace_angles(np.column_stack([vectors, np.ones(900)]), np.column_stack([z, np.ones(900)]))).max()
        < 0.1
    )


def test_a_trivial_vector_of_ones_own_is_projected_out():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(600, 600)))[0]
    values = np.concatenate([[0, 1e-6, 2e-6], np.linspace(0.1, 1, 597)])
    M = csc_matrix((Q * values) @ Q.T)
    found, vectors = smallest_eigenvectors(M, 2, trivial=Q[:, 0], n_converged=2)
    np.testing.assert_allclose(found, [1e-6, 2e-6], rtol=1e-4)
    assert np.rad2deg(subspace_angles(vectors, Q[:, 1:3])).max() < 0.1


# Isometry and dimension -----------------------------------------------------------------------------------------


def test_of_several_columns_the_independent_ones_are_taken():
    """One factor, its square, and then the other: the first two keep no distances."""
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2)) * [5, 1]
    pairs = closest_pairs(z, 0.02)
    y = np.column_stack([z[:, 0], z[:, 0] ** 2, z[:, 1], z[:, 0] ** 3])
    assert select_columns(y, 2, pairs).columns == (0, 2)
    mixed = np.column_stack([z @ [1, 1], z @ [1, -2], z[:, 0] ** 2])
    choice = select_columns(mixed, 2, pairs)
    assert choice.columns == (0, 1), "up to a linear map the first two are the factors"
    assert choice.score > 0.999


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_dimensions_are_counted(d):
    x, _ = flat(2500, d)
    near = find_neighbors(x, 20)
    assert likelihood_dimension(x, near) == pytest.approx(d, abs=0.45)


def test_the_gap_sees_the_dimension_through_noise():
    x = swiss_roll(2000)[0] @ np.linalg.qr(np.random.default_rng(0).normal(size=(10, 3)))[0].T
    x = x + 0.05 * np.random.default_rng(1).normal(size=x.shape)
    near = find_neighbors(x, 30)
    assert gap_dimension(torch.from_numpy(x), near, 6) == 2


# Views ----------------------------------------------------------------------------------------------------------


def test_a_folded_blur_is_a_blur():
    """Projecting the blurred image and projecting with blurred directions are the same."""
    x = torch.rand(60, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    view = fit_projection(x.flatten(1), 5, 1.5, (1, 12, 12), torch.Generator().manual_seed(0))
    blurred = blur_images(x.flatten(1), 1.5, (1, 12, 12)).double()
    mean, directions = principal_directions(blurred, 5, torch.Generator().manual_seed(0))
    expected = (blurred - mean) @ directions.T
    assert torch.allclose(view(x), expected, atol=1e-4)
    assert torch.allclose(view(x.double()), expected, atol=1e-5)


def test_random_projections_find_the_main_directions():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(700, 900)) / np.arange(1, 901) + 3)
    mean, directions = principal_directions(x, 8, torch.Generator().manual_seed(0))
    spread = np.linalg.svd((x - x.mean(0)).numpy(), full_matrices=False)[1][:8]
    assert torch.allclose(mean, x.mean(0))
    caught = ((x - mean) @ directions.T).norm(dim=0).numpy()
    assert (caught**2).sum() > 0.99 * (spread**2).sum()
    assert torch.allclose(directions @ directions.T, torch.eye(8, dtype=torch.float64), atol=1e-6)


def test_repeats_are_found_by_their_bits():
    x = torch.tensor([[1.0, 2], [0, 0], [1, 2], [2, 1], [0, 0]])
    assert unique_rows(x).tolist() == [0, 1, 3]
    assert unique_rows(x.double()).tolist() == [0, 1, 3]
    signs = torch.from_numpy(np.random.default_rng(0).choice([-1.0, 1.0], (500, 64)))
    assert len(unique_rows(signs)) == 500, "signs and small numbers differ in few bits"
    assert len(unique_rows(torch.cat([signs, signs[:7]]))) == 500


# Landmarks and maps ---------------------------------------------------------------------------------------------


def test_landmarks_are_averages_and_less_noisy_than_any_point():
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(20_000, 1))
    x = np.hstack([z, 0.1 * rng.normal(size=(20_000, 3))])
    places = average_landmarks(x, 8, rng)
    assert places[:, 1:].std() < 0.06 < x[:, 1:].std()
    assert np.ptp(places[:, 0]) > 0.7


@pytest.mark.parametrize("d", [2, 4])
def test_maps_are_exact_for_affine_codes(d):
    x, z = flat(1500, d)
    plane = z @ np.random.default_rng(1).normal(size=(d, 9))
    codes = z @ np.random.default_rng(2).normal(size=(d, d)) + 3
    atlas = AffineMaps(torch.from_numpy(plane[:1200]), torch.from_numpy(codes[:1200]), 12)
    assert np.abs(atlas(torch.from_numpy(plane[1200:])).numpy() - codes[1200:]).max() < 1e-3
    bent = AffineMaps(torch.from_numpy(x[:1200]), torch.from_numpy(codes[:1200]), 12)(
        torch.from_numpy(x[1200:])
    ).numpy()
    assert np.corrcoef(bent[:, 0], codes[1200:, 0])[0, 1] > 0.99


# The methods ----------------------------------------------------------------------------------------------------


def roll(n, noise=0.0):
    x, z = swiss_roll(n)
    return x + noise * np.random.default_rng(7).normal(size=x.shape), z


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_swiss_roll_is_unrolled_with_everything_left_to_the_method(noise):
    x, z = roll(3000, noise)
    method = HessianICA().fit(x)
    assert method.latent_dim_ == 2
    assert mcc(z, method.transform(x)) > 0.999
    assert method.isometry_ > 0.99
    assert any("2 dimensions (sure" in said for said in method.diagnosis_)


@pytest.mark.parametrize("d", [3, 4])
def test_flat_manifolds_of_more_dimensions(d):
    x, z = flat(2500, d, width=30)
    method = HessianICA().fit(x)
    assert method.latent_dim_ == d
    assert mcc(z, method.transform(x)) > 0.99


@pytest.mark.parametrize("method", [HessianICA, TangentICA])
def test_new_points_are_placed_as_well_as_old_ones(method):
    x, z = flat(2600, 2)
    found = method(latent_dim=2).fit(x[:2000])
    old, new = (mcc(z[rows], found.transform(x[rows])) for rows in (slice(2000), slice(2000, None)))
    assert new > old - 0.005
    assert old > 0.998


def test_landmarks_give_what_all_points_give_and_say_so():
    x, z = flat(8000, 2)
    few, every = (
        HessianICA(latent_dim=2, n_neighbors=12, landmarks=1000),
        HessianICA(latent_dim=2, n_neighbors=12, landmarks=0),
    )
    codes = few.fit_transform(x)
    assert len(few.points_) == 1000
    assert len(every.fit(x).points_) == 8000
    assert mcc(z, codes) > 0.995
    assert any("1,000 landmarks stand for 8,000" in said for said in few.diagnosis_)


def test_a_point_that_is_nobodys_neighbor_is_held_by_its_own_neighborhood():
    """Else nothing holds its code, it is a null vector by itself, and looks like a factor."""
    x, _ = flat(700, 2)
    far = torch.from_numpy(np.vstack([x, x.mean(0) + 0.6 * np.eye(20)[:3]]))
    method = HessianICA(latent_dim=2, n_neighbors=10)
    cloud = build_cloud(far, np.random.default_rng(0), n_neighbors=(10, 10))
    held = [np.bincount(near.ravel(), minlength=703) for near in (cloud.neighbors[:, 1:11], cloud.members(10))]
    assert (held[0] == 0).sum() == 3
    assert held[1].min() > 0
    assert method.operator(cloud, 10, 2)[0].diagonal().min() > 1e-6
    assert hessian_operator(tangent_coordinates(cloud.grams, 10, 2), cloud.neighbors[:, 1:11]).diagonal().min() == 0


def test_averaged_landmarks_turn_more_data_into_less_noise():
    """Noise as large as the spacing of points: solved for all of them, one factor is lost."""
    x, z = swiss_roll(20_000)
    x = x @ np.linalg.qr(np.random.default_rng(0).normal(size=(20, 3)))[0].T
    x = x + 0.4 * np.random.default_rng(1).normal(size=x.shape)
    averaged = HessianICA(latent_dim=2).fit(x)
    assert mcc(z, averaged.transform(x)) > 0.997
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        everything = HessianICA(latent_dim=2, n_neighbors=12, landmarks=0).fit(x)
    assert mcc(z, everything.transform(x)) < 0.9


def test_laplacian_ica_finds_a_function_of_each_factor_if_their_ranges_are_alike():
    z = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    assert mcc(z, LaplacianICA(latent_dim=2, n_neighbors=12).fit(z).transform(z), correlation="spearman") > 0.95
    long = z * [6, 1]
    assert mcc(long, LaplacianICA(latent_dim=2, n_neighbors=12).fit(long).transform(long)) < 0.8, (
        "sensitive to rescaling"
    )
    assert mcc(long, HessianICA(latent_dim=2, n_neighbors=12).fit(long).transform(long)) > 0.99


def test_images_as_bytes_and_as_floats_give_the_same_codes():
    data = SquaresXY(points=500, size=32, side=10).load()
    floats = data.render(data.sources).numpy()
    bytes_ = (255 * floats).round().astype(np.uint8)
    one, other = (HessianICA(latent_dim=2, smooth=1.0).fit(x).transform(x) for x in (bytes_, bytes_ / np.float32(255)))
    assert one.dtype == np.float32
    np.testing.assert_allclose(one, other, atol=1e-3)


# Bad input ------------------------------------------------------------------------------------------------------


def clumps():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(size=(250, 3)), 100 + rng.uniform(size=(80, 3))])


def test_parts_are_named_or_the_largest_is_taken():
    x = clumps()
    with pytest.raises(InputError, match=r"falls into 2 parts \(sizes 250, 80\).*on_disconnected='largest'"):
        HessianICA(latent_dim=2, n_neighbors=10).fit(x)
    method = HessianICA(latent_dim=2, n_neighbors=10, on_disconnected="largest").fit(x)
    assert len(method.points_) == 250
    assert method.transform(x).shape == (330, 2)


def test_a_far_clump_does_not_decide_for_all_the_others():
    x, z = swiss_roll(2000)
    far = np.vstack([x, 0.1 * x[:30] + [300, 0, 0]])
    method = HessianICA(latent_dim=2, on_disconnected="largest").fit(far)
    assert mcc(z, method.transform(x)) > 0.999
    assert any("30 of 2,030 points are in other parts" in said for said in method.diagnosis_)
    with pytest.warns(UserWarning, match="the second has 30 points.*on_disconnected='largest'"):
        HessianICA(latent_dim=2).fit(far)


def test_scales_and_repeats_do_not_matter():
    x, z = flat(900, 2)
    for scale in (1e-25, 1e19):
        assert mcc(z, HessianICA(latent_dim=2, n_neighbors=12).fit(scale * x).transform(scale * x)) > 0.99
    many = np.repeat(x[:300], 20, 0)
    method = HessianICA(latent_dim=2, n_neighbors=12).fit(many)
    assert len(method.points_) == 300
    assert any("5,700 observations repeat others" in said for said in method.diagnosis_)
    assert not any("landmarks" in said for said in method.diagnosis_)


def test_what_is_rendered_wrongly_is_named():
    data = Mixing(
        [Factor("a", None, "real")],
        (4,),
        lambda n, g: torch.rand(n, 1, generator=g),
        lambda c: c.expand(-1, 4) / 0,
        points=300,
    )
    with pytest.raises(InputError, match="observation 0 contains NaN or infinity"):
        HessianICA(latent_dim=1).fit(data)


def test_votes_are_those_of_the_blur_that_was_taken_and_do_not_outlive_a_fit():
    data = SquaresXY(points=500, size=32, side=10, blur=3.0).load()
    method = HessianICA().fit(data)
    assert method.dimension_ == HessianICA(smooth=method.smooth_).fit(data).dimension_
    assert method.searched_
    method.set_params(latent_dim=2, n_neighbors=10).fit(data)
    assert method.dimension_ == {}
    assert method.searched_ == {}


def test_one_gaussian_factor_among_others_is_no_trouble():
    rng = np.random.default_rng(0)
    z = np.column_stack([rng.normal(size=1500), rng.uniform(-2, 2, 1500)])
    method = HessianICA(latent_dim=2, n_neighbors=14).fit(z)
    assert not any("Gaussian" in said for said in method.diagnosis_)
    assert mcc(z, method.codes_) > 0.97


def test_few_points_are_said_to_be_few():
    method = HessianICA(latent_dim=1, n_neighbors=6).fit(np.linspace(0, 1, 20)[:, None] ** [[1, 1.0]])
    assert any("20 points are too few to judge" in said for said in method.diagnosis_)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"samples": 0}, "samples=0"),
        ({"latent_dim": 9}, "latent_dim=9 is more than the data allow: n_features=4"),
        ({"latent_dim": 2, "n_neighbors": 5}, "at least 6"),
        ({"smooth": -1.0}, "smooth=-1"),
        ({"smooth": 1.0}, "rows of numbers"),
        ({"landmarks": -5}, "landmarks=-5"),
        ({"landmarks": "few"}, "landmarks='few'"),
        ({"on_disconnected": "ignore"}, "on_disconnected='ignore'"),
    ],
)
def test_settings_that_cannot_work_are_named(settings, text):
    with pytest.raises(InputError, match=text):
        HessianICA(**settings).fit(np.random.default_rng(0).uniform(size=(200, 4)))


def test_too_few_points_and_nothing_but_repeats():
    with pytest.raises(InputError, match="n_samples=5 is too few"):
        HessianICA(latent_dim=2).fit(np.random.default_rng(0).uniform(size=(5, 4)))
    with pytest.raises(InputError, match="constant"):
        HessianICA(latent_dim=2).fit(np.ones((50, 4)))
    with pytest.raises(InputError, match="NaN"):
        HessianICA(latent_dim=2).fit(np.full((50, 4), np.nan))


def test_constant_columns_are_no_hindrance():
    x, z = flat(800, 2)
    padded = np.column_stack([x, np.full(800, 5.0)])
    assert mcc(z, HessianICA(latent_dim=2, n_neighbors=12).fit_transform(padded)) > 0.99


def test_gaussian_factors_are_warned_of_with_numbers():
    z = np.random.default_rng(0).normal(size=(1500, 2))
    with pytest.warns(ConvergenceWarning, match=r"excess kurtosis .* \(0 is Gaussian\)"):
        method = HessianICA(latent_dim=2, n_neighbors=14).fit(z)
    assert any("close to Gaussian" in said and "ICA cannot fix its rotation" in said for said in method.diagnosis_)


def test_data_that_are_not_isometric_to_so_few_factors_are_said_to_be_so():
    x = np.random.default_rng(0).uniform(size=(600, 8))
    method = HessianICA(latent_dim=2, n_neighbors=20).fit(x)
    assert method.isometry_ < 0.7
    assert any("does not keep near distances" in said for said in method.diagnosis_)


def test_a_coarse_grid_is_said_to_be_one():
    z = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    on_grid = HessianICA(latent_dim=2, n_neighbors=12).fit(z + 1e-9 * np.random.default_rng(0).normal(size=z.shape))
    assert any("coarse grid" in said for said in on_grid.diagnosis_)
    spread = HessianICA(latent_dim=2, n_neighbors=12).fit(np.random.default_rng(0).uniform(size=(400, 2)))
    assert not any("coarse grid" in said for said in spread.diagnosis_)


# What a GPU does instead -----------------------------------------------------------------------------------------


def test_neighbors_by_all_distances_are_those_of_the_tree():
    points = np.random.default_rng(0).normal(size=(500, 3))
    points[7] = points[3]  # a repeat
    found = _move_self_first(_find_by_all_distances(torch.from_numpy(points), 9).numpy())
    expected = find_neighbors(points, 8)
    far = [np.linalg.norm(points[near] - points[:, None], axis=2) for near in (found, expected)]
    np.testing.assert_allclose(*far, atol=1e-7)
    assert (found[:, 0] == np.arange(500)).all()


def test_projections_give_the_basis_of_householder_up_to_signs():
    rng = torch.Generator().manual_seed(0)
    A = torch.randn(50, 12, 6, generator=rng, dtype=torch.float64)
    A[3, :, 4] = A[3, :, 0] + 1e-9 * A[3, :, 4]  # nearly dependent
    kept = A.clone()
    Q, expected = gram_schmidt(A), torch.linalg.qr(A)[0]
    assert torch.equal(A, kept)
    eye = torch.eye(6, dtype=torch.float64).expand(50, 6, 6)
    torch.testing.assert_close(Q.mT @ Q, eye, atol=1e-12, rtol=0)
    torch.testing.assert_close((Q * expected).sum(1).abs(), torch.ones(50, 6, dtype=torch.float64), atol=1e-9, rtol=0)


def test_projections_complete_a_basis_where_columns_repeat_or_vanish():
    A = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0))
    A[0, :, 2], A[0, :, 3], A[1] = A[0, :, 1], 0.0, 0.0
    Q = gram_schmidt(A)
    torch.testing.assert_close(Q.mT @ Q, torch.eye(4).expand(2, 4, 4), atol=1e-6, rtol=0)
    torch.testing.assert_close(Q[0, :, :2] @ Q[0, :, :2].mT @ A[0, :, :2], A[0, :, :2])


def test_the_operators_do_not_depend_on_which_way_a_basis_was_found(monkeypatch):
    data = SquaresXY(points=300, size=16, side=6).load()
    usual = HessianICA(latent_dim=2, n_neighbors=12).fit(data)
    monkeypatch.setattr("unweave.methods.spectral.tangent_space.orthonormalize", gram_schmidt)
    other = HessianICA(latent_dim=2, n_neighbors=12).fit(data)
    assert mcc(usual.codes_, other.codes_) > 1 - 1e-6
