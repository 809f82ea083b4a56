"""What flows share: networks, preparation, settings that cannot work, refits."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from tests.helpers import FLOW_SETTINGS, blobs
from unweave.data.conversion import as_data
from unweave.methods import GIN
from unweave.training.adam import Adam
from unweave.utils.errors import InputError


def test_the_default_learning_rate_is_the_papers_and_decays_after_five_eighths():
    x, u = blobs()
    vectors, images = GIN(**FLOW_SETTINGS), GIN(conv_widths=(4,), conv_blocks=1)
    vectors.validate_settings(as_data(x, u))
    images.validate_settings(as_data(np.zeros((4, 8, 8), np.float32), np.arange(4) % 2))
    assert float(vectors.optimizers()[""].lr) == pytest.approx(1e-2) and float(
        images.optimizers()[""].lr
    ) == pytest.approx(3e-4)
    rate = Adam(torch.tensor(0.5), decay_after=5 / 8)
    assert [float(rate.at_progress(torch.tensor(t)).lr) for t in (0.0, 0.62, 0.63)] == pytest.approx([0.5, 0.5, 0.05])


def test_the_learning_rate_is_a_tenth_after_a_share_of_the_steps():
    x, u = blobs()
    data = as_data(x, u)
    rates = {}
    for share in (0.625, 0.5, 1.0):
        method = GIN(**FLOW_SETTINGS, lr=0.5, lr_decay_after=share)
        method.validate_settings(data)
        rates[share] = [float(method.optimizers()[""].at_progress(torch.tensor(t)).lr) for t in (0.49, 0.51, 0.63)]
    assert GIN().lr_decay_after == 0.625
    assert rates[0.625] == pytest.approx([0.5, 0.5, 0.05])
    assert rates[0.5] == pytest.approx([0.5, 0.05, 0.05])
    assert rates[1.0] == pytest.approx([0.5, 0.5, 0.5])
    early, late = (GIN(**FLOW_SETTINGS, seed=1, lr_decay_after=share).fit(x, u) for share in (0.0, 1.0))
    assert not np.allclose(early.spectrum_, late.spectrum_, rtol=1e-3)
    with pytest.raises(InputError, match=r"lr_decay_after=-0\.1: expected 0 or more"):
        GIN(lr_decay_after=-0.1).fit(x, u)


def test_convolutional_flows_are_inverted(digits):
    method, images, _ = digits
    everything = GIN(**method.get_params() | {"latent_dim": "all"}).fit(images[:300], np.arange(300) % 3)
    np.testing.assert_allclose(everything.inverse_transform(everything.transform(images[:5])), images[:5], atol=1e-4)
    assert method.sample(7, 3).shape == (3, 8, 8) and method.transfer(images[:2], 1).shape == (2, 8, 8)
    assert any("features are constant" in text for text in method.diagnosis_)


def test_odd_numbers_of_features_work():
    x, u = blobs(100, d=3)
    method = GIN(**FLOW_SETTINGS, latent_dim="all").fit(x, u)
    np.testing.assert_allclose(method.inverse_transform(method.transform(x)), x, atol=1e-4)


def labels_with(name):
    return np.array(["a", "b"] * 30 + [name])


@pytest.mark.parametrize(
    ("settings", "x", "y", "words"),
    [
        ({}, blobs(61)[0], labels_with("lonely"), "class 'lonely' has fewer than two observations"),
        ({}, blobs(60)[0], ["same"] * 60, "one class only"),
        ({}, blobs(60)[0][:, :1], np.arange(60) % 2, r"1 feature\(s\) only"),
        ({}, blobs(60)[0], None, "requires y"),
        (
            {"noise": 0.0},
            np.c_[blobs(60)[0], np.ones(60)],
            np.arange(60) % 2,
            "1 of 5 features are constant.*noise=0.01",
        ),
        ({"latent_dim": 9}, blobs(60)[0], np.arange(60) % 2, "latent_dim=9: observations of 4 numbers"),
        ({"restarts": 0}, blobs(60)[0], np.arange(60) % 2, "restarts=0"),
        ({"network": "conv"}, blobs(60)[0], np.arange(60) % 2, "needs images"),
        ({}, np.random.default_rng(0).random((20, 1, 10, 6)), np.arange(20) % 2, "10 x 6 cannot be halved 2 times"),
        ({"noise": -1.0}, blobs(60)[0], np.arange(60) % 2, "noise=-1.0"),
        ({"batch_size": 5}, blobs(60)[0], np.arange(60) % 3, "batch_size=5.*at least 6"),
        ({"family": "gamma"}, blobs(60)[0] * 100, np.arange(60) % 3, r"which reach \d+: standardize them first"),
        ({"conv_widths": (0,)}, np.random.default_rng(0).random((20, 8, 8)), np.arange(20) % 2, "conv_widths"),
    ],
)
def test_bad_input_is_an_error_with_a_reason(settings, x, y, words):
    with pytest.raises(InputError, match=words):
        GIN(**FLOW_SETTINGS | settings).fit(x, y)


def test_a_refit_resets_and_a_failed_fit_leaves_nothing():
    x, u = blobs(200)
    method = GIN(**FLOW_SETTINGS, restarts=2).fit(x, u)
    assert any("best of 2 starts" in text for text in method.diagnosis_)
    method.fit(x, 0.9 * np.eye(3)[u] + 0.1 / 3)
    assert not hasattr(method, "levels_")
    with pytest.raises(InputError, match="not finite"):
        GIN(**FLOW_SETTINGS, lr=1e9).fit(x, u)
    broken = GIN(**FLOW_SETTINGS, lr=1e9)
    with pytest.raises(InputError):
        broken.fit(x, u)
    with pytest.raises(NotFittedError):
        broken.transform(x)


def test_standardized_features_are_learned_at_their_own_scale():
    x, u = blobs(300)
    scale = np.array([1e-3, 1, 1e3, 10], np.float32)
    plain, scaled = GIN(**FLOW_SETTINGS, latent_dim="all"), GIN(**FLOW_SETTINGS, latent_dim="all", standardize=True)
    assert any("noise dominates the features" in text for text in plain.outlook(x * 1e-3, u))
    assert not any("noise dominates the features" in text for text in scaled.outlook(x * 1e-3, u))
    scaled.fit(x * scale, u)
    np.testing.assert_allclose(scaled.inverse_transform(scaled.transform(x * scale)) / scale, x, atol=1e-3)
    unit = (x / x.std(0)).astype(np.float32)
    same = GIN(**FLOW_SETTINGS, latent_dim="all").fit(unit, u)
    volume = np.log(x.std(0) * scale).sum()
    np.testing.assert_allclose(scaled.log_prob(x * scale, u), same.log_prob(unit, u) - volume, rtol=1e-2, atol=0.1)


def test_constant_features_get_noise_and_are_reported():
    x, u = blobs(200)
    method = GIN(**FLOW_SETTINGS).fit(np.c_[x, np.ones(200)], u)
    assert any("1 of 5 features are constant" in text for text in method.diagnosis_)


def test_the_outlook_reports_classes_constant_features_and_volumes():
    x, u = blobs(100)
    text = " ".join(GIN(**FLOW_SETTINGS).outlook(np.c_[x, np.ones(100)], u))
    assert "3 classes guarantee 1 informative variable" in text and "1 of 5 features are constant" in text
    assert "deviations do not measure" in " ".join(GIN(**FLOW_SETTINGS, volume="free").outlook(x, u))


def test_networks_have_the_sizes_of_the_paper_by_default():
    def blocks(shape, **settings):
        method = GIN(**settings)
        method.shape_ = shape
        return method.build(shape).flow.blocks

    plain = blocks((4,))
    assert len(plain) == 8 and plain[0].first[0].out_features == 10, "ten units at least"
    assert blocks((12,))[0].first[0].out_features == 12
    assert len(blocks((4,), blocks=3)) == 3 and blocks((4,), width=5)[0].first[0].out_features == 5
    flat = blocks((1, 4, 4), network="dense")
    assert len(flat) == 8 and flat[0].first[0].out_features == 16


def test_images_get_convolutions_unless_asked_otherwise():
    def kind(shape, network="auto"):
        return GIN(network=network).is_convolutional(shape)

    assert not kind((5,)) and kind((4, 4)) and kind((3, 4, 4)) and not kind((2, 3, 4, 4))
    assert not kind((4, 4), "dense") and kind((4, 4), "conv")
    for shape in ((5,), (2, 3, 4, 4)):
        with pytest.raises(InputError, match="network='conv' needs images"):
            kind(shape, "conv")


def test_inputs_of_the_network_are_scaled_and_get_noise():
    method = GIN(standardize=True, noise=0.5)
    method.shape_, method.scale_ = (2,), torch.tensor([2.0, 4.0])
    x, eps = torch.tensor([[2.0, 8]]), torch.tensor([[1.0, -1]])
    assert method.to_network_input(x).tolist() == [[1, 2]]
    assert method.to_network_input(x, eps).tolist() == [[1.5, 1.5]]
    image = GIN(noise=1.0)
    image.shape_ = (2, 2)
    assert image.to_network_input(torch.zeros(3, 2, 2)).shape == (3, 1, 2, 2)
    image.shape_ = (5, 2, 2)
    assert image.to_network_input(torch.zeros(3, 5, 2, 2)).shape == (3, 5, 2, 2)
    image.shape_ = (7,)
    assert image.to_network_input(torch.zeros(3, 7)).shape == (3, 7)


def test_codes_fill_the_outputs_in_their_order():
    method = GIN()
    method.order_, method.output_means_ = torch.tensor([2, 0, 1]), torch.tensor([10.0, 20, 30])
    assert method.to_outputs(torch.tensor([[1.0], [2]])).tolist() == [[10, 20, 1], [10, 20, 2]]
    assert method.to_outputs(torch.tensor([[1.0, 2, 3]])).tolist() == [[2, 3, 1]]


def test_the_constant_of_the_likelihood_is_that_of_the_scaling():
    method = GIN(standardize=True)
    method.scale_ = torch.tensor([2.0, 4.0])
    assert method.constant() == pytest.approx(np.log(8)) and GIN().constant() == 0
    tails = GIN(heavy_tails=True, standardize=True)
    tails.scale_, tails.mean_log_det_ = method.scale_, 3.0
    assert tails.constant() == -3
    history = pd.DataFrame({"nats": [1.0, 3.0]})
    assert method.log_likelihood(history) == pytest.approx(-2 - np.log(8))
    assert method.log_likelihood(history.rename(columns={"nats": "loss"})) is None


def test_the_outlook_of_a_fitted_flow_on_other_data_is_that_of_a_new_one():
    x, u = blobs(90)
    method = GIN(**FLOW_SETTINGS).fit(x, u)
    classes, learned = np.arange(90) % 5, method.class_names_
    assert method.outlook(x, classes) == GIN(**FLOW_SETTINGS).outlook(x, classes)
    assert "5 classes guarantee 2 informative variables" in method.outlook(x, classes)[0]
    assert method.class_names_ == learned


@pytest.mark.parametrize(
    ("settings", "is_hidden"), [({}, False), ({"standardize": True}, True), ({"heavy_tails": True}, True)]
)
def test_noise_is_compared_with_the_features_that_the_network_sees(settings, is_hidden):
    """Features have a deviation of a hundred, or of one once they are scaled."""
    x, u = blobs(90)
    data = as_data(100 * x, u)
    method = GIN(**FLOW_SETTINGS, noise=0.5, **settings)
    method.validate_settings(data)
    method.prepare(data)
    assert any("noise dominates the features" in text for text in method.data_notes_) == is_hidden


def test_blocks_behind_convolutions_have_half_as_many_units_as_features():
    method = GIN()
    method.shape_ = (1, 8, 8)
    units = [m.out_features for m in method.build((1, 8, 8)).modules() if isinstance(m, torch.nn.Linear)]
    assert units == 4 * [32, 32, 64], "two halves of each of two blocks"
    wide = GIN(width=5, blocks=3)
    wide.shape_ = (1, 8, 8)
    units = [m.out_features for m in wide.build((1, 8, 8)).modules() if isinstance(m, torch.nn.Linear)]
    assert units == 6 * [5, 5, 64]
