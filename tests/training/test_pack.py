"""Packs: a lane is trained as if it were alone."""

import numpy as np
import pytest
import torch

from tests.helpers import DATA, NETWORKS, StepRecorder, X, small_method, train_all, validate
from unweave import InputError
from unweave.data.conversion import as_data
from unweave.methods import BetaVAE
from unweave.training.loop import initialize_network, train
from unweave.training.pack import LaneGroup

IMAGES = as_data(np.random.default_rng(1).uniform(size=(100, 1, 16, 16)).astype(np.float32))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_lane_of_a_pack_equals_its_solo_run(name):
    settings = [{"seed": 0}, {"seed": 1, "lr": 2e-3}, {"seed": 2, "lr": 3e-3}]
    # In the game of a GAN, rounding errors grow tenfold in two steps; flows and translators take long.
    steps = 20 if name == "infogan-cr" else 60 if "gin" in name or "intervention" in name else 200
    pack = train_all([small_method(name, steps=steps, **s) for s in settings], strategy="stack", compiling="never")
    for i in (0, 1):
        (solo,) = train_all([small_method(name, steps=steps, **settings[i])], compiling="never")
        np.testing.assert_allclose(pack[i].transform(X), solo.transform(X), atol=1e-5)
        torch.testing.assert_close(pack[i].history_, solo.history_, atol=1e-3, rtol=1e-4)
    assert np.abs(pack[0].transform(X) - pack[1].transform(X)).max() > 1e-3


def test_a_stack_of_convolutional_networks_equals_the_solo_run():
    pack = [BetaVAE(seed=i, steps=20, widths=(4, 6), hidden=(8,), latent_dim=2) for i in range(2)]
    train_all(pack, IMAGES, strategy="stack", compiling="never")
    (solo,) = train_all([BetaVAE(seed=1, steps=20, widths=(4, 6), hidden=(8,), latent_dim=2)], IMAGES)
    x = IMAGES.x.numpy()
    np.testing.assert_allclose(pack[1].transform(x), solo.transform(x), atol=1e-5)


def test_a_pack_of_two_signatures_is_refused():
    with pytest.raises(InputError, match="differ in seed and lanes alone"):
        train(validate([small_method("beta-vae"), small_method("beta-vae", batch_size=8)]), DATA)
    assert (
        small_method("beta-vae", beta=1.0).pack_signature()
        == small_method("beta-vae", beta=2.0, lr=1.0, seed=3).pack_signature()
    )
    assert small_method("beta-vae").pack_signature() != small_method("beta-vae", layers=(9,)).pack_signature()


class Seedy(StepRecorder):
    """Prepares something that depends on the seed."""

    def prepare(self, data):
        self.w_ = float(self.seed)


def test_methods_that_prepare_differently_cannot_share_a_pack():
    with pytest.raises(InputError, match="prepare set different values in a pack"):
        train(validate([Seedy(seed=1, steps=2), Seedy(seed=2, steps=2)]), DATA)


@pytest.mark.parametrize("stacked", [False, True])
def test_the_memory_of_a_captured_graph_gives_the_same_batches(stacked):
    pack = validate([small_method("factor-vae", seed=i) for i in range(2 if stacked else 1)])
    group = LaneGroup(pack, [initialize_network(method) for method in pack], DATA, stacked)
    group.load_graph_chunk(group.sample_chunk(5))  # memory for five steps
    chunk = group.sample_chunk(3)
    group.load_graph_chunk(chunk)
    for i in range(3):
        expected = group.batch(chunk, i)
        captured = group.batch(group.graph_chunk, torch.tensor([i]))
        assert captured.keys() == expected.keys()
        assert all(torch.equal(captured[name], expected[name]) for name in expected)
    group.load_graph_views(2)  # where rendering cannot be captured
    assert torch.equal(group.batch(group.graph_chunk, torch.tensor([2]))["x"], expected["x"])
