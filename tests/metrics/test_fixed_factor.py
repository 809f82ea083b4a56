"""FactorVAE and BetaVAE scores, from tables and from data with a method."""

import numpy as np
import pytest
import torch

from unweave import Factor, InputError
from unweave.data.containers import Table
from unweave.datasets import DSprites, SquaresXY
from unweave.metrics import beta_vae_score, factor_vae_score, fixed_factor
from unweave.metrics.fixed_factor import encode_sets


def test_the_factor_vae_score_holds_votes_out_and_counts_active_codes(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert factor_vae_score(grid, z) == (1.0, 2)
    noise = factor_vae_score(grid, rng.normal(size=(4000, 6)))
    assert noise.accuracy == pytest.approx(0.5, abs=0.08), "two factors: a guess is right half of the time"
    dead = np.column_stack([z, np.full(4000, 3.0), 0.01 * rng.normal(size=4000)])
    assert factor_vae_score(grid, dead).active == 2 and factor_vae_score(grid, 1e-4 * dead).active == 2
    assert factor_vae_score(grid, dead, prune=0).active == 3
    with pytest.raises(InputError, match="eight rows or more"):
        factor_vae_score(np.arange(20) % 10, np.arange(20.0))


def test_the_beta_vae_score_recognizes_shared_factors(grid):
    rng = np.random.default_rng(0)
    a = np.pi / 4
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert beta_vae_score(grid, z) > 0.99
    assert beta_vae_score(grid, rng.normal(size=grid.shape)) == pytest.approx(0.5, abs=0.08)
    turned = z @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    assert beta_vae_score(grid, turned) < 0.7, "by half a right angle, both codes change alike"


RNG = np.random.default_rng(0)


class Reader:
    """A method that reads the factors off the images of a moving square, or mixes them."""

    def __init__(self, mixing=None):
        self.mixing = np.eye(2) if mixing is None else mixing

    def transform(self, x):
        mass = x.reshape(len(x), *x.shape[-2:])
        total = mass.sum((1, 2))
        places = np.stack([(mass.sum(1) @ np.arange(mass.shape[2])), (mass.sum(2) @ np.arange(mass.shape[1]))], 1)
        return (places / total[:, None]) @ self.mixing


@pytest.mark.parametrize("score", [factor_vae_score, beta_vae_score])
def test_scores_from_data_and_a_method_draw_new_observations(score):
    data = SquaresXY(points=600).load()
    few = {"votes": 200} if score is factor_vae_score else {"points": 200}
    good, bad = score(data, Reader(), **few), score(data, Reader(np.array([[1, 1], [1, -1]])), **few)
    good, bad = (s.accuracy if isinstance(s, tuple) else s for s in (good, bad))
    assert good > 0.98
    assert bad < 0.75
    with pytest.raises(InputError, match="fitted method"):
        score(data, np.ones((600, 2)))


def test_drawn_sets_share_exactly_the_constant_factor():
    from torch import Generator

    from unweave.metrics.fixed_factor import sample_sets

    for data in (DSprites().load(), DSprites().load().freeze(5_000, Generator().manual_seed(1))):
        for j in range(1, len(data.factors)):
            c = data.labels(sample_sets(data, j, 20, 16, Generator().manual_seed(0)).flatten(0, 1)).reshape(20, 16, -1)
            assert (c[..., j] == c[:, :1, j]).all()
            others = [i for i in range(len(data.factors)) if i != j and data.factors[i].size > 1]
            assert all((c[..., i] != c[:, :1, i]).any() for i in others)


def test_constant_codes_are_ignored_with_data_and_a_method():
    data = SquaresXY(points=600).load()

    class Dead(Reader):
        def transform(self, x):
            return np.column_stack([super().transform(x) + 0.1 * RNG.normal(size=(len(x), 2)), np.full(len(x), 0.1)])

    assert factor_vae_score(data, Dead(), votes=200) == (1.0, 2)
    with pytest.raises(InputError, match="at least two"):
        factor_vae_score(data, Dead(), votes=1)
    assert factor_vae_score(data, Dead(), votes=3).active == 2


def test_observations_are_encoded_in_parts_of_a_few_thousand(monkeypatch):
    monkeypatch.setattr(fixed_factor, "CHUNK_SIZE", 200)
    counts = []

    class Counting(Reader):
        def transform(self, x):
            counts.append(len(x))
            return super().transform(x)

    data = SquaresXY(points=600).load()
    drawn = encode_sets(data, Counting(), votes=20, sets=8, size=5)
    assert drawn.codes.shape == (20, 8, 5, 2) and sorted(set(drawn.factor)) == [0, 1]
    assert counts[:2] == [200, 200] and sum(counts[2:]) == 20 * 8 * 5 and 100 <= max(counts[2:]) <= 400
    spread = drawn.codes[np.arange(20), :, :, drawn.factor].std(2)
    assert spread.max() < 0.2, "the factor of a vote is constant in each of its sets"
    assert 0.5 < drawn.codes.std((0, 1, 2)).mean() < 1.5, "codes have a deviation of one over all data"
    for data, message in ((SquaresXY(points=600).load(), "in place of codes: with data, give a fitted method"),):
        with pytest.raises(InputError, match=message):
            encode_sets(data, np.ones(3), votes=2, sets=1, size=2)


def test_noise_and_factors_of_one_value_are_not_fixed():
    kinds = Factor("kind", 2, "nominal"), Factor("size", 3, "ordinal")
    more = Factor("still", 1, "nominal"), Factor("place", None, "real", noise=True)
    c = torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(1), torch.arange(20)).double()
    data = Table(c.float(), c, [*kinds, *more])

    class Copy:
        def transform(self, x):
            return np.asarray(x)

    assert set(encode_sets(data, Copy(), votes=50, sets=1, size=4).factor) == {0, 1}
    with pytest.raises(InputError, match="compares factors: the data need at least two"):
        encode_sets(Table(c[:, 1:].float(), c[:, 1:], [kinds[1], *more]), Copy(), votes=2, sets=1, size=2)


def test_votes_and_points_for_testing_were_not_trained_on():
    """Many codes of noise and few votes: a rule that was tested on its own votes would look far better than chance."""
    rng = np.random.default_rng(0)
    c, z = rng.integers(0, 4, (4000, 4)), rng.normal(size=(4000, 60))
    assert np.mean([factor_vae_score(c, z, votes=120, seed=s).accuracy for s in range(8)]) < 0.36
    assert np.mean([beta_vae_score(c, z, points=120, seed=s) for s in range(4)]) < 0.36
