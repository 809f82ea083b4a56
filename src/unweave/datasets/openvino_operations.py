"""The operations of OpenVINO networks in PyTorch, with inputs and options as docs.openvino.ai defines them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Options = Mapping[str, str]
Operation = Callable[[list[Tensor], Options], Tensor | tuple[Tensor, ...]]


def matmul(inputs: list[Tensor], options: Options) -> Tensor:
    """Multiply matrices, each transposed first if the options require it."""
    a, b = inputs
    return (a.mT if is_true(options, "transpose_a") else a) @ (b.mT if is_true(options, "transpose_b") else b)


def reshape(inputs: list[Tensor], options: Options) -> Tensor:
    """Reshape to the second input, in which 0 keeps the present length."""
    x, shape = inputs[0], inputs[1].tolist()
    if is_true(options, "special_zero"):
        shape = [x.shape[axis] if length == 0 else length for axis, length in enumerate(shape)]
    return x.reshape(shape)


def unsqueeze(inputs: list[Tensor], _: Options) -> Tensor:
    """Insert axes of length 1 at positions counted in the result."""
    x, positions = inputs[0], inputs[1].reshape(-1).tolist()
    for axis in sorted(position % (x.ndim + len(positions)) for position in positions):
        x = x.unsqueeze(axis)
    return x


def gather(inputs: list[Tensor], _: Options) -> Tensor:
    """Select entries along an axis by index."""
    x, index, axis = inputs
    return x[(slice(None),) * (int(axis) % x.ndim) + (index.long().to(x.device),)]


def variadic_split(inputs: list[Tensor], _: Options) -> tuple[Tensor, ...]:
    """Split along an axis; one length may be -1, for the rest."""
    x, axis, lengths = inputs[0], int(inputs[1]), inputs[2].tolist()
    rest = x.shape[axis] - sum(length for length in lengths if length >= 0)
    return tuple(torch.split(x, [rest if length < 0 else length for length in lengths], axis))


def broadcast(inputs: list[Tensor], options: Options) -> Tensor:
    """Broadcast to the shape in the second input, or to the common shape of both."""
    x, shape = inputs[0], inputs[1].tolist()
    return x.broadcast_to(np.broadcast_shapes(x.shape, shape) if options.get("mode") == "bidirectional" else shape)


def convolution(inputs: list[Tensor], options: Options) -> Tensor:
    """Convolve with weights (out, in, height, width), or (group, out, in, height, width)."""
    x, weights = inputs
    groups, weights = (len(weights), weights.flatten(0, 1)) if weights.ndim == 5 else (1, weights)
    stride, padding, dilation = (parse_integers(options[key]) for key in ("strides", "pads_begin", "dilations"))
    return F.conv2d(x, weights, None, stride, padding, dilation, groups)


def transposed_convolution(inputs: list[Tensor], options: Options) -> Tensor:
    """Apply a transposed convolution with weights (group, in, out, height, width)."""
    x, weights = inputs
    stride, padding, dilation = (parse_integers(options[key]) for key in ("strides", "pads_begin", "dilations"))
    return F.conv_transpose2d(x, weights.flatten(0, 1), None, stride, padding, 0, len(weights), dilation)


def is_true(options: Options, name: str) -> bool:
    """Return whether an option is set and true."""
    return options.get(name, "").lower() in ("true", "1")


OPERATIONS: dict[str, Operation] = {
    "Add": lambda inputs, _: inputs[0] + inputs[1],
    "Broadcast": broadcast,
    "Concat": lambda inputs, options: torch.cat(inputs, int(options["axis"])),
    "Convolution": convolution,
    "Gather": gather,
    "GroupConvolution": convolution,
    "GroupConvolutionBackpropData": transposed_convolution,
    "MatMul": matmul,
    "Multiply": lambda inputs, _: inputs[0] * inputs[1],
    "PReLU": lambda inputs, _: F.prelu(inputs[0], inputs[1].flatten()),
    "Power": lambda inputs, _: inputs[0] ** inputs[1],
    "ReduceMean": lambda inputs, options: inputs[0].mean(inputs[1].flatten().tolist(), is_true(options, "keep_dims")),
    "Reshape": reshape,
    "ShapeOf": lambda inputs, _: torch.tensor(inputs[0].shape),
    "Squeeze": lambda inputs, _: inputs[0].squeeze(inputs[1].flatten().tolist()),
    "Tile": lambda inputs, _: inputs[0].repeat(inputs[1].tolist()),
    "Unsqueeze": unsqueeze,
    "VariadicSplit": variadic_split,
}


def parse_integers(text: str) -> list[int]:
    """Return the integers in a list such as "2, 1"."""
    return [int(part) for part in text.split(",") if part.strip()]
