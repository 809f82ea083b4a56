"""Scores of features of several codes."""

import numpy as np
import pytest

from unweave import InputError
from unweave.metrics import dci, sap


def test_features_of_several_codes_are_scored_as_one():
    generator = np.random.default_rng(0)
    c = generator.integers(0, 4, (2000, 2))
    angle = 2 * np.pi * c / 4
    z = np.c_[np.cos(angle[:, 0]), np.sin(angle[:, 0]), np.cos(angle[:, 1]), np.sin(angle[:, 1])]
    z = z + 0.05 * generator.normal(size=z.shape)
    pairs = [[0, 1], [2, 3]]
    apart, together = (sap(c, z, predictor="logistic", features=f) for f in (None, pairs))
    assert together == pytest.approx(0.75, abs=0.05) and apart < 0.3  # the other feature still guesses one in four
    assert dci(c, z, features=pairs).completeness > 0.99 > dci(c, z).completeness + 0.2
    assert dci(c, z, features=pairs).disentanglement > 0.99
    with pytest.raises(InputError, match=r"sap\[logistic\]"):
        sap(c, z, predictor="r2", features=pairs)
