"""Save fitted methods as JSON and safetensors, and load them. Nothing that is loaded can execute code."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor, nn

from unweave import __version__
from unweave.methods.user_networks import check_networks, compare_networks, describe_networks
from unweave.nn.adapters import USER_MODULE
from unweave.nn.autoencoder import is_user_network
from unweave.utils.errors import InputError
from unweave.utils.manifest import check_manifest
from unweave.utils.storage import check_hash, read_json, recipe_hash, sha256, source_hash, to_jsonable, write_json

if TYPE_CHECKING:
    from unweave.methods.base import Method

M = TypeVar("M", bound="Method")

CONFIG, WEIGHTS = "config.json", "model.safetensors"
HISTORY = "history.parquet"  # of a run: loading does not depend on it
CONFIG_TYPES = {"method": str, "params": dict, "learned": dict, "arrays": list, "sha256": str}
# What restoring a method raises for values of other types or sizes than those that were saved:
WRONG_VALUES = (ArithmeticError, AttributeError, LookupError, RuntimeError, SafetensorError, TypeError, ValueError)
# Not in recipes by default, so that keys of earlier runs stay valid:
OPTIONAL_SETTINGS = (
    "encoder", "decoder", "keep_weights", "lr_schedule", "kl_warmup", "per_number", "heavy_tails", "label_weight",
    "label_dim", "weight_average", "discriminator_norm", "gradient_penalty",
)  # fmt: skip

FITTING_MODULES = {"unweave.methods.encoding", "unweave.methods.restarts"}  # store learned values in any method


def write_method(method: Method, folder: Path) -> None:
    """Write settings and learned values of a fitted method into an existing folder.

    Learned values are attributes whose names end in an underscore: tensors, arrays and networks go to
    `model.safetensors`, everything else to `config.json`.
    """
    learned = {k: v for k, v in vars(method).items() if k.endswith("_") and not k.startswith("_")}
    arrays = {k: v for k, v in learned.items() if isinstance(v, np.ndarray) and v.dtype.kind in "fiub"}
    nets = {k: v for k, v in learned.items() if isinstance(v, nn.Module)}
    tensors = {k: v.detach().cpu().contiguous() for k, v in learned.items() if isinstance(v, Tensor)}
    tensors |= {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in arrays.items()}
    for name, net in nets.items():
        tensors |= {f"{name}.{k}": v.detach().cpu().contiguous().clone() for k, v in net.state_dict().items()}
    values = {k: v for k, v in learned.items() if k not in tensors and k not in nets}
    _check_jsonable(type(method).__name__, values)
    (folder / WEIGHTS).write_bytes(serialize(tensors))
    config = {
        "unweave": __version__,
        "method": method.name,
        "source": source_hash(type(method)),
        "params": saved_settings(method),
        "learned": values,
        "arrays": sorted(arrays),
        "sha256": sha256(folder / WEIGHTS),
    }
    if any(map(is_user_network, method.get_params(deep=False).values())):
        config["networks"] = {name: each._asdict() for name, each in describe_networks(method).items()}
    write_json(folder / CONFIG, config | {"checksum": recipe_hash(config, 16)})


def saved_settings(method: Method) -> dict[str, Any]:
    """Return the settings for JSON: a network of the user as one line, optional ones only where they are set."""
    settings: dict[str, Any] = method.get_params(deep=False)
    defaults = {field.name: field.default for field in fields(method)}
    unset = [name for name in OPTIONAL_SETTINGS if name in settings and settings[name] == defaults[name]]
    if any(map(is_user_network, settings.values())):
        settings |= {name: each.summary for name, each in describe_networks(method).items()}
    return {name: value for name, value in settings.items() if name not in unset}


def read_config(folder: Path) -> dict[str, Any]:
    """Return `config.json` of a saved method or a run, after checking that all its files are complete and unaltered."""
    check_manifest(folder, may_be_empty=(HISTORY,))
    config = read_json(folder / CONFIG)
    checksum = config.pop("checksum", None)
    if checksum != recipe_hash(config, 16):
        raise InputError(f"{folder / CONFIG} is truncated or altered: its checksum does not match. Save it again")
    for name, kind in CONFIG_TYPES.items():
        if not isinstance(config.get(name), kind):
            raise InputError(f"{folder / CONFIG} was not written by unweave: {name!r} is missing, or of another type")
    check_hash(folder / WEIGHTS, config["sha256"])
    return config


def load_method(cls: type[M], folder: Path, networks: Mapping[str, Any]) -> M:
    """Load a method of a known class, with the networks of the user that it was trained with, by their settings."""
    config = read_config(folder)
    if config["method"] not in (cls.name, *cls.aliases):
        raise InputError(f"{folder} holds a {config['method']!r}: expected a {cls.name!r}")
    if config.get("source") != source_hash(cls):
        raise InputError(f"{folder} was saved by another version of your class {cls.name!r}: its code has changed")
    saved = config.get("networks", {})
    check_networks(folder, saved, networks)
    forged = [name for name, value in config["params"].items() if is_user_network(value) and name not in networks]
    if forged:
        raise InputError(f"{folder} names a file to execute as {forged[0]}: loading executes no code. Do not trust it")
    config["params"] |= networks
    try:
        method = _restore_settings(cls, config)
        if saved:
            compare_networks(folder, saved, method)
        return _restore_learned(method, config, load_file(folder / WEIGHTS))
    except InputError:
        raise
    except WRONG_VALUES as error:
        raise InputError(f"{folder} was not written by this version of {cls.name!r} ({error})") from error


def _restore_settings(cls: type[M], config: dict[str, Any]) -> M:
    saved = config["params"].items()
    settings: dict[str, Any] = {_current_name(cls.renamed, k): tuple(v) if isinstance(v, list) else v for k, v in saved}
    settings.pop("", None)  # fields that were removed
    return cls(**settings)


def _restore_learned(method: M, config: dict[str, Any], tensors: dict[str, Tensor]) -> M:
    rename = partial(_current_name, method.renamed)
    tensors = {rename(k): tensor for k, tensor in tensors.items()}
    weights = {k: tensors.pop(k) for k in list(tensors) if "." in k}
    networks = {k.partition(".")[0] for k in weights}
    learned: dict[str, Any] = {rename(k): value for k, value in config["learned"].items()}
    learned |= {k: tensors.pop(k).numpy() for k in map(rename, config["arrays"])} | tensors
    learned.pop("", None)  # values that were removed
    _refuse_undeclared(type(method), [*learned, *networks])
    learned["shape_"] = tuple(map(operator.index, learned["shape_"]))
    if "feature_names_in_" in learned:
        learned["feature_names_in_"] = np.array(learned["feature_names_in_"], dtype=object)
    for name, value in learned.items():
        setattr(method, name, value)
    for name in networks:  # needs the learned values
        own = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith(f"{name}.")}
        setattr(method, name, method.rebuild_network(own))
    return method


def _refuse_undeclared(cls: type[Method], names: Iterable[str]) -> None:
    """Raise an error for a name that is no learned value of the class: a forged file could replace a method by it."""
    is_ours = all(base.__module__.split(".")[0] in ("unweave", "sklearn", "builtins", "abc") for base in cls.__mro__)
    declared = learned_names(cls) if is_ours else None
    for name in names:
        is_plain = name.isidentifier() and name.endswith("_") and not name.startswith("_") and not hasattr(cls, name)
        if not is_plain or (declared is not None and name not in declared):
            raise InputError(f"{name!r} is no learned value of {cls.name!r}: its file was forged. Do not trust it")


@cache
def learned_names(cls: type[Method]) -> frozenset[str]:
    """Return the names with a final underscore in the code of a class of ours, its bases, and what these are fitted by.

    >>> from unweave.methods import PCA
    >>> "components_" in learned_names(PCA), "net_" in learned_names(PCA)
    (True, False)
    """
    modules = {base.__module__ for base in cls.__mro__ if base.__module__.startswith("unweave.")} | FITTING_MODULES
    loaders: list[Any] = [import_module(name).__loader__ for name in modules]
    codes = [loader.get_code(name) for loader, name in zip(loaders, modules, strict=True)]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names |= {name for name in code.co_names if name.endswith("_")}
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    return frozenset(names)


def _check_jsonable(class_name: str, values: dict[str, Any]) -> None:
    for name, value in values.items():
        try:
            json.dumps(value, default=to_jsonable)
        except TypeError as error:
            text = f"{class_name}.{name} is learned and cannot be saved ({error})"
            raise InputError(f"{text}: keep tensors, numbers, lists") from error


def renamed_settings(cls: type[Method]) -> dict[str, str]:
    """Return the current names of settings by their former names; '' if the setting was removed."""
    current = {field.name for field in fields(cls)}
    return {a: b for a, b in cls.renamed.items() if a not in current and b in {*current, ""}}


def _current_name(renamed: Mapping[str, str], name: str) -> str:
    """Return the current name of a saved value; in a dotted name each part may have been renamed, but for users'."""
    ours, dot, users = name.partition(f".{USER_MODULE}.")
    return ".".join(renamed.get(part, part) for part in ours.split(".")) + dot + users
