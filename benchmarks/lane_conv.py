"""Kernels of stacked convolutions on a GPU: errors against float64, and times against the bytes that they move.

python -m benchmarks.lane_conv                     # the layers of a conv VAE for 64 x 64 images, ten models
python -m benchmarks.lane_conv --models 128        # as many models
python -m benchmarks.lane_conv --variants          # also other sizes of blocks

Times are those of captured calls, inputs drawn at random. The limit is the time to read every input and write every
result once at 4.3 TB/s.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight

from unweave.cli.terminal import print_table
from unweave.nn import lane_conv_ops

BANDWIDTH = 4.3e12  # bytes per second of a large copy on an H200, read and written
LAYERS = ((1, 32, 64), (32, 32, 32), (32, 64, 16), (64, 64, 8))  # channels of the large image, of the small one, side
MAX_ERROR = 1e-2  # relative, of bf16


@dataclass(kw_only=True)
class Options:
    """Kernels of the convolutions of a stack."""

    models: int = 10
    """Models in the stack."""
    batch: int = 64
    """Images of each."""
    variants: bool = False
    """Try other sizes of blocks."""
    out: Path = Path("benchmarks/results/lane_conv.json")
    """Where the numbers go."""


def plain(name: str, image: Tensor, weight: Tensor, other: Tensor) -> Tensor:
    """Compute one model's result in float64."""
    image, other = (x.double().permute(0, 3, 1, 2) for x in (image, other))
    if name == "convolve":
        return F.conv2d(image, weight.double(), stride=2, padding=1).permute(0, 2, 3, 1)
    if name == "upsample":
        return F.conv_transpose2d(other, weight.double(), stride=2, padding=1).permute(0, 2, 3, 1)
    return conv2d_weight(image, weight.shape, other, 2, 1)


def kernels(image: Tensor, weight: Tensor, other: Tensor) -> dict[str, Callable[[], Tensor]]:
    """Return the three kernels of a layer."""
    side = image.shape[2]
    return {
        "convolve": lambda: lane_conv_ops.run_convolve(image, weight, None, 2, 1.0),
        "upsample": lambda: lane_conv_ops.run_upsample(other, weight, None, side, side, 1.0),
        "weight gradient": lambda: lane_conv_ops.run_weight_gradient(image, other, 4, 2),
    }


def milliseconds(work: Callable[[], Any]) -> float:
    """Return the time of a captured call, the median."""
    from triton.testing import do_bench_cudagraph

    return float(do_bench_cudagraph(work, rep=20, return_mode="median"))


@contextlib.contextmanager
def variant(block_m: int, warps: int, stages: int) -> Iterator[None]:
    """Use other blocks."""

    def blocks(rows: int, columns: int, lanes: int) -> tuple[int, int]:
        return block_m, lane_conv_ops._power_of_two(columns, 128)

    def launch(height: int, width: int, channels: int) -> dict[str, int]:
        return {"num_warps": warps, "num_stages": stages}

    with mock.patch.object(lane_conv_ops, "_blocks", blocks), mock.patch.object(lane_conv_ops, "_launch", launch):
        yield


def main(options: Options) -> None:
    """Check and time every kernel of every layer."""
    lines = []
    for a, b, side in LAYERS:
        image = torch.randn(options.models, options.batch, side, side, a, device="cuda").bfloat16()
        other = torch.randn(options.models, options.batch, side // 2, side // 2, b, device="cuda").bfloat16()
        weight = torch.randn(options.models, b, a, 4, 4, device="cuda").bfloat16().float()
        for name, work in kernels(image, weight, other).items():
            expected = plain(name, image[-1], weight[-1], other[-1])
            error = float((work()[-1].double() - expected).norm() / expected.norm())
            if not error < MAX_ERROR:
                raise RuntimeError(f"{name}, {a} -> {b} channels: relative error {error}")
            limit = 1e3 * 2 * (image.numel() + other.numel()) / BANDWIDTH
            cells = [
                name,
                f"{a} -> {b}, {side}",
                f"{error:.1e}",
                f"{1e3 * limit:.1f}",
                f"{1e3 * milliseconds(work):.1f}",
            ]
            if options.variants:
                times = {}
                for settings in itertools.product((32, 64, 128), (4, 8), (2, 4)):
                    with variant(*settings):
                        times[settings] = milliseconds(work)
                best = min(times, key=lambda settings: times[settings])
                cells += [f"{1e3 * times[best]:.1f}", str(best)]
            lines.append(cells)
    columns = ["kernel", "layer", "error", "limit, us", "us", "best us", "block, warps, stages"]
    print_table(columns[: len(lines[0])], lines, f"{torch.cuda.get_device_name()}, {options.models} models")
    head = {"device": torch.cuda.get_device_name(), "models": options.models, "torch": torch.__version__}
    rows = [dict(zip(columns, line, strict=False)) for line in lines]
    head |= {"date": datetime.now(UTC).date().isoformat()}
    options.out.write_text(json.dumps(head | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
