"""Statistics of features before training, and warnings on them."""

import pytest
import torch

from unweave.data.conversion import as_data
from unweave.methods.flows import features
from unweave.methods.flows.features import batch_rows, describe_features, feature_statistics, sample_points


def test_statistics_are_those_of_all_points_in_parts(monkeypatch):
    monkeypatch.setattr(features, "MAX_SAMPLE_ELEMENTS", 16 * 3 * 7)  # seven rows at a time
    assert batch_rows((3,)) == 7 and batch_rows((10_000,)) == 1
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 5, 0]) + 2
    found = feature_statistics(as_data(x.numpy()), torch.Generator().manual_seed(0))
    torch.testing.assert_close(found.low, x.amin(0))
    torch.testing.assert_close(found.high, x.amax(0))
    torch.testing.assert_close(found.deviation, x.std(0, correction=0), atol=1e-6, rtol=1e-5)
    assert found.constant.tolist() == [False, False, True]


def test_samples_are_drawn_without_replacement_where_there_are_too_many_points(monkeypatch):
    data = as_data(torch.arange(3_000.0)[:, None].expand(-1, 2).numpy())
    assert len(sample_points(data, torch.Generator())) == 3_000
    for name, value in (("MAX_SAMPLES", 2_000), ("MAX_SAMPLE_ELEMENTS", 2 * 1_500)):
        monkeypatch.setattr(features, name, value)
        points = sample_points(data, torch.Generator())
        assert len(points) == len(points.unique(dim=0)) == min(value, 1_500 if "EL" in name else value)
    monkeypatch.setattr(features, "MAX_SAMPLES", 10)
    assert len(sample_points(data, torch.Generator())) == 1_000, "at least a thousand"


@pytest.mark.parametrize(
    ("deviation", "constant", "noise", "starts"),
    [
        ([1.0, 2, 3], [False] * 3, 0.6, []),
        ([1.0, 2, 3], [False] * 3, 0.61, ["Features have a deviation of 2, and the added noise one of 0.61"]),
        ([0.0, 2, 2], [True, False, False], 0.5, ["1 of 3 features are constant"]),
        ([0.0, 0, 2], [True, True, False], 0.7, ["2 of 3 features are constant", "Features have a deviation of 2,"]),
        ([0.0, 0], [True, True], 0.7, ["2 of 2 features are constant"]),
        ([0.0, 0, 0], [False] * 3, 0.0, []),
    ],
)
def test_constant_features_and_too_much_noise_are_warned_of(deviation, constant, noise, starts):
    texts = describe_features(torch.tensor(deviation), torch.tensor(constant), noise)
    assert len(texts) == len(starts) and all(map(str.startswith, texts, starts))
