"""Train the image flow of GIN with fused CUDA kernels: the same mathematics in float32, fewer and larger kernels.

`install()` replaces `AffineCoupling.forward` (blocks of 4 and 16 channels, and vectors; soft clamp, volume "mean") and
the loss of GIN with hard labels and normal latent variables. Everything else of the package stays as it is. It is for
the strategies "fork" and "loop" without the compiler, in single precision.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from unweave.methods.flows.gin import GIN
from unweave.nn.coupling import AffineCoupling

HERE = Path(__file__).parent
BUILD = HERE / "build"
CUBIN, EMULATOR = BUILD / "flow_kernels.cubin", BUILD / "libemulate.so"
# channels of a half -> (name, side, channels in, hidden, channels out of the subnet, images per block)
KINDS = {2: ("14", 14, 2, 16, 4, 1), 8: ("7", 7, 8, 32, 16, 2)}
THREADS = {
    "f14a": 112, "f14b": 112, "f14c": 112, "d14c": 112, "d14b": 112, "d14a": 56,
    "w14a": 112, "w14b": 128, "w14c": 112,
    "f7a": 112, "f7b": 112, "f7c": 112, "d7c": 112, "d7b": 112, "d7a": 112,
    "w7a": 128, "w7b": 256, "w7c": 128,
}  # fmt: skip


def build(target: Path, *command: str) -> Path:
    """Compile a target with a command that takes its path last, unless it is there."""
    if not target.is_file():
        BUILD.mkdir(exist_ok=True)
        subprocess.run([*command, str(target)], cwd=HERE, check=True)
    return target


def build_cubin() -> Path:
    major, minor = torch.cuda.get_device_capability()
    return build(CUBIN, "nvcc", "-O3", "-cubin", f"-arch=sm_{major}{minor}", "flow_kernels.cu", "-o")


def build_emulator() -> Path:
    return build(EMULATOR, "g++", "-O2", "-std=c++20", "-shared", "-fPIC", "-pthread", "emulate.cpp", "-o")


class Launcher:
    """Launches kernels of the cubin on the current stream, or emulates them for CPU tensors in tests."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.cuda: Any = None
        self.emulator: Any = None

    def __call__(self, name: str, grid: int, block: int, *args: Tensor | int) -> None:
        if any(isinstance(a, Tensor) and a.is_cuda for a in args):
            self._launch(name, grid, block, args)
        else:
            self._emulate(name, grid, block, args)

    def _launch(self, name: str, grid: int, block: int, args: tuple[Tensor | int, ...]) -> None:
        if self.cuda is None:
            self._load()
        if name not in self.functions:
            function = ctypes.c_void_p()
            self._check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, name.encode()))
            self.functions[name] = function
        values = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, Tensor) else ctypes.c_int(a) for a in args]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self._check(self.cuda.cuLaunchKernel(self.functions[name], grid, 1, 1, block, 1, 1, 0, stream, pointers, None))

    def _load(self) -> None:
        torch.zeros(1, device="cuda")
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.module = ctypes.c_void_p()
        image = build_cubin().read_bytes()
        self._check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), image))

    def _check(self, code: int) -> None:
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"CUDA driver error {code}: {text.value!r}")

    def _emulate(self, name: str, grid: int, block: int, args: tuple[Tensor | int, ...]) -> None:
        if self.emulator is None:
            self.emulator = ctypes.CDLL(str(build_emulator()))
        pointers = [a.data_ptr() for a in args if isinstance(a, Tensor)]
        numbers = [a for a in args if not isinstance(a, Tensor)]
        p, k = (ctypes.c_void_p * len(pointers))(*pointers), (ctypes.c_int * max(1, len(numbers)))(*numbers)
        getattr(self.emulator, f"e_{name}")(grid, block, p, k)


launch = Launcher()


