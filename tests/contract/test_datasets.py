"""What every dataset must do; a new dataset is tested by being in the catalog."""

import json

import pytest
import torch

from unweave import catalog
from unweave.data import FactorData

DATASETS = catalog.datasets()


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module", params=DATASETS)
def dataset(request):
    return DATASETS[request.param]()


def test_equal_recipes_give_equal_data(dataset):
    again = type(dataset)()
    assert again == dataset
    assert hash(again) == hash(dataset)
    first, second = (d.load().collect(50, rng()) for d in (dataset, again))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.c, second.c)


def test_another_seed_gives_other_data(dataset):
    other = type(dataset)(seed=dataset.seed + 1)
    assert not torch.equal(dataset.load().collect(50, rng()).c, other.load().collect(50, rng()).c)


def test_draws_have_the_promised_shapes_and_are_finite(dataset):
    data = dataset.load()
    assert isinstance(data, FactorData)
    x, c = data.draw(7, rng())
    assert x.shape == (7, *data.shape)
    assert c.shape == (7, len(data.factors))
    assert x.is_floating_point()
    assert x.isfinite().all()
    assert c.isfinite().all()
    for j, factor in enumerate(data.factors):
        if factor.size is not None:
            assert set(c[:, j].tolist()) <= set(range(factor.size))


def test_the_same_generator_state_draws_the_same(dataset):
    data = dataset.load()
    assert torch.equal(data.draw(5, rng(3)).x, data.draw(5, rng(3)).x)
    assert not torch.equal(data.draw(5, rng(3)).x, data.draw(5, rng(4)).x)


def test_rendering_is_a_function_of_the_point_alone(dataset):
    data = dataset.load()
    points = data.sample(6, rng())
    whole = data.render(points)
    for i in range(6):
        torch.testing.assert_close(data.render(points[i : i + 1])[0], whole[i], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        data.render(points.reshape(2, 3, -1)), whole.reshape(2, 3, *data.shape), atol=1e-5, rtol=1e-5
    )


def test_images_lie_in_0_to_1(dataset):
    data = dataset.load()
    if len(data.shape) == 3:
        x = data.draw(20, rng()).x
        assert x.min() >= 0
        assert 0.5 < x.max() <= 1 + 1e-6


def test_it_says_what_it_is(dataset):
    assert dataset.paper
    assert (type(dataset).__doc__ or "").strip()
    assert json.loads(json.dumps(dataset.recipe()))["name"] == next(
        n for n, d in DATASETS.items() if d is type(dataset)
    )
