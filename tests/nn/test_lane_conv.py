"""Convolutions of stacks: derivatives, lanes and kernels give what torch's convolutions give."""

import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from unweave.nn import lane_conv, lane_conv_ops
from unweave.nn.autoencoder import conv_decoder, conv_encoder
from unweave.nn.conv_matmul import replace_convs
from unweave.nn.spectral_norm import apply_spectral_norm


def per_lane(function, axes):
    """Apply a function of images (n, c, h, w) to every lane of images with channels last."""

    def run(image, *args):
        if image.ndim == axes:
            return function(image.permute(0, 3, 1, 2), *args).contiguous()
        lanes = range(len(image))
        return torch.stack([run(image[i], *(a[i] if isinstance(a, torch.Tensor) else a for a in args)) for i in lanes])

    return run


def activate(y, gate, slope):
    y = y.permute(0, 2, 3, 1)
    return F.leaky_relu(y, slope) if gate is None else torch.where(gate > 0, y, slope * y)


def plain_convolve(x, weight, bias, gate, stride, slope):
    return activate(F.conv2d(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype), stride, 1), gate, slope)


def plain_upsample(x, weight, bias, gate, height, width, slope):
    extra = height - 2 * x.shape[2], width - 2 * x.shape[3]
    return activate(F.conv_transpose2d(x, weight.to(x.dtype), bias, 2, 1, extra), gate, slope)


def plain_weight_gradient(x, gradient, side, stride):
    shape = gradient.shape[-1], x.shape[1], side, side
    return torch.nn.grad.conv2d_weight(x, shape, gradient.permute(0, 3, 1, 2), stride, 1).float()


@pytest.fixture
def without_triton(monkeypatch):
    """Compute what the kernels compute by torch, in float32."""
    monkeypatch.setattr(lane_conv_ops, "run_convolve", per_lane(plain_convolve, 4))
    monkeypatch.setattr(lane_conv_ops, "run_upsample", per_lane(plain_upsample, 4))
    monkeypatch.setattr(lane_conv_ops, "run_weight_gradient", per_lane(plain_weight_gradient, 4))
    monkeypatch.setattr(lane_conv, "PRECISION", torch.float32)


class Skip(nn.Module):
    """A network of a user, who reads what is between two layers."""

    def __init__(self):
        super().__init__()
        layers = nn.Conv2d(2, 4, 4, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 1, 1), nn.ReLU()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        before = self.layers[0](x)
        h = self.layers[1](before)
        return before + h + self.layers[2:](h)


