"""Codes of new points."""

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet
from unweave.methods import HessianICA, TangentICA
from unweave.methods.spectral.out_of_sample import AffineMaps
from unweave.metrics import mcc


@pytest.mark.parametrize("d", [2, 4])
def test_maps_are_exact_for_affine_codes(d):
    x, z = flat_sheet(1500, d)
    plane = z @ np.random.default_rng(1).normal(size=(d, 9))
    codes = z @ np.random.default_rng(2).normal(size=(d, d)) + 3
    atlas = AffineMaps(torch.from_numpy(plane[:1200]), torch.from_numpy(codes[:1200]), 12)
    assert np.abs(atlas(torch.from_numpy(plane[1200:])).numpy() - codes[1200:]).max() < 1e-3
    bent = AffineMaps(torch.from_numpy(x[:1200]), torch.from_numpy(codes[:1200]), 12)(
        torch.from_numpy(x[1200:])
    ).numpy()
    assert np.corrcoef(bent[:, 0], codes[1200:, 0])[0, 1] > 0.99


@pytest.mark.parametrize("method", [HessianICA, TangentICA])
def test_new_points_are_encoded_as_well_as_old_ones(method):
    x, z = flat_sheet(2600, 2)
    found = method(latent_dim=2).fit(x[:2000])
    old, new = (mcc(z[rows], found.transform(x[rows])) for rows in (slice(2000), slice(2000, None)))
    assert new > old - 0.005
    assert old > 0.998


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_the_nearest_map_is_used_up_to_three_dimensions_and_the_mean_of_four_beyond(d):
    """Maps of curved codes differ from point to point, so it matters which of them are averaged, and how."""
    rng = np.random.default_rng(d)
    points = rng.uniform(-1, 1, (200, d))
    atlas = AffineMaps(torch.from_numpy(points), torch.from_numpy(points**2), 2 * d + 4)
    q = rng.uniform(-0.8, 0.8, (30, d))
    distance = np.linalg.norm(q[:, None] - points, axis=2)
    count = 1 if d < 4 else 4
    nearest = np.argsort(distance, 1)[:, :count]
    values = np.einsum("nD,nbDd->nbd", q, atlas.slopes.numpy()[nearest]) + atlas.offsets.numpy()[nearest]
    weight = 1 / np.take_along_axis(distance, nearest, 1)
    blended = (weight[:, :, None] * values).sum(1) / weight.sum(1)[:, None]
    np.testing.assert_allclose(atlas(torch.from_numpy(q)).numpy(), blended, atol=5e-3)
    np.testing.assert_allclose(np.abs(blended - q**2).max(), 0, atol=0.6)


def test_codes_of_the_embedded_points_are_kept():
    """At a point itself its own map decides, however many are averaged."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (300, 4))
    codes = points**2
    atlas = AffineMaps(torch.from_numpy(points), torch.from_numpy(codes), 12)
    own = np.einsum("nD,nDd->nd", points, atlas.slopes.numpy()) + atlas.offsets.numpy()
    np.testing.assert_allclose(atlas(torch.from_numpy(points)).numpy(), own, atol=5e-3)


def test_a_code_with_a_period_is_continued_across_its_end():
    """Angles of points on a circle, from 0 to 2 pi: a new point beside the seam gets neither the mean nor a jump."""
    angle = np.arange(0, 2 * np.pi, 0.02)
    points = torch.from_numpy(np.column_stack([np.cos(angle), np.sin(angle)]))
    atlas = AffineMaps(points, torch.from_numpy(angle[:, None]), 10, (2 * np.pi,))
    new = np.concatenate([np.linspace(0.001, 0.05, 9), 2 * np.pi - np.linspace(0.001, 0.05, 9), [1.0, 3.0]])
    codes = atlas(torch.from_numpy(np.column_stack([np.cos(new), np.sin(new)]))).numpy()[:, 0]
    assert (codes >= 0).all() and (codes <= 2 * np.pi).all()
    np.testing.assert_allclose(np.angle(np.exp(1j * (codes - new))), 0, atol=2e-3)


def test_a_constant_code_stays_constant():
    points = torch.from_numpy(np.random.default_rng(0).uniform(size=(50, 2)))
    codes = torch.full((50, 1), 3.0, dtype=torch.float64)
    np.testing.assert_allclose(AffineMaps(points, codes, 8)(points[:5] + 0.01).numpy(), 3)
