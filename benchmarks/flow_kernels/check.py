"""Compare the fused kernels with the package's own code: losses and gradients, with float64 as the reference.

python benchmarks/flow_kernels/check.py cuda 240      # on a GPU
python benchmarks/flow_kernels/check.py cpu 3         # the kernels emulated on a CPU, slowly
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.flow_kernels import fused
from unweave.data.core import FactorData
from unweave.datasets import MNIST
from unweave.methods import GIN, SelfSupervisedGIN
from unweave.training.loop import initialize_network

Gradients = tuple[float, Sequence[Tensor]]


def gradients(method: Any, net: Any, batch: dict[str, Tensor]) -> Gradients:
    """Return the loss in nats, and its gradient."""
    loss = method.loss(net, batch)
    return loss["nats"].item(), torch.autograd.grad(loss["loss"], list(net.parameters()))


def relative_errors(values: Sequence[Tensor], reference: Sequence[Tensor]) -> tuple[float, float]:
    """Return the relative error of all gradients together, and that of the worst tensor."""
    square = sum(float((a.double() - b).square().sum()) for a, b in zip(values, reference, strict=True))
    total = (square / sum(float(b.square().sum()) for b in reference)) ** 0.5
    pairs = zip(values, reference, strict=True)
    return total, max(float((a.double() - b).norm() / b.norm().clamp(min=1e-12)) for a, b in pairs)


def make_net(method: Any, generator: torch.Generator) -> Any:
    """Return a network with perturbed weights: at the start many gradients are zero."""
    net = initialize_network(method)
    with torch.no_grad():
        for p in net.parameters():
            scale = 0.1 / max(1, p[0].numel()) ** 0.5 if p.ndim > 1 else 0.02
            p.add_(torch.randn(p.shape, generator=generator) * scale)
    return net


def check(method: GIN | SelfSupervisedGIN, data: FactorData, device: str, n: int) -> bool:
    """Print the errors of plain and fused code, and return whether the fused code is as exact."""
    method.validate_settings(data)
    if isinstance(method, GIN):
        method.conditions(data, data.sample(1_000, torch.Generator().manual_seed(0)))  # finds the classes
    generator = torch.Generator().manual_seed(0)
    net = make_net(method, generator).to(device)
    plan = method.plan(data, n, generator)
    views = {name: data.render(points).float() for name, points in plan.views.items()}
    batch = views | plan.extras | method.sample_noise(n, generator)
    batch = {name: value.to(device) for name, value in batch.items()}
    wide_batch = {name: v.double() if v.is_floating_point() else v for name, v in batch.items()}
    reference = gradients(method, copy.deepcopy(net).double(), wide_batch)
    plain = gradients(method, net, batch)
    fused.install()
    fast = gradients(method, net, batch)
    fused.uninstall()
    error, worst = relative_errors(fast[1], reference[1])
    plain_error, plain_worst = relative_errors(plain[1], reference[1])
    print(f"{method.name} on {device}: {reference[0]:.6f} nats in float64, {plain[0]:.6f} plain, {fast[0]:.6f} fused")
    print(f"  relative error of the gradient: {plain_error:.2e} plain, {error:.2e} fused", end="; ")
    print(f"of the worst tensor: {plain_worst:.2e} plain, {worst:.2e} fused", flush=True)
    return error < max(5e-5, 3 * plain_error) and worst < max(1e-3, 3 * plain_worst)


if __name__ == "__main__":
    target, size = sys.argv[1] if len(sys.argv) > 1 else "cpu", int(sys.argv[2]) if len(sys.argv) > 2 else 3
    fused.ANYWHERE = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    digits = MNIST(split="train").load()
    every: list[GIN | SelfSupervisedGIN] = [
        GIN(batch_size=max(20, size), seed=3, device="cpu"),
        SelfSupervisedGIN(batch_size=size, copies=8, device="cpu"),
    ]
    results = [check(method, digits, target, size) for method in every]
    sys.exit(not all(results))
