"""Adam, gradient clipping, and which optimizer a parameter has."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers import flat_weights, small_method, train_all
from unweave import InputError
from unweave.training.adam import Adam, adam_step, assign_optimizers, clip_gradients, update_averages
from unweave.training.loop import initialize_network


def test_adam_equals_the_one_of_torch_for_every_prefix():
    torch.manual_seed(0)
    net = nn.ModuleDict({"body": nn.Linear(3, 2), "critic": nn.Linear(2, 1)})
    theirs = torch.optim.Adam(
        [
            {"params": net["body"].parameters(), "lr": 1e-2},
            {"params": net["critic"].parameters(), "lr": 1e-3, "betas": (0.5, 0.9)},
        ]
    )
    ours = {k: p.detach().clone() for k, p in net.named_parameters()}
    m, v = ({k: torch.zeros_like(p) for k, p in ours.items()} for _ in range(2))
    optimizers = {"": Adam(1e-2), "critic.": Adam(torch.tensor(1e-3), (0.5, 0.9))}
    owner = assign_optimizers(ours, optimizers)
    assert set(owner.values()) == {"", "critic."}
    for t in range(1, 6):
        x = torch.randn(4, 3)
        theirs.zero_grad()
        net["critic"](net["body"](x)).square().sum().backward()
        grads = {k: p.grad.clone() for k, p in net.named_parameters()}
        theirs.step()
        adam_step(ours, grads, m, v, torch.tensor(float(t)), optimizers, owner)
        for k, p in net.named_parameters():
            torch.testing.assert_close(ours[k], p.detach(), atol=1e-7, rtol=1e-5)


KERNEL = """
import torch
from unweave.training.adam import _update_foreach
from unweave.training.adam_kernel import launch_adam
torch.manual_seed(0)
shapes = [(3, 7), (3, 5, 500), (3, 1024)]
for step_size in (torch.tensor([0.1, 0.2, 0.3]), torch.tensor(0.1)):
    tensors = [[torch.rand(shape) for shape in shapes] for _ in range(4)]
    tensors[3] = [0 * v for v in tensors[3]]  # second moments, which are small
    copies = [[x.clone() for x in part] for part in tensors]
    for update, parts in ((launch_adam, tensors), (_update_foreach, copies)):
        update(*parts, step_size, torch.tensor(1.5), (0.9, 0.999), 1e-3)
    for part, copy, atol in zip(tensors, copies, (1e-6, 0, 0, 0), strict=True):  # differences may be near zero
        torch.testing.assert_close(part, copy, atol=atol, rtol=3e-6)
