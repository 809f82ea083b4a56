"""Held-out observations and correlated training sets."""

import pytest
import torch

from unweave import InputError
from unweave.data.splits import correlated_split, hold_out
from unweave.datasets import (
    ColoredMNIST,
)


def test_training_and_test_rows_are_disjoint(sprites):
    rest, test = hold_out(sprites, 50_000, seed=3)
    assert (len(rest), len(test)) == (687_280, 50_000)
    numbers = [(s.points * sprites.strides).sum(1) for s in (rest, test)]
    assert len(torch.cat(numbers).unique()) == 737_280
    with pytest.raises(InputError, match="cannot be held out"):
        hold_out(sprites, 737_280)


def test_the_split_of_the_intervention_paper(sprites):
    split = correlated_split(sprites, ("x", "scale"), strength=0.2, train=20_000, test=50_000)
    assert [len(s) for s in split] == [20_000, 20_000, 50_000]
    found = [torch.corrcoef(s.labels(s.points).double().T)[1, 3].item() for s in split]
    assert found[0] > 0.7
    assert max(map(abs, found[1:])) < 0.03
    held = set((split.test.points * sprites.strides).sum(1).tolist())
    for training in split[:2]:
        assert held.isdisjoint((training.points * sprites.strides).sum(1).tolist())
    others = torch.corrcoef(split.correlated.labels(split.correlated.points).double().T)
    assert others[[0, 0, 2, 2], [1, 2, 3, 4]].abs().max() < 0.03, "only the two are tied"


def test_all_paintings_of_a_digit_are_in_the_same_set(digits):
    data = ColoredMNIST().load()
    split = correlated_split(data, ("label", "color"), strength=0.3, train=500, test=60)
    held = set(split.test.points[:, 0].tolist())
    assert len(split.test) == 60
    assert len(held) == 6
    for training in split[:2]:
        assert held.isdisjoint(training.points[:, 0].tolist())
