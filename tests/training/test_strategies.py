"""Which strategy is chosen, by rule."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.helpers import DATA, StepRecorder, X, small_method, train_all, validate
from unweave import InputError
from unweave.data.conversion import as_data
from unweave.training import compile_cache, step, strategies
from unweave.training.loop import initialize_network, train
from unweave.training.strategies import choose_runner

IMAGES = as_data(np.random.default_rng(1).uniform(size=(100, 1, 16, 16)).astype(np.float32))


def test_unavailable_strategies_and_devices_are_named():
    pack = validate([small_method("beta-vae")])
    with pytest.raises(InputError, match="needs a CUDA device"):
        train(pack, DATA, strategy="fork")
    with pytest.raises(InputError, match="strategy='heap'"):
        train(pack, DATA, strategy="heap")
    with pytest.raises(InputError, match="device='cuda:9' cannot be used"):
        small_method("beta-vae", device="cuda:9").fit(X)
    with pytest.raises(InputError, match="steps=0"):
        small_method("beta-vae", steps=0).fit(X)


def test_an_environment_variable_sets_the_strategy(monkeypatch):
    seen = []
    monkeypatch.setenv("UNWEAVE_STRATEGY", "stack")
    train_all([StepRecorder(steps=20)], callback=seen.append)
    assert seen[-1].strategy == "stack"
    monkeypatch.setenv("UNWEAVE_STRATEGY", "pile")
    with pytest.raises(InputError, match="strategy='pile': expected 'auto', 'loop', 'stack' or 'fork'"):
        train_all([StepRecorder(steps=20)])


def test_short_runs_are_not_compiled_and_long_ones_are(monkeypatch):
    pack = validate([small_method("beta-vae")])
    net = [initialize_network(pack[0])]
    monkeypatch.setattr(step, "BACKEND", "eager")
    short = choose_runner(pack, net, DATA, window=1, compiling="auto", strategy="auto")
    assert short.strategy == "loop"
    long = validate([small_method("beta-vae", steps=10**6, seed=i) for i in range(2)])
    runner = choose_runner(
        long, [initialize_network(m) for m in long], DATA, window=1_000, compiling="auto", strategy="auto"
    )
    assert runner.strategy == "stack, compiled"


def test_without_a_compiler_training_continues_with_a_warning(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler was found\nmore text")

    monkeypatch.setattr(step.torch, "compile", broken)
    step._COMPILED.clear()
    pack = validate([small_method("beta-vae", steps=10**6)])
    with pytest.warns(RuntimeWarning, match="cannot be compiled here .* no compiler was found$"):
        runner = choose_runner(
            pack, [initialize_network(pack[0])], DATA, window=1_000, compiling="auto", strategy="auto"
        )
    assert runner.strategy == "loop"
    with pytest.raises(RuntimeError, match="no compiler"):
        choose_runner(pack, [initialize_network(pack[0])], DATA, window=1_000, compiling="always", strategy="auto")


@pytest.fixture
def choose_on_gpu(monkeypatch, tmp_path):
    """Return which candidates `choose_runner` tries for a pack of beta-VAEs on a GPU; making them may fail."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    monkeypatch.delenv(compile_cache.VARIABLE, raising=False)
    monkeypatch.setattr(strategies, "network_device", lambda net: torch.device("cuda"))

    def choose(data=IMAGES, *, models=10, steps=10**6, compiling="auto", strategy="auto", previous="", error=None):
        tried = []

        def make(pack, nets, data, facts, window, candidate):
            tried.append(candidate)
            return SimpleNamespace(threads=1, warm_up=warm_up)

        def warm_up(count):
            assert count == min(100, steps)
            if error is not None:
                raise error

        monkeypatch.setattr(strategies, "_make_runner", make)
        pack = validate([small_method("beta-vae", steps=steps, seed=i) for i in range(models)], data)
        nets = [initialize_network(method) for method in pack]
        settings = {"compiling": compiling, "strategy": strategy, "previous": previous}
        choose_runner(pack, nets, data, window=1_000, **settings)
        return tried

    return choose


def test_long_runs_on_a_gpu_are_compiled_stacks_and_short_ones_are_not_compiled(choose_on_gpu):
    assert choose_on_gpu() == choose_on_gpu(models=1) == choose_on_gpu(DATA) == [("stack", True)]
    assert choose_on_gpu(steps=1_000) == choose_on_gpu(steps=5) == [("fork", False)]
    assert choose_on_gpu(DATA, steps=1_000) == [("stack", False)]
    assert choose_on_gpu(DATA, steps=1_000, models=1) == [("fork", False)]


def test_on_a_gpu_settings_and_an_earlier_choice_come_before_the_rule(choose_on_gpu):
    assert choose_on_gpu(compiling="never") == [("fork", False)]
    assert choose_on_gpu(compiling="always", steps=5) == [("stack", True)]
    assert choose_on_gpu(strategy="fork") == [("fork", True)]
    assert choose_on_gpu(strategy="stack", compiling="never") == [("stack", False)]
    assert choose_on_gpu(previous="fork") == [("fork", False)]
    assert choose_on_gpu(previous="fork, compiled", strategy="stack") == [("stack", True)]


def test_a_step_that_was_compiled_before_is_compiled_for_shorter_runs(choose_on_gpu):
    steps = 100_000
    assert choose_on_gpu(steps=steps, models=2) == [("fork", False)]
    (method,) = validate([small_method("beta-vae", steps=7)], IMAGES)  # of any length
    compile_cache.mark_compiled(step.step_key(method, 2, stacked=True))
    assert choose_on_gpu(steps=steps, models=2) == [("stack", True)]
    assert choose_on_gpu(steps=steps, models=3) == [("fork", False)]


def test_a_stack_that_cannot_be_compiled_on_a_gpu_trains_as_a_fork(choose_on_gpu, monkeypatch):
    broken = RuntimeError("operation not permitted when stream is capturing")
    with pytest.warns(RuntimeWarning, match="cannot be compiled here .* not permitted"):
        assert choose_on_gpu(error=broken) == [("stack", True), ("fork", False)]
    with pytest.raises(RuntimeError, match="not permitted"):
        choose_on_gpu(error=broken, compiling="always")
    full = RuntimeError("capture failed")
    full.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(RuntimeError, match="capture failed"):  # callers try again with fewer models
        choose_on_gpu(error=full)
    monkeypatch.setattr(strategies, "is_device_lost", lambda error: "illegal" in str(error))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        choose_on_gpu(error=RuntimeError("an illegal memory access"))
