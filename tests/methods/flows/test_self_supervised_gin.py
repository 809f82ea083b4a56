"""Self-supervised GIN: the loss by hand, augmented copies, recovered sources."""

import re

import numpy as np
import pytest
import torch
from scipy import stats

from tests.helpers import FLOW_SETTINGS, blobs, flow_batch
from unweave.data.conversion import as_data
from unweave.datasets import GaussianMixture
from unweave.methods import SelfSupervisedGIN
from unweave.methods.flows.self_supervised_gin import count_variations
from unweave.metrics import mcc
from unweave.utils.errors import InputError


def test_the_loss_is_equation_7_over_the_copies_of_each_point():
    data = GaussianMixture(points=200, noise_dims=2).load()
    method = SelfSupervisedGIN(**FLOW_SETTINGS, augment=("z1",), copies=5)
    net, batch = flow_batch(method, data, 20)
    y = net.flow(batch["x"] + 0.01 * batch["eps"])[0].detach().numpy().astype(np.float64).reshape(20, 5, 4)
    nats = -stats.norm(y.mean(1, keepdims=True), y.std(1, keepdims=True)).logpdf(y).sum(2)
    assert float(method.loss(net, batch)["nats"]) == pytest.approx(nats.mean(), rel=1e-4)


def test_copies_of_images_are_transformed_except_the_first():
    x = np.random.default_rng(0).random((30, 1, 8, 8)).astype(np.float32)
    method = SelfSupervisedGIN(conv_blocks=1, conv_widths=(4,), width=8, copies=4, augment=("translation",))
    _, batch = flow_batch(method, as_data(x), 3)
    moved = method.augment_copies(batch).reshape(3, 4, 64)
    plain = batch["x"].reshape(3, 4, 64)
    torch.testing.assert_close(moved[:, 0], plain[:, 0], atol=1e-6, rtol=0)
    assert float((moved[:, 1:] - plain[:, 1:]).abs().amax((0, 2)).min()) > 0.1


def test_both_sources_are_recovered_without_labels():
    data = GaussianMixture(points=2_000, noise_dims=3, seed=1).load()
    method = SelfSupervisedGIN(steps=150, batch_size=100, augment=("z1", "z2")).fit(data)
    x, c = data.collect(2_000, torch.Generator().manual_seed(0))
    assert method.latent_dim_ == method.n_informative_ == 2
    assert mcc(c[:, 1:3].numpy(), method.transform(x)) > 0.95
    text = " ".join(method.diagnosis_)
    assert "all there are" in text
    before = " ".join(method.outlook(data))
    assert re.search("copies of an observation differ in [2-4] directions", before)


def test_the_codes_that_an_augmentation_moves_are_counted_from_one():
    method = SelfSupervisedGIN(augment=("z1",))
    method.order_ = method.informative_ = torch.tensor([2, 0, 1, 3])
    method.n_informative_, method.informative_ = 2, torch.tensor([2, 0])
    method.set_deviations_ = torch.tensor([0.9, 0.1, 0.1, 0.1])  # of latent variables 0 to 3
    text = "Augmentation moves 1 informative code (2); the other 1 vary only by the noise"
    assert method._describe_moved_codes().startswith(text)
    method.set_deviations_ = torch.tensor([0.9, 0.1, 0.9, 0.1])
    assert method._describe_moved_codes() == "Augmentation moves 2 informative codes (1, 2), all there are."


def test_uniform_moves_vary_only_the_means_of_the_sets():
    data = GaussianMixture(points=2_000, noise_dims=2, blocks=0).load()  # not mixed: all sets have the same deviations
    method = SelfSupervisedGIN(**FLOW_SETTINGS | {"steps": 1}, augment=("z1", "z2")).fit(data)
    assert any("vary in 2 of 4 independent ways: fewer" in text for text in method.diagnosis_)