"""


def test_the_kernel_equals_the_operations_of_torch():
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", KERNEL], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_operator_updates_large_parameters_of_a_compiled_stack(monkeypatch):
    monkeypatch.setattr("unweave.training.step.lane_conv.is_available", lambda device: True)
    weights, calls = [], []
    for min_size in (10**9, 1):
        monkeypatch.setattr("unweave.training.adam.MIN_MEAN_SIZE", min_size)
        monkeypatch.setattr("unweave.training.step._COMPILED", {})  # the same method, compiled again
        monkeypatch.setattr("unweave.training.step.BACKEND", "aot_eager")
        pack = [small_method("factor-vae", steps=3, lr=lr) for lr in (1e-3, 1e-2)]
        with torch.profiler.profile() as profile:
            train_all(pack, strategy="stack", compiling="always")
        calls.append(sum(event.name == "unweave::adam_lanes" for event in profile.events()))
        weights.append([flat_weights(method) for method in pack])
    assert calls[0] == 0 and calls[1] > 0
    torch.testing.assert_close(*weights)


def test_a_stack_has_a_learning_rate_for_every_lane():
    p = {"w": torch.zeros(2, 3, 3)}
    m, v = {"w": torch.zeros(2, 3, 3)}, {"w": torch.zeros(2, 3, 3)}
    optimizers = {"": Adam(torch.tensor([0.1, 0.5]))}
    adam_step(p, {"w": torch.ones(2, 3, 3)}, m, v, torch.tensor(1.0), optimizers, {"w": ""})
    torch.testing.assert_close(p["w"][:, 0, 0], torch.tensor([-0.1, -0.5]))  # the first step has the size of lr


def test_schedules_lower_the_learning_rate():
    progress = torch.tensor([0.0, 0.25, 0.5, 0.8])
    rate = {name: Adam(2.0).at_progress(progress, name).lr for name in ("constant", "cosine", "step")}
    assert rate["constant"] == 2.0
    torch.testing.assert_close(rate["cosine"], torch.tensor([2.0, 1 + 0.5**0.5, 1.0, 1 - math.cos(0.2 * math.pi)]))
    torch.testing.assert_close(rate["step"], torch.tensor([2.0, 2.0, 0.2, 0.02]))
    both = Adam(2.0, decay_after=0.3).at_progress(progress, "step").lr
    torch.testing.assert_close(both, torch.tensor([2.0, 2.0, 0.02, 0.002]))


@pytest.mark.parametrize("schedule", ["cosine", "step"])
def test_a_schedule_applies_to_all_weights_from_the_second_step_on(schedule):
    x = np.random.default_rng(0).normal(size=(60, 4))
    for steps in (1, 2):
        plain, scheduled = (
            dict(small_method("factor-vae", steps=steps, lr=1e-2, lr_schedule=name).fit(x).net_.named_parameters())
            for name in ("constant", schedule)
        )
        assert [torch.equal(plain[k], scheduled[k]) for k in plain] == [steps == 1] * len(plain), "critic included"


def test_averaged_weights_forget_the_initial_ones_and_follow_the_trained_ones():
    params, averages = {"w": torch.zeros(2, 3)}, {"w": torch.full((2, 3), 8.0)}
    expected = 8.0
    for t in range(1, 6):
        params["w"].fill_(float(t))
        update_averages(averages, params, torch.tensor(float(t)), 0.25)
        decay = min(0.25, (1 + t) / (10 + t))
        expected = decay * expected + (1 - decay) * t
    torch.testing.assert_close(averages["w"], torch.full((2, 3), expected))


def test_the_trained_network_has_averaged_weights():
    x = np.random.default_rng(0).normal(size=(60, 4))
    last, short, long = (
        flat_weights(small_method("beta-vae", steps=20, lr=1e-2, weight_average=decay).fit(x))
        for decay in (0, 1e-9, 0.9)
    )
    torch.testing.assert_close(short, last)
    assert not torch.allclose(long, last, atol=1e-3)
    with pytest.raises(InputError, match="weight_average=1"):
        small_method("beta-vae", weight_average=1.0).fit(x)


def test_clipping_is_by_the_norm_of_all_weights_of_a_lane():
    grads = {"a": torch.tensor([[3.0], [0.3]]), "b": torch.tensor([[4.0], [0.4]])}
    short = clip_gradients(grads, 1.0, lane_axes=1)
    torch.testing.assert_close(torch.cat([short["a"], short["b"]], 1), torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    alone = clip_gradients({k: g[0] for k, g in grads.items()}, 1.0, lane_axes=0)
    torch.testing.assert_close(alone["b"], torch.tensor([0.8]))


def test_optimizer_prefixes_without_parameters_are_named():
    with pytest.raises(InputError, match=r"none fits the parameter 'b\.w'"):
        assign_optimizers(["a.w", "b.w"], ["a."])
    with pytest.raises(InputError, match=r"no parameter begins with 'c\.'"):
        assign_optimizers(["a.w"], ["", "c."])


def test_the_critic_has_its_own_learning_rate():
    (a,) = train_all([small_method("factor-vae", steps=5, critic_lr=0.0)])
    start = initialize_network(a)
    same = [torch.equal(p, q) for p, q in zip(a.net_.critic.parameters(), start.critic.parameters(), strict=True)]
    assert all(same)
    assert not torch.equal(next(a.net_.encoder.parameters()), next(start.encoder.parameters()))
