"""How many threads a training uses, and how they wait."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers import DATA, StepRecorder, X, train_all, validate
from unweave.data.containers import Table
from unweave.methods import BetaVAE
from unweave.training import strategies
from unweave.training.loop import initialize_network
from unweave.training.step import inspect_loss
from unweave.training.strategies import choose_threads, use_threads


@pytest.fixture
def cores(monkeypatch):
    """Pretend that this machine has a number of cores, all of which torch uses."""

    def set_cores(n):
        for name in strategies.THREAD_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(strategies, "default_thread_counts", lambda: {n})
        torch.set_num_threads(n)

    yield set_cores
    torch.set_num_threads(1)


def test_threads_grow_with_the_work_up_to_the_number_of_cores(cores):
    cores(4)
    assert [choose_threads(flops) for flops in (0, 2e7, 2.5e9, 1e12)] == [1, 1, 2, 4]


@pytest.mark.parametrize("name", strategies.THREAD_VARIABLES)
def test_a_number_of_threads_in_the_environment_is_kept(cores, monkeypatch, name):
    cores(3)
    monkeypatch.setenv(name, "3")
    assert choose_threads(1e6) == 3


def test_a_number_of_threads_that_the_program_has_set_is_kept(cores):
    cores(4)
    torch.set_num_threads(3)
    assert choose_threads(1e6) == 3


def test_torch_begins_with_a_default_number_of_threads():
    code = "import torch; from unweave.training.strategies import default_thread_counts as counts\n"
    code += "assert torch.get_num_threads() in counts(), (torch.get_num_threads(), counts())"
    env = {k: v for k, v in os.environ.items() if k not in strategies.THREAD_VARIABLES}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_former_threads_are_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), use_threads(2):
        assert torch.get_num_threads() == 2
        raise ZeroDivisionError
    assert torch.get_num_threads() == 1


class ThreadRecorder(StepRecorder):
    """Has the number of threads as a term of its loss."""

    def loss(self, net, batch):
        terms = super().loss(net, batch)
        return terms | {"threads": 0 * terms["t"] + torch.get_num_threads()}


def test_small_steps_use_one_thread_and_the_number_is_restored(cores):
    cores(2)
    (method,) = train_all([ThreadRecorder(steps=5)])
    assert set(method.history["threads"]) == {1.0}
    assert method.trained_ == "loop on cpu, 1 thread"
    assert torch.get_num_threads() == 2


def test_large_steps_use_all_threads_with_the_same_result(cores, monkeypatch):
    (one,) = train_all([BetaVAE(steps=20, layers=(32,))])
    cores(2)
    monkeypatch.setattr(strategies, "FLOPS_PER_THREAD", 1.0)
    (two,) = train_all([BetaVAE(steps=20, layers=(32,))])
    assert two.trained_ == "loop on cpu, 2 threads"
    np.testing.assert_allclose(two.transform(X), one.transform(X), atol=1e-5)


def test_operations_of_layers_are_those_of_the_counter_of_torch():
    x = torch.rand(8, 1, 32, 32)
    images = Table(x, torch.zeros(8, 0), [])
    for data, settings in ((DATA, {"layers": (8, 4)}), (images, {"batch_size": 3})):
        (method,) = validate([BetaVAE(**settings)], data)
        facts = inspect_loss(method, initialize_network(method), data)
        assert facts.layer_flops == facts.flops > 0
    net = initialize_network(method)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net.decoder(net.encoder(x[:3]).chunk(2, 1)[0])
    assert facts.layer_flops == 3 * counter.get_total_flops()  # a backward pass costs two forward passes


@pytest.mark.parametrize(
    ("before", "policy"),
    [
        ("", "PASSIVE"),
        ("os.environ['OMP_WAIT_POLICY'] = 'ACTIVE'", "ACTIVE"),
        ("os.environ['KMP_BLOCKTIME'] = '1'", None),
        ("sys.modules['torch'] = sys", None),  # its threads have begun to wait in their own way
    ],
)
def test_threads_wait_passively_unless_the_user_has_chosen(before, policy):
    code = f"import os, sys\n{before}\nimport unweave\nprint(os.environ.get('OMP_WAIT_POLICY'))"
    env = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == str(policy)
