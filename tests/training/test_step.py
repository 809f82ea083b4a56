"""One training step: compiled or not, with a loss of scalars."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers import DATA, NETWORKS, StepRecorder, X, small_method, train_all
from unweave import InputError
from unweave.data.conversion import as_data
from unweave.methods import BetaVAE
from unweave.training import step


@pytest.mark.parametrize("name", NETWORKS)
def test_every_loss_compiles_to_one_graph(name, monkeypatch):
    """The compiler's first half, which a graph break would stop; its second half is tested below."""
    monkeypatch.setattr(step, "BACKEND", "eager")
    torch._dynamo.reset()
    (method,) = train_all([small_method(name, steps=3)], compiling="always")
    assert method.trained_ == "loop, compiled on cpu, 1 thread"
    (plain,) = train_all([small_method(name, steps=3)], compiling="never")
    np.testing.assert_allclose(method.transform(X), plain.transform(X), atol=1e-6)


def test_a_compiled_pack_gives_the_same_result():
    settings = {"steps": 200, "latent_dim": 2, "layers": (8,), "batch_size": 16}
    try:
        pack = train_all([BetaVAE(seed=i, beta=1.0 + i, **settings) for i in range(3)], compiling="always")
    except Exception as error:
        pytest.skip(f"no compiler here: {str(error).splitlines()[0]}")
    assert pack[0].trained_ == "stack, compiled on cpu, 1 thread"
    (solo,) = train_all([BetaVAE(seed=2, beta=3.0, **settings)], compiling="never")
    np.testing.assert_allclose(pack[2].transform(X), solo.transform(X), atol=1e-5)


class Shapeless(StepRecorder):
    """A loss that forgets to average."""

    def loss(self, net, batch):
        return {"loss": net(batch["x"]).square()}


def test_a_loss_that_is_no_scalar_is_refused():
    with pytest.raises(InputError, match=r"shapeless.loss gave \{'loss': \(64, 10\)\}: expected scalars"):
        Shapeless(steps=3).fit(X)


class Shifted(StepRecorder):
    """Uses what it prepared: a tensor."""

    def prepare(self, data):
        self.mean_ = data.x.mean(0)

    def loss(self, net, batch):
        off = (batch["x"].mean(0) - self.mean_).abs().max()
        return {"loss": net(batch["x"]).square().mean(), "off": off}


def test_a_compiled_step_is_not_used_for_other_data_or_another_class(monkeypatch):
    monkeypatch.setattr(step, "BACKEND", "eager")
    for data in (DATA, as_data(X + 50)):
        (method,) = train_all([Shifted(steps=3)], data, compiling="always")
        assert method.history["off"].max() < 2
    losses = []
    for target in (0.0, 100.0):

        class Redefined(StepRecorder):
            """The same name, another loss."""

            def loss(self, net, batch, target=target):
                return {"loss": (net(batch["x"]) - target).square().mean()}

        (method,) = train_all([Redefined(steps=2)], compiling="always")
        losses.append(method.history["loss"].iloc[0])
    assert losses[1] > 1_000 * losses[0]


def test_by_default_convolutions_on_a_gpu_are_in_bf16(monkeypatch):
    conv, linear = nn.Conv2d(1, 1, 3), nn.Linear(1, 1)
    assert not step.uses_bf16(BetaVAE(), conv)
    assert step.uses_bf16(BetaVAE(precision="bf16"), linear)
    monkeypatch.setattr(step, "network_device", lambda net: torch.device("cuda"))
    for is_supported in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda is_supported=is_supported, **_: is_supported)
        assert step.uses_bf16(BetaVAE(), conv) == is_supported
        assert not step.uses_bf16(BetaVAE(), linear)
        assert not step.uses_bf16(BetaVAE(precision="tf32"), conv)
