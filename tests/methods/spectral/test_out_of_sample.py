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
