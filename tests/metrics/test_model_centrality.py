"""Model centrality."""

import numpy as np
import pytest

from unweave.metrics import (
    factor_vae_score,
    model_centrality,
)


def test_centrality_is_a_mean_over_both_directions():
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 2))
    poor = c[:, :1]  # knows one factor: as truth it is easily told, as code it cannot tell two
    whole, part = model_centrality([c, poor])
    assert whole == part, "with two runs, each is compared with the other only"
    one = factor_vae_score(c, poor).accuracy
    other = factor_vae_score(poor, c).accuracy
    assert whole == pytest.approx((one + other) / 2, abs=0.03)
    assert one < other - 0.2
