"""Operations of an exported decoder: layers of networks in, a JSON list and weights of 16 bits out.

A decoder is a list of operations. Each takes one flat array of numbers and returns another one. Images are
(channels, height, width) in row-major order, so reshaping is no operation. The first input are the codes.

| `op` | keys | output |
|---|---|---|
| `linear` | `in`, `out`, `weight` (out, in), `bias` or null | W x + b |
| `conv` | `in`, `out`, `kernel`, `stride`, `padding`, `weight` (out, in, kh, kw), `bias` | as `torch.nn.Conv2d` |
| `conv_transpose` | the same with `weight` (in, out, kh, kw) | as `torch.nn.ConvTranspose2d` |
| `relu`, `sigmoid`, `tanh`, `silu`, `log`, `logit` | none | the function of every number |
| `leaky_relu`, `elu` | `slope` | the function with this slope or limit below zero |
| `affine` | `channels`, `scale`, `shift` | scale x + shift, with one scale and shift for each channel |
| `place` | `size`, `indices`, `values` | `values` (size), with the inputs at `indices` |
| `permute` | `channels`, `order` | channel i is channel order[i] of the input |
| `pixel_shuffle` | `in` (c, h, w), `factor` f | (c / f^2, f h, f w) as `torch.nn.PixelShuffle` |
| `crop` | `in` (c, h, w), `out` (c, h, w) | the upper left part |
| `uncouple` | `shape`, `split`, `half`, `clamp`, `volume`, `network` | inverse of half a coupling block |

`uncouple` splits the channels after the first `split`. The other half goes through the operations of `network`, which
return log-scales s and shifts t. `half` ("first" or "second") becomes (x - t) exp(-s), with s bounded by `clamp` and
centered by `volume`; see `unweave.nn.coupling`.

An array of weights is a list of numbers, or {"at", "size", "scale", "parts"}: `size` integers of 16 bits begin at place
`at` of the weights. With one part they are i, and the values scale * i. With two parts as many integers j follow, and
the values are scale * (i + j / 65536). Integers are finer than half-precision numbers of the same size, except close to
zero, where it does not matter.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unweave.nn.adapters import OwnDecoder
from unweave.nn.autoencoder import Chain, Crop
from unweave.nn.batch_norm import EPS, BatchNormLayer, BatchNormNetwork
from unweave.nn.coupling import AffineCoupling, FlattenImages, Flow, Squeeze

STEPS = 32_767  # between zero and the largest weight of an array
PART = 65_536  # a second integer counts in this share of the first one's last bit
IMAGE_AXES = 3

Operation = dict[str, Any]
Shape = tuple[int, ...]


class UnknownLayerError(Exception):
    """A layer without an operation."""


def round_weights(values: np.ndarray) -> np.ndarray:
    """Return values as they are stored in one part: whole steps of the largest one's 32,767th part."""
    step = _step(values)
    return np.round(values / step) * step


def _step(values: np.ndarray) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    return largest / STEPS if largest > 0 else 1.0


class DecoderWriter:
    """Collects the operations and weights of a decoder.

    Args:
        exact: Store matrices in two parts; otherwise in one. Vectors always have two.
    """

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact
        self.operations: list[Operation] = []
        self._integers: list[np.ndarray] = []
        self._size = 0

    def add(self, op: str, **keys: Any) -> None:
        """Append an operation."""
        self.operations.append({"op": op, **keys})

    def store(self, tensor: Tensor) -> Operation:
        """Store an array of weights and return its description."""
        values = tensor.detach().cpu().double().numpy()
        if not np.isfinite(values).all():
            raise UnknownLayerError("weights that are not finite")
        step = _step(values)
        scaled = values.reshape(-1) / step
        parts = [np.round(scaled)]
        if self.exact or values.ndim < 2:
            parts.append(np.clip(np.round((scaled - parts[0]) * PART), -STEPS, STEPS))
        description = {"at": self._size, "size": values.size, "scale": step, "parts": len(parts)}
        self._integers += [part.astype("<i2") for part in parts]
        self._size += values.size * len(parts)
        return description

    def compress(self) -> bytes:
        """Return all weights: little-endian integers of 16 bits in the format of zlib."""
        return zlib.compress(b"".join(part.tobytes() for part in self._integers), 9)

    def affine(self, scale: Tensor, shift: Tensor, shape: Shape) -> None:
        """Append a scale and shift of every channel; numbers of tables are lists, since their units may differ."""
        values: dict[str, Any]
        if len(shape) == 1:
            values = {"scale": to_numbers(scale), "shift": to_numbers(shift)}
        else:
            values = {"scale": self.store(scale.reshape(-1)), "shift": self.store(shift.reshape(-1))}
        self.add("affine", channels=scale.numel(), **values)

    def layers(self, module: nn.Module, shape: Shape) -> Shape:
        """Append the operations of a module for inputs of a shape, without rows; return the shape of its outputs."""
        try:
            write = LAYERS[type(module)]  # only these classes themselves: a subclass may compute something else
        except KeyError:
            raise UnknownLayerError(type(module).__name__) from None
        return write(self, module, shape)

    def network(self, module: nn.Module, shape: Shape) -> list[Operation]:
        """Return the operations of a module as a list of its own."""
        outer, self.operations = self.operations, []
        try:
            self.layers(module, shape)
            return self.operations
        finally:
            self.operations = outer


def to_numbers(values: Tensor) -> list[float]:
    """Return numbers with nine digits, for JSON."""
    return [float(f"{value:.9g}") for value in values.reshape(-1).tolist()]


# Layers ---------------------------------------------------------------------------------------------------------------

