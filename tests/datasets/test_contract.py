"""What every dataset must do; a new dataset is tested by being in the catalog."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave import catalog
from unweave.data.core import FactorData
from unweave.data.downloads import MissingData
from unweave.utils.errors import kebab

DATASETS = catalog.datasets()


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module", params=DATASETS)
def loaded(request):
    """A dataset and its data; skipped where its files are not here."""
    cls = DATASETS[request.param]
    dataset = cls(points=200) if "points" in cls.__dataclass_fields__ else cls()
    return dataset, loaded_or_skipped(dataset)


def loaded_or_skipped(dataset):
    try:
        return dataset.load()
    except MissingData as error:
        pytest.skip(str(error))


@pytest.fixture
def dataset(loaded):
    return loaded[0]


@pytest.fixture
def data(loaded):
    return loaded[1]


def test_equal_recipes_give_equal_data(dataset, data):
    again = replace(dataset)
    assert again == dataset
    assert hash(again) == hash(dataset)
    first, second = (d.draw(50, rng()) for d in (data, again.load()))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.c, second.c)


def test_another_seed_gives_other_data(dataset, data):
    if not hasattr(dataset, "seed"):
        pytest.skip("the data are what they are, and take no seed")
    other = loaded_or_skipped(replace(dataset, seed=dataset.seed + 1))
    assert not torch.equal(data.draw(50, rng()).c, other.draw(50, rng()).c)


def test_draws_have_the_promised_shapes_and_are_finite(data):
    assert isinstance(data, FactorData)
    x, c = data.draw(7, rng())
    assert x.shape == (7, *data.shape)
    assert c.shape == (7, len(data.factors))
    assert x.is_floating_point()
    assert x.isfinite().all()
    assert c.isfinite().all()
    for j, factor in enumerate(data.factors):
        if factor.size is not None:
            assert set(c[:, j].tolist()) <= set(data.levels(j).tolist()) <= set(range(factor.size))


def test_the_same_generator_state_draws_the_same(data):
    assert torch.equal(data.draw(5, rng(3)).x, data.draw(5, rng(3)).x)
    assert not torch.equal(data.draw(5, rng(3)).x, data.draw(5, rng(4)).x)


def test_rendering_is_a_function_of_the_point_alone(data):
    points = data.sample(6, rng())
    whole = data.render(points)
    for i in range(6):
        torch.testing.assert_close(data.render(points[i : i + 1])[0], whole[i], atol=1e-5, rtol=1e-5)
    shaped = data.render(points.reshape(2, 3, -1))
    torch.testing.assert_close(shaped, whole.reshape(2, 3, *data.shape), atol=1e-5, rtol=1e-5)


def test_images_lie_in_0_to_1(data):
    if len(data.shape) == 3:
        x = data.draw(20, rng()).x
        assert x.min() >= 0
        assert 0.5 < x.max() <= 1 + 1e-6


def test_points_can_be_found_by_their_factors(data):
    if any(f.size is None for f in data.factors):
        return  # real-valued factors are met exactly nowhere in a table, and everywhere in a mixing
    c = data.labels(data.sample(20, rng()))
    assert torch.equal(data.labels(data.locate(c, rng(1))), c)


def test_the_recipe_is_json_and_a_substitute_does_not_carry_the_originals_name(dataset):
    assert json.loads(json.dumps(dataset.recipe()))["name"] == dataset.title()
    if dataset.files and not dataset.is_available():
        assert dataset.title() != kebab(type(dataset).__name__)


@pytest.mark.parametrize("name", DATASETS)
def test_it_says_what_it_is_and_where_its_files_come_from(name):
    cls = DATASETS[name]
    assert cls.paper
    assert (cls.__doc__ or "").strip()
    for original in cls.files:
        assert cls.page
        assert cls.license
        kind, value = original.hash.split(":")
        assert len(value) == {"md5": 32, "git": 40, "sha256": 64}[kind]
        assert original.file.count("/") == 1
        assert not original.url or original.url.endswith(Path(original.file).name)
