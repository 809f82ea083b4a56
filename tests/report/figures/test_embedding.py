"""Scatter plots of codes."""

import numpy as np

from unweave.data.core import Factor
from unweave.report.figures.embedding import draw_embedding, pick_active_codes


def test_an_embedding_shows_active_codes():
    z = np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 0.01, 0.9, 1.0]
    assert pick_active_codes(z) == (0, 2)
    assert pick_active_codes(z * [1.0, 0.1, 0.01, 0.02]) == (0, 3)
    figure = draw_embedding(z, z[:, :1], [Factor("size", None)])
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("code 1", "code 3")