Write = Callable[[DecoderWriter, Any, Shape], Shape]


def _sequence(writer: DecoderWriter, modules: Sequence[nn.Module], shape: Shape) -> Shape:
    for module in modules:
        shape = writer.layers(module, shape)
    return shape


def _linear(writer: DecoderWriter, layer: nn.Linear, shape: Shape) -> Shape:
    if shape != (layer.in_features,):
        raise UnknownLayerError(f"linear layer over the last axis of {shape}")
    bias = None if layer.bias is None else writer.store(layer.bias)
    sizes = {"in": layer.in_features, "out": layer.out_features}
    writer.add("linear", **sizes, weight=writer.store(layer.weight), bias=bias)
    return (layer.out_features,)


def _conv(writer: DecoderWriter, layer: nn.Conv2d | nn.ConvTranspose2d, shape: Shape) -> Shape:
    is_plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
    if len(shape) != IMAGE_AXES or not is_plain or isinstance(layer.padding, str):
        raise UnknownLayerError(repr(layer))
    transposed = isinstance(layer, nn.ConvTranspose2d)
    sides = zip(shape[1:], layer.kernel_size, layer.stride, layer.padding, layer.output_padding, strict=True)
    if transposed:
        out = tuple((side - 1) * stride - 2 * pad + kernel + more for side, kernel, stride, pad, more in sides)
    else:
        out = tuple((side + 2 * pad - kernel) // stride + 1 for side, kernel, stride, pad, _ in sides)
    keys = {"kernel": layer.kernel_size, "stride": layer.stride, "padding": layer.padding}
    shapes = {"in": list(shape), "out": [layer.out_channels, *out]}
    bias = None if layer.bias is None else writer.store(layer.bias)
    lists = {name: list(value) for name, value in keys.items()}
    name = "conv_transpose" if transposed else "conv"
    writer.add(name, **shapes, **lists, weight=writer.store(layer.weight), bias=bias)
    return layer.out_channels, *out


def _function(name: str, setting: str = "") -> Write:
    def write(writer: DecoderWriter, layer: nn.Module, shape: Shape) -> Shape:
        writer.add(name, **({"slope": float(getattr(layer, setting))} if setting else {}))
        return shape

    return write


def _reshape(writer: DecoderWriter, layer: nn.Module, shape: Shape) -> Shape:
    """Append nothing; the order of the numbers is the same. The shape is asked of the layer."""
    return tuple(layer(torch.zeros(1, *shape)).shape[1:])


def _crop(writer: DecoderWriter, layer: Crop, shape: Shape) -> Shape:
    out = (shape[0], layer.height, layer.width)
    writer.add("crop", **{"in": list(shape), "out": list(out)})
    return out


def _batch_norm(writer: DecoderWriter, layer: BatchNormLayer, shape: Shape) -> Shape:
    scale = layer.weight.double() * torch.rsqrt(layer.var.double() + EPS)
    writer.affine(scale, layer.bias.double() - layer.mean.double() * scale, (*shape, 1))
    return shape


def _own_decoder(writer: DecoderWriter, layer: OwnDecoder, shape: Shape) -> Shape:
    if prod(writer.layers(layer.module, shape)) != prod(layer.shape):
        raise UnknownLayerError("outputs of another size")
    return layer.shape


# The following write inverses of the blocks of flows, from the last one to the first.


def _invert_flow(writer: DecoderWriter, flow: Flow, shape: Shape) -> Shape:
    return _sequence(writer, list(reversed(flow.blocks)), shape)


def _invert_squeeze(writer: DecoderWriter, layer: Squeeze, shape: Shape) -> Shape:
    writer.add("pixel_shuffle", **{"in": list(shape), "factor": 2})
    return shape[0] // 4, 2 * shape[1], 2 * shape[2]


def _invert_flatten(writer: DecoderWriter, layer: FlattenImages, shape: Shape) -> Shape:
    return layer.shape


def _invert_coupling(writer: DecoderWriter, block: AffineCoupling, shape: Shape) -> Shape:
    a, b = block.halves
    keys = {"shape": list(shape), "split": a, "clamp": block.clamp, "volume": block.volume}
    writer.add("uncouple", **keys, half="second", network=writer.network(block.second, (a, *shape[1:])))
    writer.add("uncouple", **keys, half="first", network=writer.network(block.first, (b, *shape[1:])))
    writer.add("permute", channels=shape[0], order=block.back.tolist())
    return shape


LAYERS: dict[type, Write] = {
    Chain: lambda writer, module, shape: _sequence(writer, list(module), shape),
    nn.Sequential: lambda writer, module, shape: _sequence(writer, list(module), shape),
    BatchNormNetwork: lambda writer, module, shape: _sequence(writer, list(module.layers), shape),
    OwnDecoder: _own_decoder,
    nn.Linear: _linear,
    nn.Conv2d: _conv,
    nn.ConvTranspose2d: _conv,
    nn.ReLU: _function("relu"),
    nn.LeakyReLU: _function("leaky_relu", "negative_slope"),
    nn.ELU: _function("elu", "alpha"),
    nn.SiLU: _function("silu"),
    nn.Sigmoid: _function("sigmoid"),
    nn.Tanh: _function("tanh"),
    nn.Flatten: _reshape,
    nn.Unflatten: _reshape,
    nn.Identity: _reshape,
    BatchNormLayer: _batch_norm,
    Crop: _crop,
    Flow: _invert_flow,
    Squeeze: _invert_squeeze,
    FlattenImages: _invert_flatten,
    AffineCoupling: _invert_coupling,
}
