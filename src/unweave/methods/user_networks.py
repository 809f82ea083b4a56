"""Networks of users in methods: their place in recipes, in saved models, and on other machines.

A module is described by its architecture, the code of its classes and the weights that it brings along; a function
`mine.py:build` by the hash of its file. Only texts and hashes are stored, and loading executes nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from unweave.nn.adapters import is_resettable
from unweave.nn.autoencoder import is_user_network
from unweave.utils.errors import InputError, first_line
from unweave.utils.storage import recipe_hash, source_hash
from unweave.utils.user_files import load_from_file

if TYPE_CHECKING:
    from unweave.methods.base import Method

NetworkFunction = Callable[[tuple[int, ...], int], Any]
"""Builds (encoder, decoder) from the shape of an observation and the number of inputs of the decoder."""
UserModules = tuple[nn.Module | None, nn.Module | None]
"""Encoder and decoder of the user; None for one that the method builds from its settings."""

CARRIED_FUNCTION = "_network_function"  # attribute of a method that was sent to a machine without the user's file
CODE_HASH = "unweave_code_hash"  # attribute of a class that was sent to a machine without its source
TORCH_ATTRIBUTES = {*vars(nn.Module()), "_flat_weights", "_flat_weight_refs"}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Description(NamedTuple):
    """A network of a user in texts and hashes."""

    summary: str
    """One line for recipes and tables; it identifies everything that decides the result of training."""
    architecture: str
    """The layers, as `repr` shows them; '' for a function."""
    structure: str
    """Hash of layers, their settings, and shapes of weights; '' for a function."""
    code: str
    """Hash of the code of the user's classes, or of the file of the function."""
    torch: str = torch.__version__
    """Version of torch, which decides how its layers are described."""


def user_networks(method: Method) -> dict[str, Any]:
    """Return the settings of a method that are networks of the user: encoder, decoder or network."""
    params = method.get_params(deep=False)
    return {name: params[name] for name in ("encoder", "decoder", "network") if is_user_network(params.get(name))}


def describe_networks(method: Method) -> dict[str, Description]:
    """Return the description of every network of the user in a method, by the name of the setting."""
    keep = bool(method.get_params(deep=False).get("keep_weights", False))
    return {
        name: describe_module(value, keep_weights=keep) if isinstance(value, nn.Module) else describe_function(method)
        for name, value in user_networks(method).items()
    }


# Functions in a user's file -------------------------------------------------------------------------------------------


def network_function(method: Method) -> NetworkFunction:
    """Return the function that `network` names, from the user's file or as it was sent from another machine."""
    carried = vars(method).get(CARRIED_FUNCTION)
    if carried is None:
        carried = load_from_file("network", method.get_params(deep=False)["network"], "mine.py:build")
    if not isinstance(carried, FunctionType):
        name = method.get_params(deep=False)["network"]
        raise InputError(f"{name} is no function: expected build(shape, latent_dim) -> (encoder, decoder)")
    function: NetworkFunction = carried
    return function


def call_network_function(method: Method, shape: tuple[int, ...], codes: int) -> UserModules:
    """Return encoder and decoder from the function that `network` names; no decoder for a method without one.

    Args:
        method: The method whose settings name the function.
        shape: Shape of one observation.
        codes: Number of inputs of the decoder.
    """
    params = method.get_params(deep=False)
    function = network_function(method)
    try:
        result = function(shape, codes)
    except Exception as error:  # whatever a user's function raises
        text = f"{params['network']} failed for shape={shape}, latent_dim={codes}"
        raise InputError(f"{text}: {type(error).__name__}: {first_line(error)}") from error
    pair = result if isinstance(result, tuple | list) else (result,)
    is_complete = len(pair) == 2 or (len(pair) == 1 and "decoder" not in params)
    if not is_complete or not all(isinstance(module, nn.Module) for module in pair):
        text = f"{params['network']} returned {', '.join(type(value).__name__ for value in pair) or 'nothing'}"
        raise InputError(f"{text}: expected two torch modules, (encoder, decoder)")
    return pair[0], pair[1] if len(pair) == 2 else None


def describe_function(method: Method) -> Description:
    """Describe the function that `network` names; its file may move, but not change."""
    code = str(source_hash(network_function(method)))
    name = Path(method.get_params(deep=False)["network"]).name
    return Description(f"{name} (sha256 {code[:12]})", "", "", code)


# Modules --------------------------------------------------------------------------------------------------------------


def describe_module(module: nn.Module, *, keep_weights: bool = False) -> Description:
    """Describe a module. Weights count where training starts from them: frozen ones, or all with `keep_weights`."""
    layers = [_describe_layer(name, part) for name, part in module.named_modules()]
    structure = recipe_hash(layers, 64)
    code = recipe_hash([code_hash(cls) for cls in _user_classes(module)], 64)
    modes = [part.training for part in module.modules()], [p.requires_grad for p in module.parameters()]
    tensors = [[name, _hash_tensor(t)] for name, t in _initial_tensors(module, keep_weights)]
    count = sum(p.numel() for p in module.parameters() if not is_lazy(p))
    key = recipe_hash([structure, code, modes, tensors], 12)
    return Description(f"{type(module).__name__} ({count:,} parameters, {key})", repr(module), structure, code)