def blocks_for(n: int, each: int) -> int:
    return -(-n // each)


# One subnet of three convolutions ----------------------------------------------------------------------------------


def subnet_forward(kind: Any, x: Tensor, params: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Outputs (n, out, s, s), both hidden layers, and the weights laid out for the way back."""
    name, s, a, h, b, images = kind
    w1, b1, w2, b2, w3, b3 = params
    n = len(x)
    sizes = [9 * a * h, 9 * h * h, 9 * h * b]
    both = x.new_empty(2, sum(sizes))
    launch("layouts", blocks_for(sum(sizes), 256), 256, w1, w2, w3, a, h, b, both[0], both[1])
    f1, f2, f3 = both[0].split(sizes)
    h1, h2, y = x.new_empty(n, h, s, s), x.new_empty(n, h, s, s), x.new_empty(n, b, s, s)
    grid, plane = blocks_for(n, images), s * s
    for letter, source, w, bias, out in (("a", x, f1, b1, h1), ("b", h1, f2, b2, h2), ("c", h2, f3, b3, y)):
        kernel = f"f{name}{letter}"
        stride = source.stride(0)
        launch(kernel, grid, THREADS[kernel], source, stride, w, bias, bias, 0, out, out.shape[1] * plane, n)
    return y, h1, h2, both[1]


def subnet_backward(
    kind: Any, x: Tensor, saved: tuple[Tensor, ...], g: Tensor, add: Tensor, into: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of the six parameters; that of x, plus `add`, goes `into` a tensor (both may be views, or the same)."""
    name, s, a, h, b, images = kind
    h1, h2, back = saved
    n, plane = len(x), s * s
    sizes = [9 * a * h, 9 * h * h, 9 * h * b]
    r1, r2, r3 = back.split(sizes)
    g2, g1 = torch.empty_like(h2), torch.empty_like(h1)
    grid = blocks_for(n, images)
    big = h * plane
    launch(f"d{name}c", grid, THREADS[f"d{name}c"], g, b * plane, r3, r3, h2, big, g2, big, n)
    launch(f"d{name}b", grid, THREADS[f"d{name}b"], g2, big, r2, r2, h1, big, g1, big, n)
    launch(f"d{name}a", grid, THREADS[f"d{name}a"], g1, big, r1, r1, add, add.stride(0), into, into.stride(0), n)
    lengths = [sizes[0] + h, sizes[1] + h, sizes[2] + b]
    width = sum(lengths)
    partial, total = g.new_empty(grid, width), g.new_empty(width)
    at = 0
    layers = (("a", x, g1, lengths[0]), ("b", h1, g2, lengths[1]), ("c", h2, g, lengths[2]))
    for letter, source, gradient, length in layers:
        kernel = f"w{name}{letter}"
        launch(kernel, grid, THREADS[kernel], source, source.stride(0), gradient, partial, width, at, n)
        at += length
    launch("column_sums", blocks_for(width, 32), 256, partial, grid, width, total)
    p1, p2, p3 = total.split(lengths)
    return (
        p1[: sizes[0]].view(h, a, 3, 3), p1[sizes[0] :], p2[: sizes[1]].view(h, h, 3, 3), p2[sizes[1] :],
        p3[: sizes[2]].view(b, h, 3, 3), p3[sizes[2] :],
    )  # fmt: skip


# Coupling blocks ---------------------------------------------------------------------------------------------------


class ConvCoupling(Function):
    """A whole block: permutation, both halves in turn."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, back: Tensor, *params: Tensor) -> Tensor:
        m = x.shape[1] // 2
        kind = KINDS[m]
        plane = kind[1] ** 2
        x = x.index_select(1, order)
        a, b = x[:, :m], x[:, m:]
        y = torch.empty_like(x)
        n, stride = len(x), 2 * m * plane
        grid = blocks_for(n * plane, 128)
        first = subnet_forward(kind, b, params[:6])
        launch(f"affine{m}", grid, 128, a, stride, first[0], y, stride, plane, n)
        second = subnet_forward(kind, y[:, :m], params[6:])
        launch(f"affine{m}", grid, 128, b, stride, second[0], y[:, m:], stride, plane, n)
        ctx.save_for_backward(x, y, back, *first, *second)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y, back, *rest = ctx.saved_tensors
        first, second = rest[:4], rest[4:]
        g = g.contiguous()
        m = x.shape[1] // 2
        kind = KINDS[m]
        plane = kind[1] ** 2
        n, stride = len(x), 2 * m * plane
        grid = blocks_for(n * plane, 128)
        gx, ga, gst = torch.empty_like(x), x.new_empty(n, m, *x.shape[2:]), torch.empty_like(first[0])
        tail = g[:, m:], stride, gx[:, m:], stride, gst, plane, n
        launch(f"affine_back{m}", grid, 128, x[:, m:], stride, second[0], *tail)
        own2 = subnet_backward(kind, y[:, :m], second[1:], gst, g[:, :m], ga)
        gst = torch.empty_like(first[0])
        tail = ga, m * plane, gx, stride, gst, plane, n
        launch(f"affine_back{m}", grid, 128, x, stride, first[0], *tail)
        own1 = subnet_backward(kind, x[:, m:], first[1:], gst, gx[:, m:], gx[:, m:])
        return gx.index_select(1, back), None, None, *own1, *own2


class RowAffine(Function):
    """a exp(s - mean s) + t for vectors, (n, m) and st (n, 2 m)."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, st: Tensor) -> Tensor:
        n, m = a.shape
        y = a.new_empty(n, m)
        launch("affine_row", n, 128, a, a.stride(0), st, y, m, m)
        ctx.save_for_backward(a, st)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        a, st = ctx.saved_tensors
        n, m = a.shape
        if g.stride(1) != 1:
            g = g.contiguous()
        ga, gst = a.new_empty(n, m), torch.empty_like(st)
        launch("affine_row_back", n, 128, a, a.stride(0), st, g, g.stride(0), ga, m, gst, m)
        return ga, gst


def fits(block: Any, x: Tensor) -> bool:
    """Whether the kernels are made for a block."""
    if block.clamp != "soft" or block.volume != "mean" or x.dtype != torch.float32 or x.shape[1] % 2:
        return False
    if x.ndim == 2:
        return True
    m = x.shape[1] // 2
    if m not in KINDS or x.shape[2] != KINDS[m][1] or x.shape[3] != KINDS[m][1]:
        return False
    return block.first[0].weight.shape[:2] == (KINDS[m][3], KINDS[m][2])


def forward(block: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """`AffineCoupling.forward` by the kernels where they fit."""
    if not (x.is_cuda or ANYWHERE) or torch.is_autocast_enabled() or not fits(block, x):
        return PLAIN(block, x)
    zero = x.new_zeros(len(x))
    if x.ndim == 2:
        a, b = torch.split(x.index_select(1, block.order), block.halves, 1)
        a = RowAffine.apply(a, block.first(b))
        b = RowAffine.apply(b, block.second(a))
        return torch.cat([a, b], 1), zero
    params = [p for net in (block.first, block.second) for layer in net[::2] for p in (layer.weight, layer.bias)]
    return ConvCoupling.apply(x.contiguous(), block.order, block.back, *params), zero


def gin_loss(method: Any, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """GIN's loss for hard labels and normal latent variables, by products of one-hot labels and no (n, classes, d)."""
    if method.has_soft_labels_ or method.family != "normal" or method.statistics != "batch":
        return PLAIN_LOSS(method, net, batch)
    r = batch["r"]
    y, log_det = net.flow(method.to_network_input(batch["x"], batch["eps"]))
    count = r.sum(0)
    share = (r * (count >= 2)).sum(1)
    p = (r / count.clamp(min=1)).T  # (classes, n)
    left = y - r @ (p @ y)
    square = left.square()
    variance = (r @ (p @ square)).clamp(min=1e-12)
    nats = 0.5 * (square / variance + variance.log() + math.log(2 * math.pi)).sum(1) - log_det
    mean = (nats * share).sum() / share.sum().clamp(min=1)
    return {"loss": mean / y.shape[1], "nats": mean, "alone": (1 - share).sum()}


ANYWHERE = False  # also on a CPU, by the emulator
PLAIN, PLAIN_LOSS = AffineCoupling.forward, GIN.loss  # the package's own code


def install() -> None:
    """Replace the two functions."""
    AffineCoupling.forward, GIN.loss = forward, gin_loss  # type: ignore[assignment, method-assign]


def uninstall() -> None:
    """Restore them."""
    AffineCoupling.forward, GIN.loss = PLAIN, PLAIN_LOSS  # type: ignore[method-assign]
