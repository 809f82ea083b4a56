"""Export the decoder of a fitted method for `decoder.js`, which computes it in a page without a server.

The list of operations and the format of the weights are documented in `operations`. Nothing is assumed about a method:
its structure is read from `net_` and compared with what `decode` returns, and a method that does not match has no
exported decoder. Weights have 16 bits where that keeps the outputs, and 32 bits otherwise.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.methods.base import Method
from unweave.methods.encoding import learned_scaling
from unweave.nn.coupling import Flow
from unweave.report.explorer.operations import DecoderWriter, Operation, UnknownLayerError, round_weights

PROBES = 8  # codes at which a decoder is compared with its operations
MAX_CHECKED_CODES = 256
TOLERANCE = 0.5 / 255  # half a gray level, or of a column's deviation: the other half is for single precision
STRUCTURE_TOLERANCE = 1e-4  # between two ways to compute the same in single precision, relative to the largest value
LATENT_FUNCTIONS = {"normal": "", "beta": "logit"}  # family of GIN: from codes to outputs; "log" for the others


class ExportedDecoder(NamedTuple):
    """A decoder for `decoder.js`; see `operations`."""

    operations: list[Operation]
    weights: bytes
    """Integers of 16 bits, compressed by zlib."""
    shape: tuple[int, ...]
    """Shape of a decoded observation."""
    latent_dim: int


def export_decoder(method: Method, codes: np.ndarray | None = None) -> ExportedDecoder | None:
    """Export the decoder of a fitted method; None if it has none, or one with unknown layers.

    The operations return what `method.inverse_transform` returns, in the units of the data, to one gray level (1/255);
    for tables to 1/255 of a column's deviation.

    Args:
        method: The fitted method.
        codes: Codes of observations, (n, latent_dim), at which the precision is checked; by default random ones.

    Example:
        >>> from unweave.methods import PCA
        >>> method = PCA(latent_dim=2).fit(np.random.default_rng(0).normal(size=(100, 5)))
        >>> [operation["op"] for operation in export_decoder(method).operations]
        ['linear', 'affine']
    """
    check_is_fitted(method)
    if not method.has_decoder():
        return None
    z = _checked_codes(method, codes)
    try:
        writer = _write(method, z, exact=False)
        if not _survives_rounding(method, z):
            writer = _write(method, z, exact=True)
    except UnknownLayerError:
        return None
    return ExportedDecoder(writer.operations, writer.compress(), tuple(method.shape_), int(method.latent_dim_))


def _checked_codes(method: Method, codes: np.ndarray | None) -> Tensor:
    if codes is not None and len(codes):
        rows = np.linspace(0, len(codes) - 1, min(len(codes), MAX_CHECKED_CODES)).astype(int)
        return torch.from_numpy(np.asarray(codes, dtype=np.float32)[rows])
    z = torch.randn(PROBES, method.latent_dim_, generator=Generator().manual_seed(0))
    return torch.sigmoid(z) if _latent_function(method) else z  # inside the support of every family


def _latent_function(method: Method) -> str:
    return LATENT_FUNCTIONS.get(getattr(method, "family", "normal"), "log")


@torch.no_grad()
def _write(method: Method, z: Tensor, *, exact: bool) -> DecoderWriter:
    """Write all operations of a method, those that undo the scaling of columns last."""
    writer = DecoderWriter(exact=exact)
    net: Any = getattr(method, "net_", None)
    if net is None:
        _write_linear(method, z, writer)
        return writer
    if isinstance(getattr(net, "flow", None), Flow):
        _write_flow(method, z, writer)
    elif isinstance(getattr(net, "decoder", None), nn.Module):
        _write_network(method, net.decoder, z, writer)
    else:
        raise UnknownLayerError("a network without a decoder")
    scaling = learned_scaling(method)
    if scaling is not None:
        writer.affine(scaling.scale, scaling.shift, tuple(method.shape_))
    return writer


def _agree(x: Tensor, y: Tensor) -> bool:
    """Return whether two results are the same but for rounding."""
    if x.numel() != y.numel():
        return False
    x, y = x.reshape(-1).double(), y.reshape(-1).double()
    return bool((x - y).abs().max() <= STRUCTURE_TOLERANCE * (1e-3 + y.abs().max()))


# Structures of decoders -----------------------------------------------------------------------------------------------


def _write_linear(method: Method, z: Tensor, writer: DecoderWriter) -> None:
    """Write a decoder that is an affine function of the codes, whatever it is called."""
    d = method.latent_dim_
    x = method.decode(torch.cat([torch.zeros(1, d), torch.eye(d), z]).double()).reshape(1 + d + len(z), -1)
    shift, matrix = x[0], (x[1 : d + 1] - x[0]).T  # (features,), (features, d)
    if not _agree(z.double() @ matrix.T + shift, x[d + 1 :]):
        raise UnknownLayerError("a decoder that is not linear")
    scale = matrix.abs().amax(1)
    scale = torch.where(scale > 0, scale, 1.0)  # rows have units of their own
    weight = writer.store(matrix / scale[:, None])
    writer.add("linear", **{"in": d, "out": len(matrix)}, weight=weight, bias=None)
    scaling = learned_scaling(method)
    if scaling is not None:
        scale, shift = scale * scaling.scale, shift * scaling.scale + scaling.shift
    writer.affine(scale, shift, tuple(method.shape_))


def _write_network(method: Method, decoder: nn.Module, z: Tensor, writer: DecoderWriter) -> None:
    """Write a network, with constants beside the codes as inputs, and a sigmoid behind it where there is one."""
    calls: list[tuple[Tensor, Tensor]] = []
    hook = decoder.register_forward_hook(lambda module, args, out: calls.append((args[0], out)))
    try:
        x = method.decode(z)
    finally:
        hook.remove()
    if len(calls) != 1:
        raise UnknownLayerError("a network that is not called once")
    ((inputs, out),) = calls
    d = z.shape[1]
    constants = inputs[:1, d:]
    if inputs.ndim != 2 or not torch.equal(inputs, torch.cat([z, constants.expand(len(z), -1)], 1)):
        raise UnknownLayerError("a network whose inputs are not the codes")
    if constants.numel():
        values = torch.cat([z.new_zeros(d), constants[0]])
        writer.add("place", size=len(values), indices=list(range(d)), values=writer.store(values))
    shape = writer.layers(decoder, (inputs.shape[1],))
    if prod(shape) != prod(method.shape_):
        raise UnknownLayerError("outputs of another size")
    if _agree(torch.sigmoid(out), x):
        writer.add("sigmoid")
    elif not _agree(out, x):
        raise UnknownLayerError("outputs that are computed further")


def _write_flow(method: Any, z: Tensor, writer: DecoderWriter) -> None:
    """Write the inverse of a flow, with the outputs that are no codes at their means."""
    function, flow = _latent_function(method), method.net_.flow
    functions: dict[str, Callable[[Tensor], Tensor]] = {"": lambda w: w, "log": torch.log, "logit": torch.logit}
    y = method.output_means_.to(z).repeat(len(z), 1)
    order = method.order_[: z.shape[1]]
    y[:, order] = functions[function](z)
    x = flow.inverse(y).reshape(len(z), -1)
    scale = method.scale_.reshape(-1) if method.standardize else torch.ones(1)
    if not _agree(x * scale, method.decode(z)):
        raise UnknownLayerError("a flow that is decoded in another way")
    if function:
        writer.add(function)
    means = method.output_means_.clone()
    means[order] = 0
    writer.add("place", size=len(means), indices=order.tolist(), values=writer.store(means))
    writer.layers(flow, (len(means),))
    if method.standardize:
        writer.affine(scale, torch.zeros_like(scale), tuple(method.shape_))


# Precision ------------------------------------------------------------------------------------------------------------


@torch.no_grad()
def _survives_rounding(method: Method, z: Tensor) -> bool:
    """Return whether matrices of 16 bits change decoded observations by less than the tolerance."""
    net = getattr(method, "net_", None)
    if net is None:  # rows are stored relative to their largest weight
        return True
    rounded = copy.copy(method)
    rounded.net_ = copy.deepcopy(net)
    for p in (*rounded.net_.parameters(), *rounded.net_.buffers()):
        if p.ndim >= 2 and p.is_floating_point():
            p.copy_(torch.from_numpy(round_weights(p.double().numpy())))
    x, y = (m.decode(z).reshape(len(z), -1).double() for m in (method, rounded))
    unit = x.std(0, correction=0) + 1e-4 * x.abs().mean(0) if len(method.shape_) == 1 else torch.ones(1)
    return bool(((x - y).abs() <= TOLERANCE * unit.clamp(min=1e-30)).all())
