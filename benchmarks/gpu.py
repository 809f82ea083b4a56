"""What one GPU does: model-steps per second of every family, by pack, strategy and precision; memory; data; scores.

python benchmarks/gpu.py                                      # the grid for the beta-VAE, three packs for all others
python benchmarks/gpu.py --cases beta-vae --packs 64 128      # a part of it
python benchmarks/gpu.py --warm                               # only compile, so that a second call finds all of it done
python benchmarks/gpu.py --parts scores data spectral         # the metric suite for 64 codes; rendering; HLLE + ICA
python benchmarks/gpu.py --parts lanes                        # whether a lane of a pack is its solo run
python benchmarks/gpu.py --parts lanes --precisions bf16      # the same in bf16, against float32
python benchmarks/gpu.py --cases "gin, 28" --packs 1 --tricks measure channels-last   # what the trainer does not do
python -m benchmarks.gpu --parts training --cases ridge infogan --packs 10 --profile benchmarks/results/profile.json
                                                              # also kernels and compile times; see profiling.py
ncu --profile-from-start off ... python -m benchmarks.gpu --counters ...      # hardware counters; see profiling.py

Starting a pack takes longer than measuring it. So several calls with different --cases may run side by side: they make
ready together, measure one at a time when all are ready, and write to the same OUT. With --patience 0 they measure
as soon as they are ready, so that a slow one does not hold up the others.

Ratios are to a plain eager loop of the same method, one model, data on the device, measured in the same run. Inputs are
drawn anew for every step. Medians of rounds. `stack` turns convolutions into products (unfold and bmm) of all models at
once, `fork` runs each model on a stream of its own; both are captured in one CUDA graph. Written to OUT as it goes;
what a call before has measured there on the same device, and this one does not, stays.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import gc
import json
import os
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import torch
import torch._inductor.config
from torch import Generator, Tensor

from unweave import methods
from unweave.cli.terminal import print_table, print_text
from unweave.data.containers import Mixing, Table
from unweave.data.core import Factor, FactorData
from unweave.datasets import DSprites, FlatSheet, GaussianMixture, Shapes3D, Unseen
from unweave.methods.spectral.hessian import hessian_operator
from unweave.methods.spectral.neighbors import find_neighbors
from unweave.methods.spectral.tangent_space import gram_matrices, tangent_coordinates
from unweave.metrics import mcc, score_many
from unweave.training.adam import initial_log
from unweave.training.loop import initialize_network, train
from unweave.training.pack import CHUNK, LaneGroup, StepRunner
from unweave.training.step import make_step
from unweave.training.strategies import choose_runner, matmul_precision
from unweave.utils.errors import InputError, first_line

WIDE = ("BetaVAE, conv", "GIN, artificial")
LANES = (
    "BetaVAE, conv", "FactorVAE, conv", "BetaTCVAE, conv", "BetaVAE, MLP", "GIN, artificial", "AdaGVAE, 3 channels",
    "SwapContrast, 28 x 28", "InterventionAutoencoder", "InterventionAutoencoder, ridge", "InfoGANCR",
)  # fmt: skip
HOW = {"fork": ("fork", "never"), "fork, compiled": ("fork", "always"), "stack, compiled": ("stack", "always")}
Section = Literal["training", "lanes", "data", "scores", "spectral"]
NAMES = ("case", "how", "precision", "models")
NEXT = {"tf32": ("tf32", "bf16"), "single": ("single", "tf32")}
STEPS = 10**6  # far away, so that schedules do not end
EAGER_ROUNDS, EAGER_STEPS = 3, 20  # of the slow loop, at most


@dataclass(kw_only=True)
class Options:
    """Measurements on one GPU."""

    parts: tuple[Section, ...] = ("training", "lanes", "data", "scores", "spectral")
    """what to measure"""
    cases: tuple[str, ...] = ()
    """methods whose names contain one of these; all unless you say which"""
    packs: tuple[int, ...] = ()
    """models in a pack; default: 1, 4, 16, 64, 128 for the beta-VAE and GIN, 1, 16, 64 for others"""
    how: tuple[str, ...] = tuple(HOW)
    """strategies"""
    precisions: tuple[str, ...] = ()
    """of products; default: the method's own, and the next coarser one"""
    tricks: tuple[Literal["measure", "channels-last"], ...] = ()
    """cuDNN measures its algorithms; images have their channels last"""
    rounds: int = 5
    """repetitions, of which the median is taken"""
    steps: int = CHUNK
    """steps in each; as many as the trainer draws at once, unless you say how many"""
    points: tuple[int, ...] = (3_000, 30_000, 100_000)
    """for HLLE + ICA"""
    budget: float = 1e9
    """seconds after which nothing new is begun"""
    patience: float = 1e9
    """seconds to wait for other calls that still compile; then measures beside them, which may cost some speed"""
    profile: Path | None = None
    """where to keep the kernels of a step of each pack, and what compiling it took"""
    warm: bool = False
    """compile and take one step of everything, measure nothing"""
    counters: bool = False
    """take one step under Nsight Compute, measure nothing else"""
    device: str = "cuda"
    """where; "cpu" only shows that it runs"""
    out: Path = Path("benchmarks/results/gpu.json")
    """where the numbers go"""


