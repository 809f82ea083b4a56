"""Robustness of HLLE + ICA: what is done to images, and rows that are kept."""

import numpy as np
import pandas as pd
import pytest

from unweave.papers.hlle_ica import robustness
from unweave.papers.hlle_ica.robustness import Options, Sample, add_noise, compress, cut_hole, take_points

Z = np.random.default_rng(0).uniform(-3, 5, (4_000, 2))
GRAY = Sample(np.tile(np.linspace(0, 1, 16, dtype=np.float32), (8, 1, 16, 1)), Z[:8])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_a_hole_has_the_share_of_the_square_and_lies_in_its_middle(share):
    rest = cut_hole(Sample(Z, Z), share).z
    assert len(rest) == pytest.approx((1 - share) * 4_000, rel=0.05)
    assert np.linalg.norm((rest - 1) / 8, axis=1).min() >= np.sqrt(share / np.pi) - 0.01


def test_noise_has_its_deviation():
    black = Sample(np.zeros((50, 1, 16, 16), np.float32), Z[:50])
    assert add_noise(black, 0.2).x.std() == pytest.approx(0.2, rel=0.05)


def test_compression_loses_more_at_lower_quality_and_nothing_without():
    errors = [np.abs(compress(GRAY, quality).x - GRAY.x).max() for quality in (100, 90, 10)]
    assert errors[0] == 0 < errors[1] < errors[2] < 0.3


def test_points_are_the_first_ones():
    assert take_points(GRAY, 3.0).x.shape == (3, 1, 16, 16)


def test_stored_rows_are_not_computed_again(tmp_path, monkeypatch):
    calls = []

    def score(sample, **settings):
        calls.append((len(sample.x), settings))
        return {"mcc": 0.5, "claimed": False}

    monkeypatch.setattr(robustness, "score", score)
    options = Options(out=tmp_path, only=("points", "blur"), manifolds=("squares-xy",), max_points=300)
    robustness.main(options)
    assert calls == [(300, {}), *((300, {"smooth": sigma}) for sigma in (0.0, 0.5, 1.0, 2.0, 4.0))]
    robustness.main(options)
    rows = pd.read_csv(robustness.scores_path(options))
    assert len(calls) == len(rows) == 6
    assert robustness.tables(options)[1].rows == [["squares-xy", *["0.500 (not claimed)"] * 5]]
    assert (tmp_path / "figures/robustness.png").is_file()
