"""Which strategy is chosen, by rule on a CPU and by a race on a GPU."""

import pytest
import torch

from tests.helpers import DATA, StepRecorder, X, small_method, train_all, validate
from unweave import InputError
from unweave.training import step, strategies
from unweave.training.loop import initialize_network, train
from unweave.training.strategies import choose_runner


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
def race(monkeypatch):
    """Which engine `_choose_on_gpu` makes when steps take these seconds, and which it tried; some fail."""
    monkeypatch.setattr(strategies, "_WINNERS", {})

    def run(clock, *, steps=10_000, models=4, convolutions=True, compiling="auto", strategy="auto"):
        tried = []

        def timed(made):
            tried.append(made)
            if isinstance(clock[made], Exception):
                raise clock[made]
            return clock[made]

        monkeypatch.setattr(strategies, "_seconds_per_step", timed)
        made = strategies._choose_on_gpu(
            lambda candidate: candidate,
            ("key", "", "", models),
            steps,
            convolutions,
            compiling,
            strategy,
        )
        return made, tried

    return run


FORK, FORKED, STACKED = ("fork", False), ("fork", True), ("stack", True)


def test_a_long_run_takes_the_fastest_strategy_and_remembers_it(race):
    clock = {FORK: 0.1, FORKED: 0.05, STACKED: 0.02}
    assert race(clock) == (STACKED, [FORK, FORKED, STACKED])
    assert race(clock) == (STACKED, [])


def test_short_runs_are_not_raced_and_very_short_ones_not_seconds_per_step(race):
    assert race({FORK: 0.001}) == (FORK, [FORK])
    assert race({FORK: 0.001}) == (FORK, [])  # remembered too
    assert race({}, steps=900, models=128) == (FORK, [])
    assert race({}, steps=900, convolutions=False) == (("stack", False), [])


def test_compiling_always_or_never_limits_the_race(race):
    assert race({FORKED: 0.001, STACKED: 0.0001}, compiling="always") == (FORKED, [FORKED])
    assert race({FORKED: 1.0, STACKED: 0.1}, compiling="always", models=5) == (STACKED, [FORKED, STACKED])
    assert race({FORK: 1.0}, compiling="never") == (FORK, [FORK])
    assert race({}, strategy="stack", compiling="never") == (("stack", False), [])


def test_a_failing_strategy_is_left_out_and_a_full_device_is_reported(race):
    broken = RuntimeError("no rule for this")
    with pytest.warns(RuntimeWarning, match="'fork' was left out: no rule"):
        assert race({FORK: broken, FORKED: broken, STACKED: 1.0})[0] == STACKED
    with pytest.warns(RuntimeWarning), pytest.raises(InputError, match="no strategy works on this device"):
        race({FORK: broken, FORKED: broken, STACKED: broken}, models=5)
    full = RuntimeError("capture failed")
    full.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.warns(RuntimeWarning), pytest.raises(torch.OutOfMemoryError):
        race({FORK: full}, models=6)


def test_a_race_ends_if_the_gpu_is_lost(race, monkeypatch):
    monkeypatch.setattr(strategies, "is_device_lost", lambda error: "illegal" in str(error))
    with pytest.raises(RuntimeError, match="illegal memory access"):  # and no warning that a strategy was left out
        race({FORK: RuntimeError("an illegal memory access")})