def digits(device: str) -> Table:
    """28 x 28 images that are nothing in particular, with ten labels."""
    rng = Generator(device).manual_seed(0)
    x = torch.rand(10_000, 28, 28, generator=rng, device=device)
    u = torch.randint(10, (10_000, 1), generator=rng, device=device)
    return Table(x, u.double(), [Factor("digit", 10, "nominal")])


def numbers(device: str) -> Table:
    """Observations of 64 numbers."""
    x = torch.rand(4_096, 64, generator=Generator(device).manual_seed(0), device=device)
    return Table(x, torch.zeros(4_096, 0, device=device), [])


def sprites(device: str) -> FactorData:
    """dSprites, rendered on the device."""
    return DSprites().load().to(device)


def rooms(device: str) -> FactorData:
    """3DShapes, rendered on the device: three channels."""
    return Shapes3D().load().to(device)


def colored_digits(device: str) -> FactorData:
    """Colored, rotated digits, painted on the device; needs the files of MNIST."""
    return Unseen(of="rotation-colored-mnist").load().to(device)


def mixture(device: str) -> FactorData:
    """The artificial data of GIN, mixed beforehand."""
    return GaussianMixture(points=100_000).load().materialize().to(device)


def cases() -> dict[str, tuple[Callable[..., Any], Callable[[str], FactorData], dict[str, Any]]]:
    """Every family: its class, its data, and what differs from the defaults."""
    vaes = ("BetaVAE", "AnnealedVAE", "FactorVAE", "BetaTCVAE", "DIPVAE", "AdaGVAE", "AdaMLVAE")
    found: dict[str, Any] = {f"{name}, conv": (getattr(methods, name), sprites, {}) for name in vaes}
    found["BetaVAE, MLP"] = methods.BetaVAE, numbers, {"layers": (128, 128)}
    found["GIN, artificial"] = methods.GIN, mixture, {"batch_size": 1_000, "latent_dim": "all"}
    found["GIN, 28 x 28"] = methods.GIN, digits, {"batch_size": 240}
    found["InterventionAutoencoder"] = methods.InterventionAutoencoder, sprites, {}
    found["InterventionAutoencoder, ridge"] = methods.InterventionAutoencoder, sprites, {"diff_mode": "ridge"}
    found["AdaGVAE, 3 channels"] = methods.AdaGVAE, rooms, {}
    of_digits = {"widths": (32, 64, 128)}
    nuisances = {"nuisances": ("color", "background")}
    found["SwapContrast, 28 x 28"] = methods.SwapContrast, colored_digits, of_digits | nuisances
    found["CNNClassifier, 28 x 28"] = methods.CNNClassifier, colored_digits, of_digits
    found["SwapContrast"] = methods.SwapContrast, sprites, {"label": "shape", "latent_dim": 10}
    found["InfoGANCR"] = methods.InfoGANCR, sprites, {"latent_dim": 5}
    return found


def chosen(names: Iterable[str], options: Options) -> list[str]:
    """Those that --cases asks for by name or by a part of it; upper case, hyphens and spaces do not matter."""

    def bare(name: str) -> str:
        return re.sub(r"[^a-z0-9]", "", name.lower())

    names = list(names)
    exact = {bare(name) for name in names}

    def asked(name: str) -> bool:
        parts = [bare(part) for part in options.cases]
        return not parts or any(bare(name) == part if part in exact else part in bare(name) for part in parts)

    found = [name for name in names if asked(name)]
    if not found:
        raise InputError(f"--cases {' '.join(options.cases)}: there are {', '.join(names)}")
    return found


