"""Estimates of time: the arithmetic with a clock of its own, and the methods that are timed."""

import numpy as np
import pytest

from tests.helpers import DATA, small_method
from unweave.data.containers import Table
from unweave.data.conversion import as_data
from unweave.data.dataset import Dataset
from unweave.experiments import timing
from unweave.experiments.timing import (
    describe_long_run,
    estimate_seconds,
    extrapolate,
    prepare_steps,
    resize_images,
    seconds_per_step,
    shorter_runs,
)
from unweave.methods import PCA, BetaVAE, HessianICA
from unweave.utils.errors import InputError


class Steps:
    """A clock that only steps move: the first takes ten seconds longer."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.count = seconds, 0.0, 0

    def take(self, count: int) -> None:
        self.now += count * self.seconds + (10.0 if self.count == 0 else 0.0)
        self.count += count

    def clock(self) -> float:
        return self.now


def test_the_first_steps_do_not_count_and_the_budget_holds():
    steps = Steps(0.5)
    assert seconds_per_step(steps.take, 60.0, steps.clock) == pytest.approx(0.5)
    assert steps.now <= 60 and steps.count == 63, "rounds of 1, 2, 4, ..., 32 steps"
    slow = Steps(100.0)
    assert seconds_per_step(slow.take, 5.0, slow.clock) == pytest.approx(110.0)
    assert slow.count == 1, "a step longer than the budget is taken once"


def test_steps_and_restarts_are_multiplied(monkeypatch):
    steps = Steps(0.5)
    monkeypatch.setattr(timing, "prepare_steps", lambda method, data: steps.take)
    method = BetaVAE(steps=2_000)
    assert estimate_seconds(method, DATA, budget=60, clock=steps.clock) == pytest.approx(1_000)
    gin = small_method("gin", steps=100, restarts=3)
    assert estimate_seconds(gin, DATA, budget=60, clock=steps.clock) == pytest.approx(150)


def test_rows_are_extrapolated_with_the_stated_exponents():
    assert extrapolate(2.0, 100, 1_000, spectral=False) == pytest.approx(20)
    assert extrapolate(2.0, 400, 4_000, spectral=True) == pytest.approx(2 * 10**1.1)
    landmarks = extrapolate(2.0, 400, 100_000, spectral=True)
    assert landmarks == pytest.approx(2 * 7.5**1.1), "of many points, 3,000 landmarks are solved for"
    assert extrapolate(2.0, 400, 103_000, spectral=True, rendering=0.4) == pytest.approx(landmarks + 100)
    assert extrapolate(2.0, 400, 100, spectral=True) == pytest.approx(2.0)


def test_real_methods_are_timed_and_stay_unfitted():
    for method in (small_method("beta-vae"), PCA(latent_dim=2), HessianICA()):
        assert 0 < estimate_seconds(method, DATA, budget=0.05) < 60
        assert not [name for name in vars(method) if name.endswith("_")]
    with pytest.raises(InputError, match="no factor is discrete"):
        estimate_seconds(small_method("gin"), as_data(np.random.default_rng(0).normal(size=(50, 3))))


def test_steps_are_those_of_training():
    taken = []
    method = small_method("beta-vae")
    original = type(method).loss
    try:
        type(method).loss = lambda self, net, batch: (taken.append(len(batch["x"])), original(self, net, batch))[1]
        take_steps = prepare_steps(method, DATA)
        taken.clear()
        take_steps(3)
    finally:
        type(method).loss = original
    assert taken == [method.batch_size] * 3


class Resizable(Dataset):
    resize: int = 0

    def load(self) -> Table:
        raise NotImplementedError


def test_a_long_run_comes_with_shorter_ones(monkeypatch):
    images = as_data(np.random.default_rng(0).uniform(size=(20, 1, 64, 64)).astype(np.float32))

    def cost(method, data, **_):  # seconds in proportion to what goes through the network
        return method.steps * method.batch_size * np.prod(data.shape) / 1e6

    monkeypatch.setattr(timing, "estimate_seconds", cost)
    method = BetaVAE(steps=10_000, batch_size=256, device="cpu")
    seconds = cost(method, images)
    runs = dict(shorter_runs(method, images, Resizable, seconds))
    assert runs["--batch-size 64"] == pytest.approx(seconds / 4)
    assert runs["--data.resize 32"] == pytest.approx(seconds / 4)
    assert runs["--batch-size 64 --data.resize 32"] == pytest.approx(seconds / 16)
    assert list(runs)[-1].startswith("--steps") and list(runs.values())[-1] <= 600
    assert not any("resize" in flags for flags, _ in shorter_runs(method, images, BetaVAE, seconds))
    text = describe_long_run(method, images, Resizable)
    assert text.startswith("beta-vae: about 2.9 h on this CPU; with --batch-size 64 about 44 min")
    assert describe_long_run(BetaVAE(steps=10, device="cpu"), images, Resizable) == ""
    assert describe_long_run(PCA(), images, Resizable) == ""


def test_resized_images_keep_their_mean():
    x = np.random.default_rng(0).uniform(size=(6, 3, 64, 48)).astype(np.float32)
    small = resize_images(as_data(x), 16)
    assert small.shape == (3, 16, 16)
    np.testing.assert_allclose(small.x.mean((2, 3)), x.mean((2, 3)), rtol=1e-4)
