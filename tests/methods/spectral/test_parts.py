"""Data in separate parts."""

import numpy as np
import pytest

from unweave import InputError
from unweave.methods import HessianICA
from unweave.methods.spectral.parts import MIN_PART, Part, align_part, align_parts, list_orders
from unweave.metrics import mcc


def sheets(counts, seed=0, apart=30.0):
    """Return bent sheets far from each other, (n, 4), turned a little, with their coordinates and numbers."""
    rng = np.random.default_rng(seed)
    points, factors, labels = [], [], []
    for i, n in enumerate(counts):
        u, v = rng.uniform(size=(2, n)) * np.array([[2.0], [1.0]])
        sheet = np.stack([np.sin(u), 1 - np.cos(u), v, np.zeros(n)], 1)
        turn = 0.2 * i
        rotation = np.eye(4)
        rotation[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        points.append(sheet @ rotation.T + apart * i * np.array([0, 0, 0, 1.0]))
        factors.append(np.stack([u, v], 1))
        labels.append(np.full(n, i))
    return np.concatenate(points), np.concatenate(factors), np.concatenate(labels)


def test_factors_inside_of_parts_and_between_them_are_recovered():
    x, z, part = sheets((220, 200, 180))
    shuffled = np.random.default_rng(1).permutation(len(x))
    x, z, part = x[shuffled], z[shuffled], part[shuffled]
    with pytest.raises(InputError, match="falls into 3 parts"):
        HessianICA(latent_dim=2).fit(x)
    found = align_parts(x, HessianICA(), 2)
    np.testing.assert_array_equal(found.labels, part)
    assert mcc(z, found.codes) > 0.98
    assert 0.9 < found.agreement <= 1
    assert mcc(part[:, None], found.part_codes(1)) > 0.99


def test_order_and_signs_are_those_of_the_other_parts():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (200, 2))
    basis = rng.normal(size=(2, 5))
    other = Part(np.arange(100), z[:100] @ basis, np.zeros(5), z[:100], 1.0)
    for order, signs in list_orders(2):
        turned = (z[100:] * signs)[:, order]
        part = Part(np.arange(100), z[100:] @ basis, np.zeros(5), turned, 1.0)
        agreement, codes = align_part(part, [other], [z[:100]])
        np.testing.assert_allclose(codes, z[100:])
        assert agreement > 0.95
    assert len({(tuple(order), tuple(signs)) for order, signs in list_orders(3)}) == 48


def test_a_part_that_is_too_small_is_named():
    x, _, _ = sheets((200, MIN_PART - 1))
    with pytest.raises(InputError, match=f"of 2 parts the smallest has {MIN_PART - 1} points: at least {MIN_PART}"):
        align_parts(x, HessianICA(), 2)


def test_one_part_is_embedded_as_it_is():
    x, z, _ = sheets((300,))
    found = align_parts(x, HessianICA(), 2)
    assert mcc(z, found.codes) > 0.98 and found.agreement == 1 and not found.labels.any()