NETS = {
    "encoder": lambda: (conv_encoder((2, 16, 16), 3, widths=(4, 5, 6)), torch.rand(3, 4, 2, 16, 16)),
    "odd sides": lambda: (nn.Sequential(nn.Conv2d(2, 3, 4, 2, 1), nn.Conv2d(3, 2, 4, 2, 1)), torch.rand(3, 2, 2, 7, 9)),
    "decoder": lambda: (conv_decoder(3, (2, 16, 16), widths=(4, 5)), torch.rand(3, 4, 3)),
    "leaky": lambda: (
        nn.Sequential(
            conv_encoder((2, 16, 16), 3, widths=(4, 5, 6), activation=partial(nn.LeakyReLU, 0.2)),
            conv_decoder(3, (2, 16, 16), widths=(4, 5), activation=partial(nn.LeakyReLU, 0.3)),
        ),
        torch.rand(3, 4, 2, 16, 16),
    ),
    "skip": lambda: (Skip(), torch.rand(3, 4, 2, 16, 16)),
    "spectral": lambda: (apply_spectral_norm(conv_encoder((2, 8, 8), 3, widths=(4, 5))), torch.rand(3, 4, 2, 8, 8)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_lanes_and_second_derivatives_equal_those_of_plain_convolutions(name, compiled, without_triton):
    torch.manual_seed(0)
    net, x = NETS[name]()
    fast = replace_convs(net, use_triton=True)
    used = {"encoder": 3, "leaky": 5}.get(name, 2)
    assert sum(getattr(module, "use_triton", False) for module in fast.modules()) == used
    params = {k: torch.stack([p.detach() * (1 + i / 9) for i in range(3)]) for k, p in net.named_parameters()}

    def objective(which):
        def loss(p, rows):
            return functional_call(which, p, (rows,)).square().mean()

        def twice(p, rows):
            return loss(p, rows) + sum(g.square().sum() for g in grad(loss)(p, rows).values())

        return vmap(grad(twice))

    found = objective(fast)
    if compiled:
        torch._dynamo.reset()
        found = torch.compile(found, fullgraph=True, dynamic=False, backend="aot_eager")
    expected, found = objective(net)(params, x), found(params, x)
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, atol=1e-5, rtol=1e-4, msg=key)


KERNELS = """
import torch
from torch.nn import functional as F
from unweave.nn import lane_conv_ops
from tests.nn.test_lane_conv import per_lane, plain_convolve, plain_upsample, plain_weight_gradient
torch.manual_seed(0)
for n, H, W, a, b, side, stride in [(3, 8, 8, 1, 5, 4, 2), (2, 9, 6, 3, 20, 4, 2), (2, 6, 4, 16, 33, 4, 2),
                                    (40, 7, 5, 4, 6, 3, 1)]:
    x, weight, bias = torch.randn(2, n, H, W, a), torch.randn(2, b, a, side, side), torch.randn(2, b)
    y = lane_conv_ops.run_convolve(x, weight, bias, None, stride, 0.2)
    for gate in (None, torch.randn_like(y)):
        y = lane_conv_ops.run_convolve(x, weight, bias, gate, stride, 0.2)
        expected = per_lane(plain_convolve, 4)(x, weight, bias, gate, stride, 0.2)
        torch.testing.assert_close(y, expected, atol=1e-4, rtol=1e-4)
    d = lane_conv_ops.run_weight_gradient(x, y, side, stride)
    torch.testing.assert_close(d, per_lane(plain_weight_gradient, 4)(x, y, side, stride), atol=1e-3, rtol=1e-4)
    if stride == 2:
        for bias, gate, slope in ((None, None, 1.0), (torch.randn(2, a), None, 0.0), (None, torch.randn_like(x), 0.3)):
            z = lane_conv_ops.run_upsample(y, weight, bias, gate, H, W, slope)
            expected = per_lane(plain_upsample, 4)(y, weight, bias, gate, H, W, slope)
            torch.testing.assert_close(z, expected, atol=1e-4, rtol=1e-4)
"""


def test_kernels_give_what_torch_gives():
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", KERNELS],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_kernels_compile_for_a_gpu():
    """Triton compiles for a GPU without one; it refuses names and types that its interpreter accepts."""
    pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as compile_kernel

    from unweave.nn import lane_conv_kernels as kernels

    types = {"image": "*bf16", "weight": "*bf16", "gradient": "*bf16", "bias": "*fp32", "gate": "*bf16", "out": "*bf16"}
    sizes = {"A": 32, "B": 32, "SIDE": 4, "STRIDE": 2, "SLOPE": 0.0, "HAS_BIAS": True, "HAS_GATE": True}
    sizes |= {"PART": 1024, "BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 64}
    for kernel in (kernels.convolve_kernel, kernels.upsample_kernel, kernels.weight_gradient_kernel):
        own = {name: value for name, value in sizes.items() if name in kernel.arg_names}
        signature = {name: "constexpr" if name in own else types.get(name, "i32") for name in kernel.arg_names}
        aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names) if name in types}
        code = compile_kernel(ASTSource(kernel, signature, own, aligned), target=GPUTarget("cuda", 90, 32)).asm["ptx"]
        assert "st.global.v4.b32" in code  # 16 bytes at once
        assert "cp.async.cg.shared.global" in code