def test_variations_between_sets_are_counted_and_chance_is_not():
    rng = torch.Generator().manual_seed(0)
    noise, center, scale = (torch.randn(1_000, c, 2, generator=rng) for c in (10, 1, 1))
    assert count_variations(noise) == 0
    assert count_variations(noise + center) == 2
    assert count_variations(noise + center[:, :, :1]) == 1  # both means move together
    assert count_variations(center + noise * (0.7 * scale).exp()) == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"copies": 1}, "copies=1"),
        ({"augment": ("rotation",)}, "rotation move images"),
        ({"augment": ("z9",)}, "no factor named 'z9'.*rotation.*z1"),
        ({"augment": ("z1", "rotation")}, "move images|not both"),
        ({"noise": 0.0}, "all copies of an observation would be the same"),
    ],
)
def test_augmentations_that_cannot_work_are_an_error(settings, words):
    with pytest.raises(InputError, match=words):
        SelfSupervisedGIN(**FLOW_SETTINGS | settings).fit(GaussianMixture(points=100, noise_dims=2).load())


def test_augmenting_rows_of_a_table_along_factors_is_an_error():
    x, u = blobs()
    with pytest.raises(InputError, match="rendered at any real value"):
        SelfSupervisedGIN(**FLOW_SETTINGS, augment=("y",)).fit(as_data(x, u))


def described(copies=10, augment=("z1",), n=2, features=4, rank=4, deviations=(0.9, 0.8, 0.1, 0.1)):
    """A method whose training has found n informative variables, in the order of the network."""
    method = SelfSupervisedGIN(copies=copies, augment=augment)
    method.shape_, method.order_, method.n_informative_ = (features,), torch.arange(features), n
    method.informative_, method.rank_, method.set_deviations_ = list(range(n)), rank, torch.tensor(deviations)
    return method.diagnose()


def test_conditions_of_the_theorem_are_described():
    ways = "Means and deviations of the augmented sets vary in"
    assert described() == [
        f"{ways} 4 of 4 independent ways: the Jacobian of the coefficients has full row rank.",
        "Augmentation moves 2 informative codes (1, 2), all there are.",
    ]
    needed, rank, moved = described(n=3, rank=5, copies=7)
    assert needed == "3 informative variables need 6 features (n k <= d), and there are 4: no guarantee."
    assert rank == f"{ways} 5 of 6 independent ways: fewer than the theorem requires, or than 7 copies can show."
    assert moved.startswith("Augmentation moves 2 informative codes (1, 2); the other 1 vary only by the noise")
    assert described(n=4)[-1] == "Augmentation moves 4 informative codes (1, 2, 3, 4), all there are.", "no noise left"
    assert described(deviations=(0.1, 0.1, 0.1, 0.1))[-1].startswith(
        "Augmentation moves 0 informative codes; the other 2"
    )
    assert described(augment=())[-1].startswith("Noise moves all directions alike")
    for share, count in ((2.9, 1), (3.1, 2)):  # three times the deviation by noise
        text = described(deviations=(0.9, 0.1 * share, 0.1, 0.1))[-1]
        assert text.startswith(f"Augmentation moves {count} informative code")


@pytest.mark.parametrize(("features", "sets"), [(4, 1_000), (2**26 // 10 // 300, 300), (2**26, 100)])
def test_statistics_are_over_a_thousand_sets_but_fewer_of_large_observations(monkeypatch, features, sets):
    method = SelfSupervisedGIN(copies=10)
    method.shape_ = (features,)

    def stop(data, count, rng):
        raise ValueError(count)

    monkeypatch.setattr(method, "_sample_copies", stop)
    with pytest.raises(ValueError, match=f"^{sets}$"):
        method.summarize(None, torch.Generator())


def test_copies_differ_in_as_many_directions_as_they_are_moved_along():
    data = GaussianMixture(points=300, noise_dims=2, blocks=0).load()
    for augment, copies, directions in (
        (("z1",), 6, "1 direction"),
        (("z1", "z2"), 6, "2 directions"),
        ((), 3, "0 dir"),
    ):
        method = SelfSupervisedGIN(**FLOW_SETTINGS, augment=augment, copies=copies)
        text = method.outlook(data)[-1]
        assert text.startswith(f"The copies of an observation differ in {directions}")
        assert f"({copies} copies can show at most {min(copies - 1, 4)})." in text


def test_fewer_than_four_copies_show_no_variation():
    sets = torch.randn(500, 5, 2, generator=torch.Generator().manual_seed(0))
    moved = sets + 5 * torch.randn(500, 1, 2, generator=torch.Generator().manual_seed(1))
    assert [count_variations(moved[:, :copies]) for copies in (3, 4, 5)] == [0, 2, 2]
