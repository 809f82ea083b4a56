"""`Method`: the base class of all methods. Settings are dataclass fields; names of learned values end in "_"."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform, final

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from unweave.data.core import FactorData
from unweave.methods import encoding
from unweave.methods.persistence import load_method, renamed_settings, write_method
from unweave.training.loop import Callback
from unweave.utils.atomic import atomic_folder
from unweave.utils.errors import InputError, describe_renaming, kebab
from unweave.utils.validation import as_classes, check_fields

if TYPE_CHECKING:
    import pandas as pd


FigureName = str | Callable[..., Any]
"""Name of a figure in `unweave.report.figures.registry`, or a function (method, x, labels) -> matplotlib Figure."""

RESERVED_FIELDS = {"out", "codes", "metrics", "json", "data", "method", "test", "test_where"}  # flags of `unweave fit`


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class Method(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base class of methods, which learn codes z = encode(x).

    A subclass declares its settings as fields and defines `learn` and `encode`. It is then a keyword-only dataclass and
    a scikit-learn estimator, with a command line, `save` and `load`.

    Example:
        >>> import numpy as np
        >>> class Center(Method):
        ...     def learn(self, data):
        ...         self.mean_ = data.x.mean(0)
        ...     def encode(self, x):
        ...         return x - self.mean_
        >>> Center(latent_dim=2).fit_transform(np.array([[1.0, 5.0], [3.0, 1.0]]))
        array([[-1.,  2.],
               [ 1., -2.]])
    """

    name: ClassVar[str] = ""
    """Name in the catalog and on the command line; by default made from the name of the class."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Former names, which still work."""
    renamed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Current names of fields, learned values and parts of networks by their former names, to load old models.
    A field that was removed has the name ''.
    """
    paper: ClassVar[str] = ""
    """The paper that introduced the method."""
    needs: ClassVar[str] = "nothing"
    """The side information it learns from: nothing, labels, pairs, ..."""
    restarts: ClassVar[int] = 1
    """Number of models trained from different seeds, of which the best is selected; a field of methods that need it."""

    # Methods that choose it themselves widen the type to take a word such as "auto", against the type checker's rule
    # for fields. The wide type is not here, so that `BetaVAE(latent_dim="auto")` is a type error.
    latent_dim: int = 2
    """Number of factors to look for."""
    seed: int = 0
    """Seed of all randomness; the same seed gives the same codes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name, cls.aliases = vars(cls).get("name") or kebab(cls.__name__), vars(cls).get("aliases", ())
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        taken = RESERVED_FIELDS & {field.name for field in fields(cls)}
        if taken:
            raise InputError(f"{cls.__name__}: {taken.pop()!r} is a flag of `unweave fit`; rename the field")

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Refuse settings under former names, with the current ones, before the dataclass sees them."""
        for former, current in renamed_settings(cls).items():
            if former in settings:
                raise InputError(f"{cls.__name__}: {describe_renaming(former, current)}")
        return super().__new__(cls)

    # To define in a subclass ------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, data: FactorData) -> None:
        """Learn from the data: set attributes whose names end in an underscore, to tensors, arrays or plain values."""

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        """Return the codes (n, latent_dim) of observations (n, *shape)."""

    def decode(self, z: Tensor) -> Tensor:
        """Return the observations (n, *shape) of codes (n, latent_dim). Optional."""
        raise InputError(f"{self.name} has no decoder: it can transform, not inverse_transform")

    @final
    @classmethod
    def has_decoder(cls) -> bool:
        """Return whether the method defines `decode`."""
        return cls.decode is not Method.decode

    def rebuild_network(self, weights: dict[str, Tensor]) -> nn.Module:
        """Return a learned network with these weights, for `load`. Needed if the method has one."""
        raise InputError(f"{self.name} has no network")

    def figures(self) -> tuple[FigureName, ...]:
        """Return what `unweave draw` shows of a fitted method: names of figures, or functions of your own.

        A function takes (method, x (n, *shape), labels (n,) or None) and returns a matplotlib figure, or a dict of
        figures by file name. By default observations along each code, all codes by factors, and for images the
        figures of decoders.
        """
        images = self.has_decoder() and len(self.shape_) in (2, 3)
        decoded = ("traversals", "reconstructions", "interpolation") if images else ()
        return ("along-codes", "codes", *decoded)

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

    def named_codes(self) -> dict[str, list[int]]:
        """Return groups of codes by name, for exchanging them between observations; by default features of several."""
        groups = [group for group in self.feature_groups() if len(group) > 1]
        return {f"codes {group[0] + 1} to {group[-1] + 1}": group for group in groups}

    def code_periods(self) -> tuple[float | None, ...]:
        """Return the period of each code: 2 pi for an angle in radians, None for an ordinary number."""
        check_is_fitted(self)
        return (None,) * self.latent_dim_

    def summary(self) -> tuple[str, ...]:
        """Return sentences about a fitted method: how columns were scaled, and its `diagnosis_`, if it has one."""
        check_is_fitted(self)
        return (*encoding.describe_scaling(self), *map(str, getattr(self, "diagnosis_", ())))

    @property
    def history(self) -> pd.DataFrame:
        """Table of the terms of the loss by training step; empty for methods without training steps."""
        import pandas as pd

        return pd.DataFrame()

    def pack_signature(self) -> str | None:
        """Return a text that is equal for methods that may be trained together; None for those trained alone."""
        return None

    def uses_gpu(self) -> bool:
        """Return whether it is trained on a GPU where there is one."""
        return False

    def resolve_device(self) -> str:
        """Return the device for training on this machine."""
        return "cpu"

    def as_labels(self, y: Any) -> Any:
        """Convert y, as users pass it, to what `as_data` takes: by default to classes."""
        return as_classes(y)

    def learn_with_callback(self, data: FactorData, callback: Callback | None) -> None:
        """Learn and report progress; by default only `learn`, since there are no training steps to report."""
        self.learn(data)

    # The estimator ----------------------------------------------------------------------------------------------

    @final
    def fit(self, X: Any, y: Any = None, *, callback: Callback | None = None) -> Self:
        """Learn from data. Nothing is printed.

        Args:
            X: An array (n, d) or (n, ..., h, w), a DataFrame (named columns are standardized), a `FactorData`, a
                `Dataset`, or what `as_data` reads on demand.
            y: Labels, for the methods that need some; the others ignore it.
            callback: A function that is called with the `Progress` of methods trained by gradient descent.

        Example:
            >>> import numpy as np
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
        data = encoding.learn_scaling(self, data)
        self.learn_with_callback(data, callback)
        for name, value in list(vars(self).items()):
            if isinstance(value, Tensor):  # contiguous like loaded ones: matrix products round by memory layout
                setattr(self, name, value.contiguous())
        return self

    if TYPE_CHECKING:  # scikit-learn defines it, without types

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray: ...

    @final
    def to_data(self, X: Any, y: Any = None) -> FactorData:
        """Convert the arguments of `fit` to data."""
        return encoding.convert_observations(self, X, y)

    @final
    def validate_settings(self, data: FactorData) -> None:
        """Check the settings and store the shape of the data."""
        check_fields(self)
        latent_dim: Any = self.latent_dim  # some methods take "auto" and choose it themselves
        if not isinstance(latent_dim, str) and latent_dim < 1:
            raise InputError(f"latent_dim={self.latent_dim}: expected at least one factor")
        if self.seed < 0:
            raise InputError(f"seed={self.seed}: expected a whole number, 0 or more")
        self.n_features_in_, self.shape_ = data.shape[0], tuple(data.shape)
        self.latent_dim_ = self.latent_dim  # a method that chooses it sets this again in `learn`

    @final
    @classmethod
    def needs_y(cls) -> bool:
        """Return whether `fit` needs y to learn from an array."""
        return cls.needs in ("labels", "pairs")

    @final
    def transform(self, X: Any) -> np.ndarray:
        """Return the codes (n, latent_dim) of observations of the shape that was learned from.

        Of a `FactorData` or a `Dataset` without an end, a sample of 10,000 is transformed. Rows are read in parts.
        """
        check_is_fitted(self)
        return encoding.encode_observations(self, X)

    @final
    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Return the observations (n, *shape) of codes (n, latent_dim), in the units of the data."""
        check_is_fitted(self)
        return encoding.decode_array(self, Z)

    @property
    def _n_features_out(self) -> int:
        """Number of codes, for `get_feature_names_out` and `set_output`."""
        return int(self.latent_dim_)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return super().__repr__(N_CHAR_MAX) + encoding.describe_fitted(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = self.needs_y()
        return tags

    # Saving and loading -----------------------------------------------------------------------------------------

    @final
    def save(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors` into a new folder, which appears complete or not at all."""
        check_is_fitted(self)
        with atomic_folder(Path(folder)) as temporary:
            self.write(temporary)

    @final
    def write(self, folder: Path) -> None:
        """Write the two files into an existing folder."""
        write_method(self, folder)

    @final
    @classmethod
    def load(cls, folder: str | Path, **networks: nn.Module | str) -> Self:
        """Load a saved method of this class; networks of your own are passed again, as in `unweave.load`."""
        return load_method(cls, Path(folder), networks)
