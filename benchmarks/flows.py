"""How fast flows train, beside the same network built from FrEIA's blocks in a plain loop, in one run.

python benchmarks/flows.py                    # CPU: a pack of ten on the artificial data; FrEIA must be installed
python benchmarks/flows.py --gpu              # GPU: packs of 1 and 100, and the network for 28 x 28 images

Medians of repeated chunks of a hundred steps, after the first. One model-step is one gradient step of one model.
"""

from __future__ import annotations

import itertools
import json
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Generator, nn

from unweave.cli.terminal import print_table, print_text
from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.datasets import GaussianMixture
from unweave.methods import GIN
from unweave.training.loop import train


@dataclass(kw_only=True)
class Options:
    """Model-steps per second of flows."""

    gpu: bool = False
    """measure on a GPU, without FrEIA"""
    compiling: Literal["always", "never"] = "always"
    """compile the steps on a GPU, or only capture them"""
    steps: int = 400
    """steps of every measurement on a CPU"""
    out: Path | None = None
    """a JSON file for the numbers"""


def packed(pack: list[GIN], data: Table, **how: Any) -> float:
    """Model-steps per second, the median over chunks after the first."""
    times = [time.perf_counter()]
    for method in pack:
        method.validate_settings(data)

    def report(progress: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter())

    train(pack, data, callback=report, **how)
    spans = [b - a for a, b in itertools.pairwise(times[1:])]
    return len(pack) * 100 / statistics.median(spans)


def artificial(points: int = 100_000) -> Table:
    """The paper's data, mixed beforehand."""
    data = GaussianMixture(points=points).load().materialize()
    assert isinstance(data, Table)
    return data


def freia(data: Table, steps: int) -> float:
    """Steps per second of the same network from FrEIA's blocks, in the loop that anybody would write."""
    from FrEIA import framework, modules

    def subnet(a: int, b: int) -> nn.Module:
        net = nn.Sequential(nn.Linear(a, 10), nn.ReLU(), nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, b))
        for p in net[-1].parameters():
            nn.init.zeros_(p)
        return net

    net = framework.SequenceINN(10)
    for k in range(8):
        net.append(modules.PermuteRandom, seed=k)
        net.append(modules.GINCouplingBlock, subnet_constructor=subnet, clamp=2.0)
    assert sum(p.numel() for p in net.parameters() if p.requires_grad) == 4480
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    labels = data.c[:, 0].long()
    spans, done, start = [], 0, time.perf_counter()
    while done < steps:
        for rows in torch.randperm(len(labels)).split(1_000):  # a DataLoader would take a quarter longer
            x, u = data.x[rows], labels[rows]
            optimizer.zero_grad()
            z = net(x + 0.01 * torch.randn_like(x))[0]
            each = [z[u == k] for k in range(5)]
            nats = [(((w - w.mean(0)) / w.std(0)).square() / 2 + w.std(0).log()).sum() for w in each]
            (torch.stack(nats).sum() / z.numel()).backward()
            optimizer.step()
            done += 1
            if done % 100 == 0:
                spans.append(time.perf_counter() - start)
                start = time.perf_counter()
            if done >= steps:
                break
    return 100 / statistics.median(spans[1:] or spans)


def on_cpu(steps: int) -> list[list[Any]]:
    """FrEIA before and after, since other work may slow the machine."""
    data = artificial()
    before = freia(data, steps)
    ours = packed(
        [GIN(steps=steps, batch_size=1_000, seed=s, device="cpu") for s in range(10)],
        data,
        compiling="always",
        strategy="stack",
    )
    one = packed([GIN(steps=steps, batch_size=1_000, device="cpu")], data, compiling="always")
    after = freia(data, steps)
    plain = statistics.mean([before, after])
    rows = [("FrEIA, plain loop", plain), ("one GIN, compiled", one), ("pack of 10 GINs", ours)]
    return [[name, round(rate, 1), round(rate / plain, 2)] for name, rate in rows]


def on_gpu(compiling: str) -> list[list[Any]]:
    """The artificial data at two sizes of pack, and images."""
    data, rows = artificial(), []
    for count in (1, 100):
        pack = [GIN(steps=1_500, batch_size=1_000, seed=s) for s in range(count)]
        rate = packed(pack, data, compiling=compiling)
        rows.append([f"artificial data, pack of {count}", round(rate), ""])
        print_text(str(rows[-1]))
    x = torch.rand(20_000, 1, 28, 28, generator=Generator().manual_seed(0))
    u = torch.randint(10, (20_000, 1), generator=Generator().manual_seed(0)).double()
    images = Table(x, u, [Factor("label", 10, "nominal")])
    for precision in ("tf32", "bf16"):
        rate = packed([GIN(steps=1_000, batch_size=240, precision=precision)], images, compiling=compiling)
        rows.append([f"28 x 28 images, batch 240, {precision}", round(rate), ""])
        print_text(str(rows[-1]))
    return rows


def main(options: Options) -> None:
    """Measure, print, keep."""
    rows = on_gpu(options.compiling) if options.gpu else on_cpu(options.steps)
    where = torch.cuda.get_device_name() if options.gpu else f"CPU, {torch.get_num_threads()} threads"
    print_table(["what", "model-steps/s", "times FrEIA"], [[str(cell) for cell in row] for row in rows], where)
    if options.out is not None:
        about = {
            "where": where,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "date": time.strftime("%F"),
        }
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
