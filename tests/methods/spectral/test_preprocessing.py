"""Blur, projection and removal of repeats."""

import numpy as np
import pytest
import torch

from unweave import Factor, InputError, Mixing
from unweave.datasets import SquaresXY
from unweave.methods import HessianICA
from unweave.methods.spectral.preprocessing import blur_images, fit_projection, principal_directions, unique_rows


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
