"""Blur, projection and removal of repeats."""

import numpy as np
import pytest
import torch

from unweave import Factor, InputError, Mixing
from unweave.data.conversion import as_data
from unweave.datasets import SquaresXY
from unweave.methods import HessianICA
from unweave.methods.spectral import preprocessing
from unweave.methods.spectral.preprocessing import (
    blur_images,
    fit_projection,
    principal_directions,
    project_data,
    unique_rows,
)


def test_projecting_with_blurred_directions_equals_blurring_first():
    """Projecting the blurred image and projecting with blurred directions are the same."""
    x = torch.rand(60, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    view = fit_projection(x.flatten(1), 5, 1.5, (1, 12, 12), torch.Generator().manual_seed(0))
    blurred = blur_images(x.flatten(1), 1.5, (1, 12, 12)).double()
    mean, directions = principal_directions(blurred, 5, torch.Generator().manual_seed(0))
    expected = (blurred - mean) @ directions.T
    assert torch.allclose(view(x), expected, atol=1e-4)
    assert torch.allclose(view(x.double()), expected, atol=1e-5)


def test_randomized_pca_finds_the_principal_directions():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(520, 600)) / np.arange(1, 601) + 3)
    mean, directions = principal_directions(x, 8, torch.Generator().manual_seed(0))
    spread = np.linalg.svd((x - x.mean(0)).numpy(), full_matrices=False)[1][:8]
    assert torch.allclose(mean, x.mean(0))
    caught = ((x - mean) @ directions.T).norm(dim=0).numpy()
    assert (caught**2).sum() > 0.99 * (spread**2).sum()
    assert torch.allclose(directions @ directions.T, torch.eye(8, dtype=torch.float64), atol=1e-6)


def test_repeated_rows_are_removed():
    x = torch.tensor([[1.0, 2], [0, 0], [1, 2], [2, 1], [0, 0]])
    assert unique_rows(x).tolist() == [0, 1, 3]
    assert unique_rows(x.double()).tolist() == [0, 1, 3]
    signs = torch.from_numpy(np.random.default_rng(0).choice([-1.0, 1.0], (500, 64)))
    assert len(unique_rows(signs)) == 500, "signs and small numbers differ in few bits"
    assert len(unique_rows(torch.cat([signs, signs[:7]]))) == 500


def test_an_observation_that_is_not_finite_is_named():
    data = Mixing(
        [Factor("a", None, "real")],
        (4,),
        lambda n, g: torch.rand(n, 1, generator=g),
        lambda c: c.expand(-1, 4) / 0,
        points=300,
    )
    with pytest.raises(InputError, match="observation 0 contains NaN or infinity"):
        HessianICA(latent_dim=1).fit(data)


def test_images_as_bytes_and_as_floats_give_the_same_codes():
    data = SquaresXY(points=500, size=32, side=10).load()
    floats = data.render(data.sources).numpy()
    bytes_ = (255 * floats).round().astype(np.uint8)
    one, other = (HessianICA(latent_dim=2, smooth=1.0).fit(x).transform(x) for x in (bytes_, bytes_ / np.float32(255)))
    assert one.dtype == np.float32
    np.testing.assert_allclose(one, other, atol=1e-3)


def project(x, **settings):
    data = as_data(x)
    indices = data.points_or_sample(len(x), torch.Generator(), limit=len(x))
    settings = {"max_components": 0, "latent_dim": 0, "seed": 0} | settings
    return project_data(data, indices, 0.0, rng=np.random.default_rng(0), **settings)