@contextlib.contextmanager
def the_device(*, alone: bool, patience: float = float("inf")) -> Iterator[None]:
    """Hold the device together with other calls that make ready, or alone.

    Who wants it alone waits for those that measure, and at most `patience` seconds for those that make ready.
    """
    folder = Path(tempfile.gettempdir())
    with contextlib.ExitStack() as files:
        ready, measuring = (
            files.enter_context((folder / f"unweave-gpu-{os.getuid()}-{name}.lock").open("w"))
            for name in ("ready", "measuring")
        )
        if not alone:
            fcntl.flock(ready, fcntl.LOCK_SH)
            yield
            return
        fcntl.flock(measuring, fcntl.LOCK_EX)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                fcntl.flock(ready, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.1)
        yield


# Training -------------------------------------------------------------------------------------------------------


def ready(pack: list[Any], data: FactorData) -> list[Any]:
    """Prepared methods and their networks on the device."""
    for method in pack:
        method.validate_settings(data)
        method.prepare(data)
    return [initialize_network(method).to(pack[0].resolve_device()) for method in pack]


def eager(method: Any, data: FactorData) -> Callable[[int], None]:
    """The loop that anybody would write for this loss, on one model."""
    (net,) = ready([method], data)
    group = LaneGroup([method], [net], data, stacked=False)
    groups = {prefix: [p for k, p in net.named_parameters() if k.startswith(prefix)] for prefix in method.optimizers()}
    taken = {id(p) for prefix, ps in groups.items() if prefix for p in ps}
    groups[""] = [p for p in groups.get("", []) if id(p) not in taken]
    optimizer = torch.optim.Adam(
        [{"params": ps, "lr": float(method.optimizers()[k].lr)} for k, ps in groups.items() if ps]
    )

    def run(steps: int) -> None:
        for _ in range(steps):
            batch = group.batch(group.sample_chunk(1), 0) | {"progress": torch.zeros((), device=group.device)}
            loss = method.loss(net, batch)["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


@contextlib.contextmanager
def tricks(options: Options) -> Iterator[None]:
    """What libraries offer and the trainer leaves alone, since no more than some networks are faster by it."""
    measures, last = torch.backends.cudnn.benchmark, "channels-last" in options.tricks
    torch.backends.cudnn.benchmark = "measure" in options.tricks or measures
    try:
        with contextlib.ExitStack() as stack:
            if last:
                stack.enter_context(torch._inductor.config.patch(force_layout_optimization=True))
                stack.enter_context(mock.patch("unweave.training.adam._copy_parameter", channels_last))
            yield
    finally:
        torch.backends.cudnn.benchmark = measures


def channels_last(p: Tensor) -> Tensor:
    """A copy, kernels with their channels last."""
    return p.clone(memory_format=torch.channels_last if p.ndim == 4 else torch.contiguous_format)


def packed(pack: list[Any], data: FactorData, how: str) -> StepRunner:
    """The trainer's own runner."""
    strategy, compiling = HOW[how]
    nets = ready(pack, data)
    return choose_runner(pack, nets, data, window=STEPS, compiling=compiling, strategy=strategy)


def rate(run: Callable[[int], None], options: Options, most: int = 10**6, steps: int = 10**6) -> float:
    """Steps per second, the median over rounds, of which there are at most so many, of so many steps."""
    steps = min(steps, options.steps)
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    found = []
    with the_device(alone=True, patience=options.patience):
        run(steps)
        for _ in range(min(options.rounds, most)):
            wait()
            start = time.perf_counter()
            run(steps)
            wait()
            found.append(steps / (time.perf_counter() - start))
    return statistics.median(found)


def training(options: Options, keep: Callable[[dict[str, Any]], None]) -> None:
    """Every case: the eager loop, then packs."""
    start = time.perf_counter()
    for name in chosen(cases(), options):
        cls, load, settings = cases()[name]
        data = load(options.device)
        shared = settings | {"steps": STEPS, "device": options.device}
        alone = cls(**shared)
        alone.precision = "tf32" if alone.precision == "auto" else alone.precision

        @cache
        def base(name: str = name, alone: Any = alone, data: FactorData = data) -> float:
            with matmul_precision(alone):
                found = rate(eager(alone, data), options, EAGER_ROUNDS, EAGER_STEPS)
            keep({"case": name, "how": "eager loop", "precision": alone.precision, "models": 1, "model-steps/s": found})
            return found

        usual = (1, 4, 16, 64, 128) if name in WIDE else (1, 16, 64)
        for models in options.packs or usual:
            for precision in options.precisions or NEXT[alone.precision]:
                for how in options.how:
                    if time.perf_counter() - start > options.budget:
                        return
                    pack = [cls(**shared, seed=i, precision=precision) for i in range(models)]
                    way = "; ".join((how, *options.tricks))
                    head = {"case": name, "how": way, "precision": precision, "models": models}
                    runner = None  # frees the memory of the pack before
                    gc.collect()
                    with tricks(options):
                        row, runner = measured(pack, data, how, base, options)
                        keep(head | row)
                        if options.profile and runner is not None:  # last: whatever fails here, the rate is kept
                            with matmul_precision(pack[0]):  # else a new capture compiles again
                                problem = profiled(runner, head | row, options.profile)
                            if problem:
                                keep(head | row | problem)


def measured(
    pack: list[Any],
    data: FactorData,
    how: str,
    base: Callable[[], float],
    options: Options,
) -> tuple[dict[str, Any], StepRunner | None]:
    """Model-steps per second of a pack, its ratio to the eager loop, its memory; or why there are none; the runner.

    The eager loop is measured when the first pack is ready: who waits for the device keeps no one from making ready.
    """
    on_gpu = options.device == "cuda"
    try:
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        with matmul_precision(pack[0]):
            with the_device(alone=False):
                begun = time.perf_counter()
                runner = packed(pack, data, how)
                runner.run(2)
                if on_gpu:
                    torch.cuda.synchronize()  # others may measure from now on, and none may end with work under way
                started = time.perf_counter() - begun
                off = {} if options.warm or options.counters else deviations(runner, pack[-1], data)
            if options.counters:
                count_step(runner)
            if options.warm or options.counters:
                return {"seconds to start": round(started, 1)}, None
            speed = len(pack) * rate(runner.run, options)
            memory = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0
            eagerly = base()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {first_line(error)[:200]}"}, None
    found = {"model-steps/s": round(speed, 1), "ratio": round(speed / eagerly, 1), "eager": round(eagerly, 1)}
    found |= {"GiB": round(memory, 2), "seconds to start": round(started, 1)} | off
    return found, runner


def deviations(runner: StepRunner, method: Any, data: FactorData) -> dict[str, float]:
    """How far Adam's first moments of the last model are from those of the model alone in float32, after two steps.

    Relative, for the runner, which has taken two steps; and for the model alone in the precision of the runner.
    """

    def alone(precision: str) -> dict[str, Tensor]:
        single = copy.copy(method)
        single.precision = precision
        with matmul_precision(single):
            (net,) = ready([single], data)
            group = LaneGroup([single], [net], data, stacked=False)
            group.state |= initial_log((), len(runner.terms), single.steps, single.steps, group.device)
            step, chunk = make_step(single, net, stacked=False), group.sample_chunk(2)
            for i in range(2):
                step(group.state, group.batch(chunk, i))
        return group.state["first_moments"]

    exact = alone("single")
    *_, lane = (state for group in runner.groups for state in group.lane_states())
    others = {"off": lane["first_moments"], "off alone": alone(method.precision)}
    return {
        name: round((total(m[k] - v for k, v in exact.items()) / total(exact.values())) ** 0.5, 6)
        for name, m in others.items()
    }


def count_step(runner: StepRunner) -> None:
    """Take one step between the marks at which Nsight Compute begins and stops."""
    with the_device(alone=True):
        runner.cursor.zero_()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        runner.graph.replay()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def profiled(runner: StepRunner, row: dict[str, Any], path: Path) -> dict[str, Any]:
    """Keep the kernels of a step and what compiling took; return nothing, or why there is no profile."""
    from benchmarks.profiling import describe_compiling, keep_profile, profile_runner

    try:
        with the_device(alone=True):
            kernels = profile_runner(runner)
    except Exception as error:
        return {"no profile": f"{type(error).__name__}: {first_line(error)[:200]}"}
    keep_profile(path, row | {"compiling": describe_compiling()} | kernels)
    return {}


def gone(name: str, seeds: Sequence[int], how: tuple[Any, Any], device: str, precision: str) -> dict[str, Tensor]:
    """Where the weights of the last of some models have gone from their start, after twenty steps."""
    strategy, compiling = how
    cls, load, settings = cases()[name]
    data = load(device)
    pack = [cls(**settings, steps=20, device=device, precision=precision, seed=seed) for seed in seeds]
    for method in pack:
        method.validate_settings(data)
    with matmul_precision(pack[0]):
        train(pack, data, strategy=strategy, compiling=compiling)
    start, end = (dict(net.named_parameters()) for net in (initialize_network(pack[-1]), pack[-1].net_))
    return {k: (end[k] - p).detach() for k, p in start.items()}


def total(tensors: Iterable[Tensor]) -> float:
    """The sum of the squares of all numbers."""
    return sum(float(v.square().sum()) for v in tensors)


def lanes(options: Options, keep: Callable[[dict[str, Any]], None]) -> None:
    """The last of a pack, against itself trained alone by an eager loop: the relative deviation of its trajectory.

    The pack has three models, or as many as --packs says first. Products are in float32, or as --precisions says first;
    the eager loop is always in float32.

    Kernels that sum in another order round differently, and Adam makes much of what is nearly zero. How much shows a
    control: alone again, every weight of the start one rounding larger.
    """
    solo, ways = ("fork", "never"), HOW
    if options.device == "cpu":
        solo, ways = ("loop", "never"), {"stack": ("stack", "never"), "stack, compiled": ("stack", "always")}
    seeds = range(options.packs[0] if options.packs else 3)
    precision = (*options.precisions, "single")[0]
    for name in chosen(LANES, options):
        alone = gone(name, seeds[-1:], solo, options.device, "single")
        with mock.patch("unweave.training.loop.initialize_network", nudged):
            others = {"alone, one rounding off": gone(name, seeds[-1:], solo, options.device, "single")}
        if precision != "single":
            others["alone"] = gone(name, seeds[-1:], solo, options.device, precision)
        asked = [how for how in ways if how in options.how or options.device == "cpu"]
        others |= {how: gone(name, seeds, ways[how], options.device, precision) for how in asked}
        for how, other in others.items():
            parts = {k: float((other[k] - way).square().sum()) for k, way in alone.items()}
            off = (sum(parts.values()) / total(alone.values())) ** 0.5
            most = max(parts, key=lambda k: parts[k])
            used = "single" if how == "alone, one rounding off" else precision
            head = {"case": f"{name}: a lane and its solo run", "how": how, "models": len(seeds), "precision": used}
            share = round(parts[most] / max(sum(parts.values()), 1e-30), 3)
            keep(head | {"relative difference": off, "mostly in": most, "share": share})


def nudged(method: Any) -> torch.nn.Module:
    """The network that a method starts with, every weight larger by about one rounding."""
    net = initialize_network(method)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(1 + torch.finfo(p.dtype).eps)
    return net


# Data and scores ------------------------------------------------------------------------------------------------


def rendering(options: Options, keep: Callable[[dict[str, Any]], None]) -> None:
    """Images a second that are drawn and rendered, in batches of 4,096."""
    for name, data in (("dsprites", DSprites()), ("shapes3d", Shapes3D())):
        made = data.load().to(options.device)
        rng = Generator(options.device).manual_seed(0)

        def run(steps: int, made: Any = made, rng: Generator = rng) -> None:
            for _ in range(steps):
                made.render(made.sample(4_096, rng)).float()

        keep({"case": f"{name}, drawn and rendered", "images/s": round(4_096 * rate(run, options))})


def scoring(options: Options, keep: Callable[[dict[str, Any]], None]) -> None:
    """Every metric of the catalog for 64 codes of 10,000 samples, by all processors; and encoding so many."""
    rng = np.random.default_rng(0)
    sizes = (3, 6, 40, 32, 32)
    c = rng.integers(0, sizes, (10_000, 5)).astype(float)
    near = c / np.array(sizes)
    codes = {
        str(i): np.column_stack([near + 0.05 * (1 + i / 64) * rng.normal(size=c.shape), rng.normal(size=(10_000, 5))])
        for i in range(64)
    }
    start = time.perf_counter()
    columns = score_many(c, codes, n_jobs=-1).shape[1]
    seconds = round(time.perf_counter() - start, 1)
    keep(
        {
            "case": f"the whole suite, {columns} scores, 64 codes",
            "seconds": seconds,
            "cores": os.cpu_count(),
        }
    )
    data = DSprites().load()
    method = methods.BetaVAE(steps=1, device=options.device).fit(data)
    x = data.draw(10_000, Generator().manual_seed(0)).x
    start = time.perf_counter()
    method.transform(x)
    keep({"case": "encoding 10,000 images of 64 x 64", "seconds": round(time.perf_counter() - start, 2)})


def spectral(options: Options, keep: Callable[[dict[str, Any]], None]) -> None:
    """HLLE + ICA of flat sheets, all points solved for: neighbors, the operator, and the whole of it; CPU and GPU.

    On a CPU, neighbors of many points are found up to a tenth too far away, on a GPU exactly.
    """
    for n in (500, *options.points):  # the first one wakes up libraries
        x = FlatSheet(dimensions=2, points=n).load()
        assert isinstance(x, Mixing) and x.sources is not None
        points = x.render(x.sources).double()
        for device in dict.fromkeys(("cpu", options.device)):
            rounds = [taken(points, x.sources, device) for _ in range(1 if n > 50_000 else 3)]
            medians = {name: round(statistics.median(r[name] for r in rounds), 3) for name in rounds[0]}
            if n in options.points:
                keep({"case": f"HLLE + ICA, {n:,} points", "how": device} | medians)


def taken(points: Tensor, sources: Tensor, device: str) -> dict[str, float]:
    """Seconds for neighbors, for the operator, and for everything; and how well it went."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = [time.perf_counter()]
    near = find_neighbors(points.numpy(), 15, device)
    wait()
    times.append(time.perf_counter())
    U = tangent_coordinates(gram_matrices(points.to(device), near[:, 1:]), 15, 2)
    hessian_operator(U, near[:, 1:])
    wait()
    times.append(time.perf_counter())
    method = methods.HessianICA(latent_dim=2, n_neighbors=15, landmarks=0, device=device)
    z = method.fit(points.numpy()).codes_
    times.append(time.perf_counter())
    a, b, c = np.diff(times).tolist()
    return {"neighbors": a, "operator": b, "all": c, "mcc": float(mcc(sources, z))}


def kept(before: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows, the newest of each measurement; one that failed replaces none."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in (*before, *rows):
        name = tuple(row.get(k) for k in NAMES)
        if "error" not in row or name not in found:
            found[name] = row
    return list(found.values())


def main(options: Options) -> None:
    """Measure, print, keep."""
    on_gpu = options.device == "cuda"
    device = torch.cuda.get_device_name() if on_gpu else platform.machine()
    where = {"torch": torch.__version__, "date": datetime.now(UTC).date().isoformat()}
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(row | where)
        print_text(json.dumps(row))
        if not (options.warm or options.counters):
            options.out.parent.mkdir(parents=True, exist_ok=True)
            with options.out.open("a+") as file:  # which other calls may write to as well
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(0)
                found = json.loads(file.read() or "{}")
                before = found["rows"] if found.get("device") == device else []
                file.truncate(0)
                file.write(json.dumps({"device": device, "rows": kept(before, rows[-1:])}, indent=1) + "\n")

    makers = {"training": training, "lanes": lanes, "data": rendering, "scores": scoring, "spectral": spectral}
    for part in options.parts:
        if (options.warm or options.counters) and part != "training":
            continue
        with contextlib.nullcontext() if part in ("training", "data") else the_device(alone=True):  # those two do so
            makers[part](options, keep)
    trained = [row for row in rows if row.get("model-steps/s")]
    columns = [
        "case",
        "how",
        "precision",
        "models",
        "model-steps/s",
        "ratio",
        "GiB",
        "seconds to start",
        "off",
        "off alone",
    ]
    lines = [
        [f"{row.get(c, ''):,.0f}" if c == "model-steps/s" else str(row.get(c, "")) for c in columns] for row in trained
    ]
    if lines:
        print_table(columns, lines, f"{device}, torch {torch.__version__}")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
