"""Datasets whose test set has nuisance values that training has not."""

import pytest
import torch

import unweave
from unweave import InputError
from unweave.data.supervision import pairs


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def test_pairs_of_a_subset_change_every_factor_equally_often():
    data = unweave.datasets.Unseen(of="shapes3d").load()
    names = [f.name for f in data.factors if f.name != "shape"]
    plan = pairs(data, 4000, rng(), k=(1, 5), among=names)
    differ = data.labels(plan.views["x"]) != data.labels(plan.views["x2"])
    share = differ.float().mean(0)
    assert share[data.column("shape")] == 0 and share[data.column("object")].item() == pytest.approx(0.6, abs=0.04)
    assert data.levels(data.column("object")).tolist() == [0, 2, 4, 6, 8]


def test_colors_of_the_test_set_are_every_other_one_or_distant():
    def hues(**settings):
        data = unweave.datasets.Unseen(of="shapes3d", **settings).load()
        return data.levels(data.column("object")).tolist()

    assert hues(part="test") == [1, 3, 5, 7, 9]
    assert (hues(distant=True), hues(distant=True, part="test")) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])
    with pytest.raises(InputError, match="distant=True is about the colors of shapes3d and mpi3d"):
        unweave.datasets.Unseen(of="colored-mnist", distant=True)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_settings_are_chosen_by_nuisances_and_digits_of_the_training_set(digits, left_out):
    settings = {"of": "rotation-colored-mnist", "validation": True, "left_out": left_out}
    kept = {0, 1, 2} - {left_out}
    train, test = (unweave.datasets.Unseen(part=part, **settings).load() for part in ("train", "test"))
    whole = unweave.datasets.Unseen(of="rotation-colored-mnist").load()
    assert len(train.gray) + len(test.gray) == len(whole.gray) and len(test.gray) == len(whole.gray) // 6
    for data, backgrounds, angles in ((train, kept, {3, 4, 5}), (test, {left_out}, {2, 6})):
        c = data.labels(data.sample(500, torch.Generator().manual_seed(0)))
        assert set(c[:, 1].tolist()) == set(range(6)), "all digit colors"
        assert set(c[:, 2].tolist()) == backgrounds and set(c[:, 3].tolist()) == angles
    point = torch.tensor([[0, 1, 2, 2]])
    torch.testing.assert_close(test.render(point), whole.render(torch.tensor([[5, 1, 2, 2]])))
    with pytest.raises(InputError, match="validation=True is about digits"):
        unweave.datasets.Unseen(of="shapes3d", validation=True)
    with pytest.raises(InputError, match="left_out=3: expected a background of the training set"):
        unweave.datasets.Unseen(left_out=3)