def test_points_are_projected_to_a_largest_number_of_one():
    x = np.random.default_rng(0).normal(size=(80, 4)) * [9, 5, 3, 1] + 7
    projection, points = project(x)
    assert points.shape == (80, 4) and points.abs().max() == pytest.approx(1)
    np.testing.assert_allclose(projection(torch.from_numpy(x)), points, atol=1e-12)
    distance = np.linalg.norm(x[0] - x[1]) / np.linalg.norm((points[0] - points[1]).numpy())
    np.testing.assert_allclose(np.linalg.norm(x[2] - x[3]), distance * (points[2] - points[3]).norm())
    assert project(x, max_components=2)[1].shape == (80, 2) and project(x[:3], max_components=0)[1].shape == (3, 2)
    assert project(np.repeat(x, 2, 0))[1].shape == (80, 4)
    with pytest.raises(InputError, match=r"latent_dim=3 is more than the data allow: .* combinations of 2; lower it"):
        project(x[:, :2] @ np.ones((2, 4)) + x[:, :1] * [1, 0, 0, 0], latent_dim=3)
    with pytest.raises(InputError, match="constant"):
        project(np.ones((9, 3)))


def test_many_observations_are_projected_in_batches_by_the_directions_of_some(monkeypatch):
    x = np.random.default_rng(0).normal(size=(90, 4)) * [9, 5, 3, 1]
    plane = x[:, :2] @ np.random.default_rng(1).normal(size=(2, 4))
    expected = project(plane)[1]
    monkeypatch.setattr(preprocessing, "PCA_SUBSET", 20)
    assert project(plane)[1].shape == (90, 2), "of a subset"
    monkeypatch.setattr(preprocessing, "MAX_FLOAT_ELEMENTS", 40)
    points = project(np.concatenate([plane, plane[:5]]))[1]
    assert points.shape == (90, 2) and points.abs().max() == pytest.approx(1)
    cosine = torch.linalg.svdvals(torch.linalg.qr(points)[0].T @ torch.linalg.qr(expected)[0])
    assert cosine.min() > 0.9
    monkeypatch.setattr(preprocessing, "MAX_FLOAT_ELEMENTS", 2**25)
    monkeypatch.setattr(preprocessing, "MAX_SOLVED_POINTS", 89)
    assert project(plane)[1].shape == (90, 2)


def test_images_are_blurred_along_their_last_two_axes_with_zeros_outside():
    x = torch.zeros(2, 2, 5, 5)
    x[0, 1, 2, 2] = 1
    blurred = blur_images(x.flatten(1), 1.0, (2, 5, 5)).reshape(2, 2, 5, 5)
    kernel = np.exp(-0.5 * np.arange(-4, 5) ** 2)
    kernel = (kernel / kernel.sum())[2:7]
    np.testing.assert_allclose(blurred[0, 1], np.outer(kernel, kernel), atol=1e-6)
    assert blurred[0, 0].abs().max() == blurred[1].abs().max() == 0
    assert blur_images(x, 0.0, (2, 5, 5)) is x


def test_directions_without_variance_are_left_out_and_signs_are_fixed():
    x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    flat = torch.cat([x, x[:, :1] - x[:, 1:], 0 * x], 1)
    mean, directions = principal_directions(flat, 5, torch.Generator())
    assert directions.shape == (2, 5) and torch.allclose(mean, flat.mean(0))
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    assert (largest > 0).all()
    assert principal_directions(flat, 1, torch.Generator())[1].shape == (1, 5)
    assert principal_directions(torch.ones(4, 3), 2, torch.Generator())[1].shape == (0, 3)


def test_only_data_in_which_nothing_varies_are_refused(monkeypatch):
    """The first and the last row may be equal, and a column constant, where repeats are removed late."""
    monkeypatch.setattr(preprocessing, "MAX_FLOAT_ELEMENTS", 40)
    x = np.random.default_rng(0).normal(size=(30, 4)) * [1, 1, 1, 0]
    x[-1] = x[0]
    assert project(x)[1].shape == (29, 3)
    with pytest.raises(InputError, match="constant"):
        project(0 * x + 3)


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_repeats_are_found_whatever_a_row_takes_in_memory(columns, dtype):
    rows = torch.rand(6, columns, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert unique_rows(rows[[0, 1, 0, 2, 1, 3]]).tolist() == [0, 1, 3, 5]