def _describe_layer(name: str, part: nn.Module) -> list[Any]:
    """Return name, class, settings and shapes of one layer, without those inside it."""
    tensors = [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]
    shapes = [[k, "lazy" if is_lazy(t) else list(t.shape), str(t.dtype)] for k, t in tensors]
    settings = {k: _describe_value(v) for k, v in sorted(vars(part).items()) if k not in TORCH_ATTRIBUTES}
    return [name, type(part).__qualname__, settings, shapes]


def _describe_value(value: Any) -> Any:
    """Return a setting of a layer as JSON, equal for equal settings in every process."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, nn.Parameter):
        return "parameter"
    if isinstance(value, Tensor | np.ndarray):
        return _hash_tensor(torch.as_tensor(value))
    if isinstance(value, tuple | list):
        return [_describe_value(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_describe_value(v)) for v in value)
    if isinstance(value, Mapping):
        return {str(k): _describe_value(v) for k, v in value.items()}
    if isinstance(value, partial):
        return [_describe_value(v) for v in (value.func, value.args, value.keywords)]
    return getattr(value, "__qualname__", None) or ADDRESS.sub("", repr(value))


def _initial_tensors(module: nn.Module, keep_weights: bool) -> Iterable[tuple[str, Tensor]]:
    """Yield buffers, and the parameters that training starts from as they are."""
    for prefix, part in module.named_modules():
        if keep_weights or not is_resettable(part):
            yield from ((f"{prefix}.{name}", p) for name, p in part.named_parameters(recurse=False))
        yield from ((f"{prefix}.{name}", b) for name, b in part.named_buffers(recurse=False))


def _hash_tensor(tensor: Tensor) -> str:
    if is_lazy(tensor):
        return "lazy"
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(data.numpy().tobytes()).hexdigest()


def _user_classes(module: nn.Module) -> list[type]:
    """Return the classes of all layers and their bases that are not torch's or ours, in a fixed order."""
    classes = {base for part in module.modules() for base in type(part).__mro__}
    own = [cls for cls in classes if cls.__module__.split(".")[0] not in ("torch", "unweave", "builtins", "abc")]
    return sorted(own, key=lambda cls: cls.__qualname__)


@cache
def code_hash(cls: type) -> str:
    """Return a hash of the source of a class, or of its compiled functions where the source cannot be read."""
    if CODE_HASH in vars(cls):
        return str(vars(cls)[CODE_HASH])
    try:
        text = inspect.getsource(cls)
    except (OSError, TypeError):  # defined in a notebook or a terminal
        functions = {k: v for k, v in sorted(vars(cls).items()) if isinstance(v, FunctionType)}
        text = repr([(name, _describe_code(function.__code__)) for name, function in functions.items()])
    return hashlib.sha256(text.encode()).hexdigest()


def _describe_code(code: CodeType) -> list[Any]:
    constants = [_describe_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


# Loading --------------------------------------------------------------------------------------------------------------


def check_networks(folder: Path, saved: Mapping[str, Mapping[str, str]], given: Mapping[str, Any]) -> None:
    """Raise an error unless the caller of `load` passed a value for every network of the user, and no others."""
    for name in given:
        if name not in saved:
            raise InputError(f"{folder} was saved without {name}=: leave it out")
    missing = [name for name in saved if name not in given]
    if missing:
        texts = " and ".join(f"{name}={saved[name]['summary']}" for name in missing)
        again = ", ".join('network="path/to/mine.py:build"' if name == "network" else f"{name}=..." for name in saved)
        text = f"{folder} was trained with {texts}, of which it holds the weights alone: loading executes no code"
        command = "; `unweave draw` has --network" if "network" in missing else ""
        raise InputError(f"{text}. Pass what you trained with again: unweave.load({str(folder)!r}, {again}){command}")


def compare_networks(folder: Path, saved: Mapping[str, Mapping[str, str]], method: Method) -> None:
    """Raise an error if a network is not the one that was saved; warn where it only may be another one."""
    for name, now in describe_networks(method).items():
        before = saved[name]
        if name == "network" and now.code != before["code"]:
            raise InputError(f"{folder} was trained with another version of {now.summary}: its code has changed")
        is_same = now.structure == before["structure"]
        if not is_same and now.torch == before["torch"]:
            text = f"{folder} was trained with another {name}, {before['summary']}: the one passed is {now.summary}"
            raise InputError(f"{text}. Its architecture is in {folder / 'config.json'}, under networks")
        if not is_same or now.code != before["code"]:  # another version of torch may describe its layers differently
            text = f"the code of the {name} is not the one that {folder} was trained with: check its codes"
            warnings.warn(text, RuntimeWarning, stacklevel=5)


# Other machines -------------------------------------------------------------------------------------------------------


def attach_user_code(method: Method) -> list[ModuleType]:
    """Prepare a method for a machine without the user's files; return the Python modules to be pickled by value."""
    homes: list[ModuleType] = []
    for value in user_networks(method).values():
        if isinstance(value, nn.Module):
            for cls in _user_classes(value):
                home = sys.modules.get(cls.__module__)
                if home is not None and not _is_installed(home):
                    setattr(cls, CODE_HASH, code_hash(cls))
                    homes.append(home)
        else:
            function: Any = network_function(method)
            function.source_hash_ = source_hash(function)
            setattr(method, CARRIED_FUNCTION, function)
            homes.append(sys.modules[function.__module__])
    return homes


def _is_installed(module: ModuleType) -> bool:
    """Return whether a Python module is part of an installed package, which other machines are to have too."""
    path = Path(getattr(module, "__file__", None) or "")
    return bool({"site-packages", "dist-packages"} & {*path.parts})
