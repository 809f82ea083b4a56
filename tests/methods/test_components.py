"""How many components there are, and which columns make up codes, where the answer is known."""

import numpy as np
import pytest
import torch

from unweave.methods import components
from unweave.methods.components import choose_components, column_loadings, describe_codes, variance_spectrum


def mixtures(n, columns, rank, noise, seed=0, uneven=False):
    """Standardized linear mixtures of uniform factors with Gaussian noise, (n, columns)."""
    rng = np.random.default_rng(seed)
    deviation = noise * (rng.uniform(0.3, 3, columns) if uneven else 1)
    x = rng.uniform(-1.7, 1.7, (n, rank)) @ rng.normal(size=(rank, columns)) + deviation * rng.normal(size=(n, columns))
    return torch.as_tensor((x - x.mean(0)) / x.std(0))


@pytest.mark.parametrize(
    ("n", "columns", "rank", "noise", "uneven"),
    [
        (500, 5, 1, 0.3, False),
        (500, 10, 3, 0.5, False),
        (500, 10, 3, 0.5, True),
        (300, 60, 5, 1.0, True),
        (100, 200, 3, 1.0, True),  # more columns than rows
        (1000, 12, 6, 0.5, False),  # as many factors as half of the columns
        (200, 10, 3, 0.0, False),
        (80, 3, 2, 0.0, False),
    ],
)
def test_the_rank_below_the_noise_is_chosen(n, columns, rank, noise, uneven):
    choices = [choose_components(mixtures(n, columns, rank, noise, seed, uneven), seed=0) for seed in range(5)]
    assert sorted(choice.number for choice in choices)[2] == rank
    assert all(abs(choice.number - rank) <= 1 for choice in choices)


def test_independent_columns_have_no_component():
    numbers = [choose_components(mixtures(300, 10, 0, 1.0, seed), seed=0).number for seed in range(5)]
    assert numbers == [0] * 5
    assert choose_components(torch.arange(50.0)[:, None].double(), seed=0).number == 0


def test_a_noisy_column_of_large_variance_is_no_component():
    """Variance alone would choose it: it is the first principal component, but shares nothing with the others."""
    noise = np.random.default_rng(1).normal(size=(500, 1))
    x = torch.cat([mixtures(500, 6, 2, 0.2), torch.as_tensor(30 * noise)], 1)
    assert choose_components(x, seed=0).errors[1] > 1
    assert choose_components(x[:, :6], seed=0).number == 2


def test_errors_are_those_of_predicting_each_column_from_the_others():
    x = mixtures(90, 6, 2, 0.4).numpy()
    train, test = x[:60], x[60:]
    errors = components._prediction_errors(train, test, 3)
    center = train.mean(0)
    assert errors[0] == pytest.approx(((test - center) ** 2).sum())
    directions = np.linalg.svd(train - center, full_matrices=False)[2]
    for k in (1, 2, 3):
        total = 0.0
        for j in range(6):
            rest, basis = np.delete(np.arange(6), j), directions[:k].T
            scores = np.linalg.lstsq(basis[rest], (test - center)[:, rest].T, rcond=None)[0]
            total += (((test - center)[:, j] - basis[j] @ scores) ** 2).sum()
        assert errors[k] == pytest.approx(total)


def test_large_tables_are_subsampled(monkeypatch):
    monkeypatch.setattr(components, "MAX_COLUMNS", 20)
    monkeypatch.setattr(components, "MAX_ELEMENTS", 4_000)
    x = mixtures(2_000, 80, 3, 0.5)
    assert components._choose_rows(x, np.random.default_rng(0)).shape == (200, 20)
    assert choose_components(x, seed=0).number == 3


def test_loadings_are_correlations(monkeypatch):
    x = mixtures(100, 7, 2, 0.5) * torch.arange(1, 8) + 1e6
    x[:, 3] = 5.0
    z = x[:, [0, 1]] @ torch.tensor([[1.0, 2.0], [-1.0, 0.5]]).double()
    monkeypatch.setattr("unweave.data.scaling.MAX_BLOCK_ELEMENTS", 250)  # blocks of two columns
    with np.errstate(invalid="ignore"):
        correlations = np.corrcoef(np.c_[z, x].T)[:2, 2:]
    np.testing.assert_allclose(column_loadings(x, z), np.nan_to_num(correlations), atol=1e-6)


@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_the_spectrum_holds_the_shares_of_all_components(shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).double()
    values = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose(variance_spectrum(x), values / values.sum(), atol=1e-12)


def test_a_sentence_names_the_columns_with_the_largest_loadings():
    row = np.array([0.2, 0.93, -0.41, 0.88, 0.31, 0.1, -0.5, 0.6])
    names = ["a", "height", "age", "weight", "e", "f", "g", "h"]
    text = "Code 1: 41 % of the variance; + height (0.93), weight (0.88), h (0.60); - g (-0.50), age (-0.41)."
    assert describe_codes(np.array([0.41]), row[None], names) == [text]
    weak = describe_codes(np.array([0.001]), np.array([[0.1, -0.2]]), ["a", "b"])
    assert weak == ["Code 1: <1 % of the variance; - b (-0.20)."]
    assert "8 further codes" in describe_codes(np.full(20, 0.05), np.ones((20, 2)), ["a", "b"])[-1]
