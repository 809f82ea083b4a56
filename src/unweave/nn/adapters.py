"""Modules of users as encoders and decoders: check them, adapt their outputs, give them new weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized

from unweave.data.features import as_features
from unweave.utils.errors import InputError, first_line

EXAMPLE_ROWS = 2  # observations on which a module is tried
USER_MODULE = "module"  # attribute of adapters: names of weights below it are the user's
ADVICE = "the loss must be a function of weights and batch alone"

Role = Literal["encoder", "decoder"]


class OwnEncoder(nn.Module):
    """A user's module (n, *shape) -> (n, m), and a linear layer if m is not the number of outputs of the method."""

    def __init__(self, module: nn.Module, features: int, outputs: int) -> None:
        super().__init__()
        self.module = module
        self.head = nn.Identity() if features == outputs else nn.Linear(features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *shape) -> (n, outputs)."""
        out: Tensor = self.head(as_features(self.module(x)))
        return out


class OwnDecoder(nn.Module):
    """A user's module (n, codes) -> (n, *shape), whose outputs may have another shape with as many numbers."""

    def __init__(self, module: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.module, self.shape = module, shape

    def forward(self, z: Tensor) -> Tensor:
        """Map (n, codes) -> (n, *shape)."""
        out: Tensor = self.module(z)
        return out.reshape(len(z), *self.shape)


def adapt_encoder(module: nn.Module, shape: tuple[int, ...], outputs: int, *, reset: bool) -> OwnEncoder:
    """Return an encoder (n, *shape) -> (n, outputs) made of a copy of a user's module.

    Args:
        module: A module that takes observations and returns features, (n, m) with any m.
        shape: Shape of one observation.
        outputs: Outputs that the method needs; a linear layer follows where m is another number.
        reset: Whether to draw new weights, see `reset_weights`.
    """
    module = copy_module(module)
    x = torch.rand(EXAMPLE_ROWS, *shape, generator=Generator().manual_seed(0))
    values = _try_module("encoder", module, x, f"(n, {_text(shape)}) -> (n, m)", as_features)
    if values.ndim != 2 or len(values) != len(x) or not values.is_floating_point():
        text = f"the encoder maps {tuple(x.shape)} to {tuple(values.shape)} of {values.dtype}"
        raise InputError(f"{text}: expected one row of features per observation, ({len(x)}, m)")
    if reset:
        reset_weights(module)
    return OwnEncoder(freeze_parameters(module), values.shape[1], outputs)


def adapt_decoder(module: nn.Module, codes: int, shape: tuple[int, ...], *, reset: bool) -> OwnDecoder:
    """Return a decoder (n, codes) -> (n, *shape) made of a copy of a user's module; see `adapt_encoder`."""
    module = copy_module(module)
    z = torch.randn(EXAMPLE_ROWS, codes, generator=Generator().manual_seed(0))
    needs = f"(n, {codes}) -> (n, {_text(shape)})"
    out = _try_module("decoder", module, z, needs, lambda output: output)
    if not isinstance(out, Tensor):
        raise InputError(f"the decoder returned {type(out).__name__}: expected a tensor, {needs}")
    if len(out) != len(z) or out[0].numel() != math.prod(shape):
        raise InputError(f"the decoder maps {tuple(z.shape)} to {tuple(out.shape)}: expected {needs}")
    if reset:
        reset_weights(module)
    return OwnDecoder(freeze_parameters(module), shape)


def _text(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))


def copy_module(module: nn.Module) -> nn.Module:
    """Return a copy in single precision on the CPU, where every seed starts; modes of layers are kept."""
    return copy.deepcopy(module).to("cpu", torch.float32)


@torch.no_grad()
def _try_module(role: Role, module: nn.Module, x: Tensor, needs: str, read: Callable[[Any], Any]) -> Any:
    """Apply a module to example inputs; raise an InputError if it fails, is random or changes its buffers."""
    try:
        if any(is_lazy(p) for p in module.parameters()):
            module(x)  # creates the weights
        buffers = {name: b.clone() for name, b in module.named_buffers()}
        state = torch.get_rng_state()
        out = read(module(x))
    except InputError as error:
        raise InputError(f"the {role} does not fit: {error}; expected {needs}") from error
    except Exception as error:  # whatever a user's module raises
        text = f"the {role} cannot take inputs of shape {tuple(x.shape)}: {first_line(error)}"
        raise InputError(f"{text}. Expected a module {needs}") from error
    if not torch.equal(state, torch.get_rng_state()):
        layers = [f"{name} ({type(m).__name__})" for name, m in module.named_modules() if "Drop" in type(m).__name__]
        which = f", see {', '.join(layers[:3])}" if layers else ""
        raise InputError(f"the {role} draws random numbers{which}: {ADVICE}. Remove such layers, or call .eval()")
    changed = [name for name, b in module.named_buffers() if not torch.equal(b, buffers[name])]
    if changed:
        text = f"the {role} changes its buffer {changed[0]!r} when it is applied: {ADVICE}"
        raise InputError(f"{text}. Use GroupNorm or LayerNorm for BatchNorm, or call .eval() to keep given averages")
    return out


# Weights --------------------------------------------------------------------------------------------------------------


def reset_weights(module: nn.Module) -> None:
    """Draw new weights by `reset_parameters` of every layer that has it, inner layers first.

    Left as they are: layers with frozen parameters (`requires_grad=False`), and parameters of classes without
    `reset_parameters`.
    """
    for part in reversed(list(module.modules())):
        if is_resettable(part):
            reset: Any = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            reset()


def is_resettable(part: nn.Module) -> bool:
    """Return whether `reset_weights` draws new weights of this layer itself."""
    parameters = list(part.parameters(recurse=False))
    has_reset = hasattr(part, "reset_parameters") or hasattr(part, "_reset_parameters")
    only_averages = isinstance(part, _NormBase) and not parameters
    return has_reset and not only_averages and not is_parametrized(part) and all(p.requires_grad for p in parameters)


def freeze_parameters(module: nn.Module) -> nn.Module:
    """Turn frozen parameters (`requires_grad=False`) into buffers, which training leaves as they are."""
    for part in module.modules():
        for name, p in list(part.named_parameters(recurse=False)):
            if not p.requires_grad:
                delattr(part, name)
                part.register_buffer(name, p.detach().clone())
    return module
