"""Kernels of stacked convolutions on a GPU: errors against float64, and times against the bytes that they move.

python -m benchmarks.lane_conv                     # layers for images of 64 x 64 and 28 x 28 pixels, ten models
python -m benchmarks.lane_conv --models 10 128     # for several numbers of models
python -m benchmarks.lane_conv --variants          # also searches for better sizes of blocks

Times are those of captured calls, inputs drawn at random. The limit is the time to read every input and write every
result once at 4.3 TB/s. Layers are measured by processes side by side, one kernel at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight

from benchmarks.gpu import the_device
from unweave.cli.terminal import print_table
from unweave.nn import lane_conv_ops
from unweave.nn.lane_conv_ops import Blocks

BANDWIDTH = 4.3e12  # bytes per second of a large copy on an H200, read and written
MAX_ERROR = 1e-2  # relative, of bf16
PROCESSES = 8
CHOICES = {
    "m": (32, 64, 128, 256),
    "n": (16, 32, 64, 128),
    "k": (16, 32, 64, 128),
    "warps": (4, 8),
    "stages": (2, 3, 4),
}
MIN_GAIN = 0.97  # of the time, below which other blocks are better


class Layer(NamedTuple):
    """A 4 x 4 convolution of stride 2."""

    large: int
    """Channels of the larger image."""
    small: int
    """Channels of the smaller image."""
    side: int
    """Pixels of the larger image's side."""


LAYERS = (
    Layer(1, 32, 64), Layer(32, 32, 32), Layer(32, 64, 16), Layer(64, 64, 8),  # dSprites
    Layer(3, 32, 64),  # 3DShapes
    Layer(3, 32, 28), Layer(32, 64, 14), Layer(64, 128, 7),  # digits
)  # fmt: skip


@dataclass(kw_only=True)
class Options:
    """Kernels of the convolutions of a stack."""

    models: tuple[int, ...] = (10,)
    """Models in the stack."""
    batch: int = 64
    """Images of each."""
    variants: bool = False
    """Search for better sizes of blocks, one setting at a time."""
    out: Path = Path("benchmarks/results/lane_conv.json")
    """Where the numbers go."""


def plain(name: str, image: Tensor, weight: Tensor, other: Tensor) -> Tensor:
    """Compute one model's result in float64."""
    image, other = (x.double().permute(0, 3, 1, 2) for x in (image, other))
    extra = image.shape[2] % 2
    if name == "convolve":
        return F.conv2d(image, weight.double(), stride=2, padding=1).permute(0, 2, 3, 1)
    if name == "upsample":
        return F.conv_transpose2d(other, weight.double(), None, 2, 1, extra).permute(0, 2, 3, 1)
    return conv2d_weight(image, weight.shape, other, 2, 1)


def kernels(image: Tensor, weight: Tensor, other: Tensor) -> dict[str, Callable[[], Tensor]]:
    """Return the three kernels of a layer."""
    side = image.shape[2]
    return {
        "convolve": lambda: lane_conv_ops.run_convolve(image, weight, None, None, 2, 1.0),
        "upsample": lambda: lane_conv_ops.run_upsample(other, weight, None, None, side, side, 1.0),
        "weight gradient": lambda: lane_conv_ops.run_weight_gradient(image, other, 4, 2),
    }


def microseconds(work: Callable[[], Any]) -> float:
    """Return the time of a captured call, the median; infinite where blocks are too large for the device."""
    from triton.runtime.errors import OutOfResources
    from triton.testing import do_bench_cudagraph

    try:
        work()
        with the_device(alone=True, patience=0):
            return 1e3 * float(do_bench_cudagraph(work, rep=10, return_mode="median"))
    except OutOfResources:
        return float("inf")


def search_blocks(work: Callable[[], Any], name: str, start: Blocks, time: float) -> tuple[float, Blocks]:
    """Return the best time and its blocks; each setting in turn takes the best of its values, until none is better."""
    rule = "gradient_blocks" if name == "weight gradient" else "product_blocks"
    best, tried, is_better = start, {start: time}, True
    while is_better:
        is_better = False
        for setting, values in CHOICES.items():
            for value in values:
                blocks = best._replace(**{setting: value})
                if blocks not in tried:
                    with mock.patch.object(lane_conv_ops, rule, lambda *sizes, blocks=blocks: blocks):
                        tried[blocks] = microseconds(work)
            found = min(tried, key=lambda blocks: tried[blocks])
            if tried[found] < MIN_GAIN * tried[best]:
                best, is_better = found, True
    return tried[best], best


def measure_layer(options: Options, layer: Layer, models: int) -> list[dict[str, Any]]:
    """Check and time the kernels of a layer."""
    a, b, side = layer
    image = torch.randn(models, options.batch, side, side, a, device="cuda").bfloat16()
    other = torch.randn(models, options.batch, side // 2, side // 2, b, device="cuda").bfloat16()
    weight = torch.randn(models, b, a, 4, 4, device="cuda").bfloat16().float()
    large, small = options.batch * (side // 2 + 1) ** 2, options.batch * (side // 2) ** 2
    used = {
        "convolve": lane_conv_ops.product_blocks(small, b, 16 * a, models),
        "upsample": lane_conv_ops.product_blocks(large, 4 * a, 4 * b, models),
        "weight gradient": lane_conv_ops.gradient_blocks(16 * a, b),
    }
    rows = []
    for name, work in kernels(image, weight, other).items():
        expected = plain(name, image[-1], weight[-1], other[-1])
        error = float((work()[-1].double() - expected).norm() / expected.norm())
        if not error < MAX_ERROR:
            raise RuntimeError(f"{name}, {a} -> {b} channels: relative error {error}")
        limit = 1e6 * 2 * (image.numel() + other.numel()) / BANDWIDTH
        time = microseconds(work)
        row = {"kernel": name, "layer": f"{a} -> {b}, {side}", "models": models, "error": f"{error:.1e}"}
        row |= {"limit, us": round(limit, 1), "us": round(time, 1), "blocks": list(used[name])}
        if options.variants:
            best, blocks = search_blocks(work, name, used[name], time)
            row |= {"best us": round(best, 1), "best blocks": list(blocks)}
        rows.append(row)
    return rows


def main(options: Options) -> None:
    """Measure all layers."""
    device = torch.cuda.get_device_name()
    head = {"device": device, "torch": torch.__version__, "date": datetime.now(UTC).date().isoformat()}
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        parts = [pool.submit(measure_layer, options, *part) for part in product(LAYERS, options.models)]
        for part in as_completed(parts):
            rows.extend(part.result())
            options.out.write_text(json.dumps(head | {"rows": rows}, indent=1) + "\n")
    columns = list(rows[0])
    print_table(columns, [[str(row[c]) for c in columns] for row in rows], f"{device}; blocks: m, n, k, warps, stages")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
