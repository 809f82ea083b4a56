"""The datasets' own mathematics."""

import pytest
import torch

from unweave import InputError
from unweave.datasets import FlatSheet, GaussianMixture, Slice, SquaresXC, SquaresXY, SwissRoll


def test_a_square_on_whole_pixels_is_sharp_and_a_shifted_one_covers_the_same_area():
    data = SquaresXY(size=8, side=3).load()
    image = data.render(torch.tensor([[2.0, 4.0]]))[0, 0]
    expected = torch.zeros(8, 8)
    expected[4:7, 2:5] = 1  # x is the column, y the row
    assert torch.equal(image, expected)
    shifted = data.render(torch.tensor([[2.25, 4.5]]))[0, 0]
    assert shifted.sum() == pytest.approx(9)
    assert shifted[5, 2] == pytest.approx(0.75)
    assert shifted[4, 2] == pytest.approx(0.375)


@pytest.mark.parametrize("dataset", [SquaresXY(blur=2.0, size=32, side=10), SquaresXC(blur=2.0, size=32, side=10)])
def test_equal_steps_of_a_factor_are_equal_steps_of_the_image(dataset):
    """The manifold is isometric to its factors, up to one scale each: J'J is constant and diagonal."""
    data = dataset.load()
    c = torch.tensor([[6.0, 0.2], [11.0, 0.5], [15.0, 0.9]]).double()
    c = c if isinstance(dataset, SquaresXC) else c * torch.tensor([1, 15.0])
    jacobian = torch.func.vmap(torch.func.jacrev(lambda v: data.render(v[None]).flatten()))(c)  # (3, pixels, 2)
    metric = jacobian.mT @ jacobian
    torch.testing.assert_close(metric, metric[:1].expand(3, 2, 2), rtol=0.02, atol=0.02)
    # Moving changes the edges, color the inside: the two directions are orthogonal.
    assert metric[:, 0, 1].abs().max() < 0.02 * metric[:, 0, 0].min()


def test_factors_are_uniform_over_the_room_there_is():
    c = SquaresXY(points=20_000).load().sources
    assert c.min() >= 0
    assert c.max() <= 48
    assert torch.allclose(c.mean(0), torch.full((2,), 24.0), atol=0.5)
    assert torch.allclose(c.std(0), torch.full((2,), 48 / 12**0.5), atol=0.3)


def test_a_square_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="expected a smaller side"):
        SquaresXY(size=16, side=16).load()
    with pytest.raises(InputError, match="blur=-1"):
        SquaresXC(blur=-1).load()
    with pytest.raises(InputError, match="at least one point"):
        SquaresXY(points=0).load()


@pytest.mark.parametrize("spread", ["deviation", "variance"])
def test_the_mixture_has_the_papers_moments(spread):
    data = GaussianMixture(points=100_000, spread=spread, seed=2).load()
    assert [f.name for f in data.factors[:3]] == ["cluster", "z1", "z2"]
    assert all(f.noise for f in data.factors[3:])
    c = data.sources
    low, high = (0.5, 3.0) if spread == "deviation" else (0.5**0.5, 3**0.5)
    for k in range(5):
        z = c[c[:, 0] == k, 1:3]
        assert z.std(0).min() > low - 0.05
        assert z.std(0).max() < high + 0.05
        assert z.mean(0).abs().max() < 5.1
    assert torch.allclose(c[:, 3:].std(0), torch.full((8,), 0.01), atol=1e-3)


def test_the_steep_mixing_is_wilder_than_the_soft_one():
    soft, steep = (GaussianMixture(points=2000, mixing=m).load() for m in ("soft", "steep"))
    assert torch.equal(soft.sources, steep.sources)
    assert steep.render(steep.sources).std() > 2 * soft.render(soft.sources).std()


def test_the_mixing_is_a_function_of_the_seed_and_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, second = (GaussianMixture(seed=4, points=5).load().draw(3, torch.Generator().manual_seed(0)).x for _ in "ab")
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


def test_impossible_mixtures_are_refused():
    with pytest.raises(InputError, match="expected clusters of at least 1"):
        GaussianMixture(clusters=0).load()


@pytest.mark.parametrize("sheet", [FlatSheet(points=400), FlatSheet(dimensions=3, points=400), SwissRoll(points=400)])
def test_sheets_are_isometric_to_their_factors(sheet):
    """A small step in the factors is the same step in the data: J'J = I."""
    data = sheet.load()
    z = data.sources.double()
    step = 1e-4 * torch.randn(z.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = (data.render(z + step) - data.render(z - step)).norm(dim=1)
    if isinstance(sheet, FlatSheet):
        # a helix of radius and pitch 1 / (2 pi): every factor moves twice, along the circle and along the axis
        step = step * 2**0.5
    torch.testing.assert_close(moved, 2 * step.norm(dim=1), rtol=2e-3, atol=0)


def test_slices_have_an_order_in_every_factor():
    whole = Slice(vary=("orientation",), points=100).load()
    assert whole.factors[0].size == 20, "half a turn: the ends of a full one meet"
    x = whole.render(whole.all_points(100))
    assert (x[0] != x[-1]).any()
    hues = Slice(of="shapes3d", vary=("wall", "scale"), points=100).load()
    assert [f.size for f in hues.factors] == [6, 8]
    with pytest.raises(InputError, match="has no order"):
        Slice(vary=("shape",)).load()
    with pytest.raises(InputError, match="each once"):
        Slice(vary=("x", "x")).load()
    with pytest.raises(InputError, match="at least one image"):
        Slice(points=-1).load()
