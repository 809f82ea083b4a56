"""Estimates of the time of a training on this machine, from a few real steps or a fit of few rows."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import torch
from sklearn.base import clone
from torch import Generator
from torch.nn import functional as F

from unweave.data.containers import Table
from unweave.data.core import FactorData, Subset
from unweave.data.dataset import Dataset
from unweave.experiments.inspection import sample_points
from unweave.methods.autoencoder import HessianAutoencoder
from unweave.methods.base import Method
from unweave.methods.neural import Neural
from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.preprocessing import MAX_SOLVED_POINTS
from unweave.methods.spectral.views import N_LANDMARKS
from unweave.training.loop import initialize_network
from unweave.training.memory import check_training_memory
from unweave.training.strategies import choose_runner
from unweave.utils.errors import InputError

STEP_BUDGET = 2.0  # seconds for timing steps
MEASURED_STEPS = 100  # of the run that is timed; so short a run is neither compiled nor raced
MEASURED_ROWS = {True: 400, False: 1_000}  # that a spectral method, or a linear one, is fitted to
ROW_EXPONENT = {True: 1.1, False: 1.0}  # of the time in the number of rows: spectral methods, linear ones
LONG_RUN = 600.0  # seconds, from which on a warning says how to shorten a run
SMALL_BATCH, SMALL_SIDE = 64, 32  # observations and pixels of the shorter runs that are suggested
RESIZED_ROWS = 512  # images that are resized to time a run with smaller ones
Clock = Callable[[], float]


def estimate_seconds(
    method: Method, data: FactorData, *, budget: float = STEP_BUDGET, clock: Clock = time.perf_counter
) -> float:
    """Estimate the seconds that `method.fit(data)` takes on this machine.

    A few real steps are timed, not compiled, and multiplied. A method without steps is fitted to few rows, and the time
    is extrapolated with an exponent of 1 for linear methods and of 1.1 for spectral ones.

    Raises:
        InputError: If the method cannot learn from these data.

    Example:
        >>> import numpy as np
        >>> from unweave.data.conversion import as_data
        >>> from unweave.methods import PCA
        >>> estimate_seconds(PCA(latent_dim=2), as_data(np.random.default_rng(0).normal(size=(500, 4)))) < 60
        True
    """
    with quiet():
        if isinstance(method, Neural):
            return _estimate_training(method, data, budget, clock)
        return _estimate_fit(method, data, clock)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings: the run itself repeats them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Methods with steps ---------------------------------------------------------------------------------------------------


def _estimate_training(method: Neural, data: FactorData, budget: float, clock: Clock) -> float:
    start = clock()
    if isinstance(method, HessianAutoencoder):  # its teacher is fitted to all rows: time it with few
        points = sample_points(data, MEASURED_ROWS[True], Generator().manual_seed(0))[1]
        data = Subset(data, points)
    take_steps = prepare_steps(method, data)
    setup = clock() - start
    return setup + method.steps * int(method.restarts) * seconds_per_step(take_steps, budget, clock)


def prepare_steps(method: Neural, data: FactorData) -> Callable[[int], None]:
    """Return a function that takes that many steps of a copy of the method, as `fit` would."""
    copied = clone(method).set_params(steps=MEASURED_STEPS)
    copied.validate_settings(data)
    device = torch.device(copied.resolve_device())
    data = data.to(device)
    data = data.materialize() if copied.is_cacheable() else data
    copied.check_data(data)
    copied.prepare(data)
    check_training_memory([copied])
    net = initialize_network(copied).to(device)
    # A log of one row per step that is timed, however many these are.
    runner = choose_runner([copied], [net], data, window=10**9, compiling="never", strategy="auto")

    def take_steps(count: int) -> None:
        runner.run(count)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return take_steps


def seconds_per_step(take_steps: Callable[[int], None], budget: float, clock: Clock) -> float:
    """Time rounds of 1, 2, 4, ... steps until the budget is spent; return the mean of the last round.

    The first steps are slower, since memory is allocated in them.
    """
    count, spent = 1, 0.0
    while True:
        start = clock()
        take_steps(count)
        elapsed = clock() - start
        spent += elapsed
        if spent + 2 * elapsed > budget:
            return elapsed / count
        count *= 2


# Methods without steps ------------------------------------------------------------------------------------------------


def _estimate_fit(method: Method, data: FactorData, clock: Clock) -> float:
    spectral = isinstance(method, SpectralICA)
    rows, points = sample_points(data, MEASURED_ROWS[spectral], Generator().manual_seed(0))
    samples: int = getattr(method, "samples", len(points))  # that are drawn from a generator
    start = clock()
    data.render(points)
    rendering = clock() - start
    # A few of many points may fall into parts where all of them are connected.
    copied = clone(method).set_params(on_disconnected="largest") if spectral else clone(method)
    start = clock()
    copied.fit(Subset(data, points))
    return extrapolate(clock() - start, len(points), rows or samples, spectral=spectral, rendering=rendering)


def extrapolate(seconds: float, measured: int, rows: int, *, spectral: bool, rendering: float = 0.0) -> float:
    """Return the seconds for `rows` from those for `measured` rows, of which `rendering` grow in proportion.

    Of more than 5,000 points, a spectral method solves for 3,000 landmarks.

    >>> extrapolate(2.0, 1_000, 10_000, spectral=False)
    20.0
    """
    solved = N_LANDMARKS if spectral and rows > MAX_SOLVED_POINTS else rows
    scaled = seconds * (max(solved, measured) / measured) ** ROW_EXPONENT[spectral]
    return scaled + rendering * max(rows - solved, 0) / measured


# Long runs ------------------------------------------------------------------------------------------------------------


def describe_long_run(method: Method, data: FactorData, dataset: type[Dataset] | None = None) -> str:
    """Return how long a training takes on this CPU, and how long with other settings; '' for less than ten minutes."""
    if not isinstance(method, Neural) or method.resolve_device() != "cpu":
        return ""
    try:
        seconds = estimate_seconds(method, data)
    except InputError:  # the training itself raises it
        return ""
    if seconds < LONG_RUN:
        return ""
    shorter = shorter_runs(method, data, dataset, seconds)
    options = [f"with {flags} {format_duration(other)}" for flags, other in shorter]
    return "; ".join([f"{method.name}: {format_duration(seconds)} on this CPU", *options])


def shorter_runs(
    method: Neural, data: FactorData, dataset: type[Dataset] | None, seconds: float
) -> Iterator[tuple[str, float]]:
    """Yield flags that shorten a run of so many seconds, and the seconds with them."""
    changes: list[tuple[str, Neural, FactorData]] = []
    if method.batch_size > SMALL_BATCH:
        smaller = clone(method).set_params(batch_size=SMALL_BATCH)
        changes.append((f"--batch-size {SMALL_BATCH}", smaller, data))
    if can_resize(data, dataset):
        small = resize_images(data, SMALL_SIDE)
        changes.append((f"--data.resize {SMALL_SIDE}", method, small))
        changes += [(f"{flags} --data.resize {SMALL_SIDE}", other, small) for flags, other, _ in changes[:-1]]
    for flags, other, other_data in changes:
        with contextlib.suppress(InputError):
            estimate = estimate_seconds(other, other_data, budget=STEP_BUDGET / 2)
            if estimate < 0.8 * seconds:
                yield flags, estimate
    steps = max(1, int(method.steps * LONG_RUN / seconds))
    yield f"--steps {steps}", seconds * steps / method.steps


def can_resize(data: FactorData, dataset: type[Dataset] | None) -> bool:
    """Return whether the images are large, and the dataset can be loaded with smaller ones."""
    has_setting = dataset is not None and any(field.name == "resize" for field in fields(dataset))  # type: ignore[arg-type]
    return has_setting and len(data.shape) in (2, 3) and min(data.shape[-2:]) > SMALL_SIDE


def resize_images(data: FactorData, side: int) -> Table:
    """Return a sample of images with this many pixels a side, with their labels."""
    points = sample_points(data, RESIZED_ROWS, Generator().manual_seed(0))[1]
    x = data.render(points).float()
    pooled = F.adaptive_avg_pool2d(x.reshape(len(x), -1, *data.shape[-2:]), (side, side))
    return Table(pooled.reshape(len(x), *data.shape[:-2], side, side), data.labels(points), data.factors)


def format_duration(seconds: float) -> str:
    """Return a time in words, with two digits at most.

    >>> [format_duration(s) for s in (0.4, 42.0, 1_234.0, 14_000.0, 300_000.0)]
    ['less than 5 s', 'about 42 s', 'about 21 min', 'about 3.9 h', 'about 3.5 days']
    """
    if seconds < 5:
        return "less than 5 s"
    units: list[tuple[float, float, str]] = [(90, 1, "s"), (5_400, 60, "min"), (172_800, 3_600, "h")]
    _, unit, name = next((row for row in units if seconds < row[0]), (0, 86_400, "days"))
    value: Any = seconds / unit
    return f"about {value:.0f} {name}" if value >= 10 or unit < 3_600 else f"about {value:.1f} {name}"
