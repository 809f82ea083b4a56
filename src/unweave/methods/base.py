"""The estimator contract: hyper-parameters are dataclass fields, learned state ends in an underscore."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform, final

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialized
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Generator, Tensor, nn

from unweave import __version__
from unweave.data.arrays import as_data
from unweave.data.core import FactorData, as_float, split_rows
from unweave.data.dataset import Dataset
from unweave.training.callbacks import Callback
from unweave.utils.errors import InputError, kebab
from unweave.utils.source import source_hash
from unweave.utils.storage import atomic_folder, check_hash, read_json, recipe_hash, sha256, to_jsonable, write_json
from unweave.utils.validation import as_array, as_classes, check_fields, check_finite

if TYPE_CHECKING:
    import pandas as pd

FigureName = str | Callable[..., Any]
"""Name of a figure in `unweave.report.figures.registry`, or a function (method, x, labels) -> matplotlib Figure."""

RESERVED = {"out", "codes", "metrics", "json", "data", "method"}  # flags of `unweave fit`
AT_ONCE = 2**26  # numbers that are encoded at a time
LIMIT = 10_000  # observations drawn where something endless is to be transformed


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class Method(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Learns codes z = encode(x). A subclass names its fields and writes `learn` and `encode`; it is then a
    keyword-only dataclass and a scikit-learn estimator, with a command line, `save` and `load`.
    """

    name: ClassVar[str] = ""
    """name in the catalog and on the command line; made from the class name where a subclass sets none"""
    aliases: ClassVar[tuple[str, ...]] = ()
    """former names, which still work"""
    renamed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Current names of fields, learned attributes and network parts by their former names, so that old models load.
    A field that was removed has the name ''."""
    paper: ClassVar[str] = ""
    """the paper the method comes from"""
    needs: ClassVar[str] = "nothing"
    """the side information it learns from: nothing, labels, pairs, ..."""

    latent_dim: int = 2
    """how many factors to look for"""
    seed: int = 0
    """the same seed gives the same codes"""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name, cls.aliases = vars(cls).get("name") or kebab(cls.__name__), vars(cls).get("aliases", ())
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        taken = RESERVED & {field.name for field in fields(cls)}
        if taken:
            raise InputError(
                f"{cls.__name__}: a field cannot be called {taken.pop()!r}, which is a flag of `unweave fit`"
            )

    # Yours ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, data: FactorData) -> None:
        """Set the learned attributes: tensors, or plain values, whose names end in an underscore."""

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        """(n, *shape) -> (n, latent_dim)."""

    def decode(self, z: Tensor) -> Tensor:
        """(n, latent_dim) -> (n, *shape); write it if the method can."""
        raise InputError(f"{self.name} has no decoder: it can transform, not inverse_transform")

    @final
    @classmethod
    def has_decoder(cls) -> bool:
        """Whether there is a decoder."""
        return cls.decode is not Method.decode

    def rebuild_network(self, weights: dict[str, Tensor]) -> nn.Module:
        """A network that was learned, from its weights; write it if the method keeps one."""
        raise InputError(f"{self.name} keeps no network")

    def figures(self) -> tuple[FigureName, ...]:
        """Return what `unweave draw` shows of a fitted method: names of figures, or functions of your own.

        A function takes (method, x (n, *shape), labels (n,) or None) and returns a matplotlib figure, or a dict of
        figures by file name. By default the figures of decoders, for images.
        """
        images = self.has_decoder() and len(self.shape_) in (2, 3)
        return ("traversals", "reconstructions", "interpolation") if images else ()

    def log_likelihood(self, history: pd.DataFrame) -> float | None:
        """Return log p(x) per observation in nats, or a lower bound, for `unweave select`; None where there is none.

        `history` has a column for each term of the loss and the last rows of training; it is empty for methods
        without training steps.
        """
        return None

    def feature_groups(self) -> list[list[int]]:
        """Return the indices of the codes of each feature; by default every code is a feature."""
        check_is_fitted(self)
        return [[j] for j in range(self.latent_dim_)]

    def as_labels(self, y: Any) -> Any:
        """What users pass as y, in a form that `as_data` takes: classes, unless you say otherwise."""
        return as_classes(y)

    # Final ------------------------------------------------------------------------------------------------------

    def learn_with_callback(self, data: FactorData, callback: Callback | None) -> None:
        """Learn and report progress. A method that does not train step by step has none: it only calls `learn`."""
        self.learn(data)

    @final
    def fit(self, X: Any, y: Any = None, *, callback: Callback | None = None) -> Self:
        """Learn from data. Nothing is printed.

        Args:
            X: An array (n, d) or (n, ..., h, w), a `FactorData`, or a `Dataset`.
            y: Labels, for the methods that need some; the others ignore it.
            callback: A function that is called with the `Progress` of methods trained by gradient descent.

        Example:
            >>> from unweave.methods import BetaVAE
            >>> def log(progress):
            ...     for term, values in progress.terms.items():  # one value per lane: the model, or its restarts
            ...         print(progress.step, term, len(values))
            >>> _ = BetaVAE(latent_dim=2, steps=100, layers=(4,)).fit(np.eye(8), callback=log)
            100 loss 1
            100 rec 1
            100 kl 1
        """
        data = self.to_data(X, y)
        self.validate_settings(data)
        self.learn_with_callback(data, callback)
        for name, value in list(vars(self).items()):
            if isinstance(value, Tensor):  # as a file gives them back, since products round by layout
                setattr(self, name, value.contiguous())
        return self

    @final
    def to_data(self, X: Any, y: Any = None) -> FactorData:
        """What `fit` was passed, as data."""
        if isinstance(X, Dataset):
            X = X.load()
        if isinstance(X, FactorData):
            self.__dict__.pop("feature_names_in_", None)
            return X
        check_fields(self)
        if y is None and self.needs_y():
            name = type(self).__name__
            raise InputError(f"{name} requires y to be passed, but the target y is None: it learns from {self.needs}")
        return as_data(self._checked(X, reset=True), self.as_labels(y) if self.needs_y() else None)

    @final
    def validate_settings(self, data: FactorData) -> None:
        """Check the settings, and remember what is to be learned from."""
        check_fields(self)
        expected: Any = self.latent_dim  # some methods take words and choose it themselves
        if not isinstance(expected, str) and expected < 1:
            raise InputError(f"latent_dim={self.latent_dim}: look for at least one factor")
        if self.seed < 0:
            raise InputError(f"seed={self.seed}: expected a whole number from 0 on")
        self.n_features_in_, self.shape_ = data.shape[0], tuple(data.shape)
        self.latent_dim_ = self.latent_dim  # a method that chooses it says so in `learn`

    @final
    @classmethod
    def needs_y(cls) -> bool:
        """Whether arrays alone are not enough to learn from."""
        return cls.needs in ("labels", "pairs")

    @final
    def transform(self, X: Any) -> np.ndarray:
        """Codes, (n, latent_dim), of observations of the shape that was learned from."""
        check_is_fitted(self)
        if isinstance(X, Dataset):
            X = X.load()
        if isinstance(X, FactorData):
            X = X.collect(LIMIT, Generator().manual_seed(0)).x
        x = self._checked(X, reset=False)
        name = type(self).__name__
        if x.shape[1:] != self.shape_:
            raise InputError(f"{name} learned from observations of shape {self.shape_} and is given {x.shape[1:]}")
        with torch.no_grad():  # in parts: bytes become floats only while they are needed
            parts = split_rows(torch.from_numpy(x), AT_ONCE // max(1, prod(self.shape_)))
            z = torch.cat([self.encode(as_float(part)) for part in parts])
        if tuple(z.shape) != (len(x), self.latent_dim_):
            raise InputError(
                f"{name}.encode gave codes of shape {tuple(z.shape)}, expected ({len(x)}, {self.latent_dim_})"
            )
        codes = z.numpy(force=True).astype(np.float32 if x.dtype == np.uint8 else x.dtype, copy=False)
        check_finite(codes, what=f"what {name}.encode gave")
        return codes

    @final
    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Observations, (n, *shape), of codes (n, latent_dim)."""
        check_is_fitted(self)
        z = as_array(Z, "Input Z")
        z = z if z.dtype.kind == "f" else z.astype(np.float64)
        check_finite(z, what="Input Z")
        if z.ndim != 2 or z.shape[1] != self.latent_dim_:
            raise InputError(f"codes of shape {z.shape}: expected (n, {self.latent_dim_})")
        with torch.no_grad():
            return self.decode(torch.from_numpy(z)).numpy(force=True).reshape(-1, *self.shape_)

    def _checked(self, X: Any, *, reset: bool) -> np.ndarray:
        """Any array-like as finite floats; scikit-learn checks the number and names of features."""
        if isinstance(X, Tensor):
            X = as_array(X, "Input X")
        x = validate_data(
            self, X, reset=reset, dtype="numeric", allow_nd=True, ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1, accept_sparse=False,
        )  # fmt: skip
        if x.dtype == np.uint8 and x.ndim > 2:
            return np.ascontiguousarray(x)  # images stay bytes, a quarter of the memory
        x = as_array(x, "Input X")
        x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
        check_finite(x, getattr(self, "feature_names_in_", None))
        return x

    @property
    def _n_features_out(self) -> int:
        """For `get_feature_names_out` and `set_output`."""
        return int(self.latent_dim_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = self.needs_y()
        return tags

    # Files ------------------------------------------------------------------------------------------------------

    @final
    def save(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors` into a new folder, which appears whole or not at all."""
        check_is_fitted(self)
        with atomic_folder(Path(folder)) as tmp:
            self.write(tmp)

    @final
    def write(self, folder: Path) -> None:
        """Write the two files into an existing folder."""
        learned = {k: v for k, v in vars(self).items() if k.endswith("_") and not k.startswith("_")}
        arrays = {k: v for k, v in learned.items() if isinstance(v, np.ndarray) and v.dtype.kind in "fiub"}
        tensors = {k: v.detach().cpu().contiguous() for k, v in learned.items() if isinstance(v, Tensor)}
        tensors |= {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in arrays.items()}
        nets = {k: v for k, v in learned.items() if isinstance(v, nn.Module)}
        for name, net in nets.items():
            tensors |= {f"{name}.{k}": v.detach().cpu().contiguous().clone() for k, v in net.state_dict().items()}
        values = {k: v for k, v in learned.items() if k not in tensors and k not in nets}
        for name, value in values.items():
            try:
                json.dumps(value, default=to_jsonable)
            except TypeError as error:
                cls = type(self).__name__
                raise InputError(
                    f"{cls}.{name} is learned and cannot be saved ({error}): keep tensors, numbers, lists"
                ) from error
        (folder / "model.safetensors").write_bytes(serialized(tensors))
        config = {
            "unweave": __version__,
            "method": self.name,
            "source": source_hash(type(self)),
            "params": self.get_params(deep=False),
            "learned": values,
            "arrays": sorted(arrays),
            "sha256": sha256(folder / "model.safetensors"),
        }
        write_json(folder / "config.json", config | {"checksum": _checksum(config)})

    @final
    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The inverse of `save`, for a class at hand; `unweave.load` finds the class by itself. Executes nothing."""
        folder, name = Path(folder), cls.name
        config = read_config(folder)
        if config["method"] not in (name, *cls.aliases):
            raise InputError(f"{folder} holds a {config['method']!r}, not a {name!r}")
        if config["source"] != source_hash(cls):
            raise InputError(f"{folder} was made by another {name!r}: its code is not the code of this one")
        current = partial(_current_name, cls.renamed)
        try:
            values = {current(k): tuple(v) if isinstance(v, list) else v for k, v in config["params"].items()}
            values.pop("", None)  # fields that were removed
            params: dict[str, Any] = values
            method = cls(**params)
            tensors = {current(k): tensor for k, tensor in load_file(folder / "model.safetensors").items()}
            weights = {k: tensors.pop(k) for k in list(tensors) if "." in k}
            learned: dict[str, Any] = {current(k): value for k, value in config["learned"].items()}
            learned |= {k: tensors.pop(k).numpy() for k in map(current, config["arrays"])} | tensors
            learned["shape_"] = tuple(learned["shape_"])
            if "feature_names_in_" in learned:
                learned["feature_names_in_"] = np.array(learned["feature_names_in_"], dtype=object)
            for key, value in learned.items():
                setattr(method, key, value)
            for key in {k.partition(".")[0] for k in weights}:
                own = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith(f"{key}.")}
                setattr(method, key, method.rebuild_network(own))
        except (TypeError, KeyError, ValueError, RuntimeError, SafetensorError) as error:
            raise InputError(f"{folder} was not written by this version of {name!r} ({error})") from error
        return method


def read_config(folder: Path) -> dict[str, Any]:
    """What a saved method says of itself, after both its files were found to be whole."""
    config = read_json(folder / "config.json")
    checksum = config.pop("checksum", None)
    if checksum != _checksum(config):
        raise InputError(f"{folder / 'config.json'} is truncated or altered: its checksum does not fit; make it again")
    check_hash(folder / "model.safetensors", config["sha256"])
    return config


def _current_name(renamed: Mapping[str, str], name: str) -> str:
    """Return the current name of a saved value; in a dotted name each part may have been renamed."""
    return ".".join(renamed.get(part, part) for part in name.split("."))


def _checksum(config: dict[str, Any]) -> str:
    return recipe_hash(config, 16)
