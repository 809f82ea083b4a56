"""`Neural`: the base class of methods trained by gradient descent."""

from __future__ import annotations

import copy
import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, final, get_type_hints

import pandas as pd
import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData, split_rows
from unweave.data.supervision import Plan, single
from unweave.methods.base import FigureName, Method
from unweave.methods.encoding import SCALING_ATTRIBUTES, learn_scaling
from unweave.methods.persistence import saved_settings
from unweave.methods.restarts import train_restarts
from unweave.training.adam import Adam, Schedule
from unweave.training.loop import Callback, Failure, train
from unweave.training.strategies import allow_tf32, matmul_precision
from unweave.utils.errors import InputError, constant_data_error, refuse_former_names
from unweave.utils.storage import to_jsonable
from unweave.utils.validation import normalize_numbers, resolve_device

Lane = Annotated[float, "lane"]
"""A setting that may differ between the models of a pack; in the loss it is a tensor."""

# Learned before training:
DATA_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "shape_", "latent_dim_", *SCALING_ATTRIBUTES)
FORMER_NAMES = {
    "stays": "is_cacheable",
    "draws": "sample_noise",
    "rates": "optimizers",
    "conclude": "after_training",
    "merit": "restart_score",
    "applied": "apply_network",
}  # current names of methods by their former names
MAX_NETWORK_ELEMENTS = 2**21  # numbers that go through a network at a time, after training


class Neural(Method):
    """Base class of methods with a network and a loss; the trainer does the rest.

    A subclass defines `build`, `loss` and `encode`. The loss must be a pure function of weights and batch: its
    randomness comes from `sample_noise`, its observations from `plan`. It is traced once, compiled, and run for many
    models at once, so it must not branch on the values of tensors. Fields annotated `Lane` are tensors in it.

    Example:
        >>> import numpy as np
        >>> class LinearAutoencoder(Neural):
        ...     def build(self, shape):
        ...         d = self.latent_dim
        ...         return nn.ModuleDict({"encoder": nn.Linear(shape[0], d), "decoder": nn.Linear(d, shape[0])})
        ...     def loss(self, net, batch):
        ...         error = net["decoder"](net["encoder"](batch["x"])) - batch["x"]
        ...         return {"loss": error.square().sum(1).mean()}
        ...     def encode(self, x):
        ...         return self.apply_network(lambda net, part: net["encoder"](part), x)
        >>> LinearAutoencoder(latent_dim=2, steps=10).fit_transform(np.eye(8)).shape
        (8, 2)
    """

    latent_dim: int = 10
    """Number of codes to learn."""
    steps: int = 5_000
    """Gradient steps; the large studies of the field take 300,000."""
    batch_size: int = 64
    """Observations per step."""
    lr: Lane = 5e-4
    """Learning rate of Adam."""
    lr_schedule: Schedule = "constant"
    """Learning rate over the steps: 'cosine' falls to zero, 'step' is divided by 10 after 1/2 and 3/4 of them."""
    clip: float = 0.0
    """Maximum norm of the gradient of all weights; 0 for no clipping."""
    weight_average: float = 0.0
    """Decay of a moving average of the weights, e.g. 0.999, which is the trained network; 0: the last weights."""
    precision: Literal["auto", "single", "tf32", "bf16"] = "auto"
    """Precision of products on a GPU: 23, 10 or 7 bits of fraction. 'auto': bf16 for convolutions, otherwise tf32."""
    device: str = "auto"
    """Device for training: 'cpu', 'cuda', or 'auto' for a GPU if there is one."""

    observations: ClassVar[int] = 1_000
    """Observations that are checked before training."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_former_names(cls, FORMER_NAMES)

    # To define in a subclass ------------------------------------------------------------------------------------

    @abstractmethod
    def build(self, shape: tuple[int, ...]) -> nn.Module:
        """Return the network for observations of this shape."""

    @abstractmethod
    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return scalars by name for one batch; the one called 'loss' is minimized, the others are recorded.

        The batch holds the tensors of `plan` and `sample_noise`, and 'progress', which goes from 0 to 1.
        """

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        """Return the points and labels of n observations, for many steps at once; by default points without labels."""
        return single(data, n, rng)

    def is_cacheable(self) -> bool:
        """Return whether `plan` only uses existing observations, so that they can be rendered once."""
        return type(self).plan is Neural.plan

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        """Return the random numbers that the loss uses, (n, ...) each."""
        return {}

    def prepare(self, data: FactorData) -> None:
        """Set attributes that `build` and `loss` need, with names that end in an underscore.

        They must be the same for all models of a pack.
        """

    def check_observations(self, x: Tensor) -> None:
        """Raise an InputError if the loss is not defined for such observations, (n, *shape)."""

    def after_training(self, data: FactorData) -> None:
        """Set further attributes with the trained network, with names that end in an underscore.

        Network and data are on the CPU.
        """

    def restart_score(self) -> float:
        """Return the score by which the best restart is chosen; by default minus the loss of the last steps."""
        last = self.history_[-max(1, len(self.history_) // 20) :, 1 + self.terms_.index("loss")]
        return -float(last.mean())

    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of the parameters by the prefix of their names; the longest prefix counts."""
        return {"": Adam(self.lr)}

    def figures(self) -> tuple[FigureName, ...]:
        return "curves", *super().figures()

    # Training ---------------------------------------------------------------------------------------------------

    @final
    def learn(self, data: FactorData) -> None:
        self.learn_with_callback(data, None)

    @final
    def learn_with_callback(self, data: FactorData, callback: Callback | None) -> None:
        """Train; the callback gets the progress of every restart as a lane."""
        (failure,) = fit_pack([self], data, callback=callback)
        if failure is not None:
            raise InputError(failure.text())

    @final
    def reset(self) -> None:
        """Remove the results of earlier training."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in DATA_ATTRIBUTES]:
            delattr(self, name)

    @final
    def store_training(self, net: nn.Module, terms: Sequence[str], history: Tensor, how: str) -> None:
        """Store network and history, (rows, 1 + terms): the step, and the means of all terms since the last row."""
        self.net_, self.terms_, self.history_, self.trained_ = net, list(terms), history, how

    @final
    def check_data(self, data: FactorData) -> None:
        """Raise an InputError for impossible settings, and for data in which nothing varies."""
        for name in ("steps", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: expected at least 1")
        if self.clip < 0 or not 0 <= self.weight_average < 1:
            raise InputError(f"clip={self.clip}, weight_average={self.weight_average}: expected a norm, a decay; or 0")
        rng = Generator(self.resolve_device()).manual_seed(0)
        points = data.points_or_sample(self.observations, rng, limit=sys.maxsize)
        x = data.render(points[: self.observations])
        self.check_observations(x)
        rest = split_rows(points, self.observations)[1:]
        if bool((x == x[:1]).all()) and all(bool((data.render(part) == x[:1]).all()) for part in rest):
            raise constant_data_error()

    @final
    def uses_gpu(self) -> bool:
        return self.device != "cpu"

    @final
    def resolve_device(self) -> str:
        """Return the device for training, 'auto' resolved."""
        return resolve_device(self.device)

    @final
    def apply_network(self, function: Callable[[Any, Tensor], Tensor], x: Tensor) -> Tensor:
        """Apply a function of network and rows to all rows of x, in parts; doubles in double precision.

        Many rows are computed on the method's device; the result is on the CPU.
        """
        parts = split_rows(x, MAX_NETWORK_ELEMENTS // max(1, prod(self.shape_)))
        if len(parts) > 1 and torch.cuda.is_available():
            try:
                net = copy.deepcopy(self.net_).to(device := self.resolve_device(), x.dtype)
                with allow_tf32(False):
                    return torch.cat([function(net, part.to(device)).cpu() for part in parts])
            except (RuntimeError, InputError):
                pass  # the device is full, or not on this machine: use the CPU
        net = self.net_ if x.dtype == torch.float32 else copy.deepcopy(self.net_).to(x.dtype)
        return torch.cat([function(net, part) for part in parts])

    @property
    def history(self) -> pd.DataFrame:
        """Table of all terms of the loss: one row per step, or per window of steps in long runs."""
        return pd.DataFrame(self.history_.numpy(), columns=["step", *self.terms_]).astype({"step": int})

    @final
    def recipe(self) -> dict[str, Any]:
        """Return name and settings as JSON values."""
        values = normalize_numbers(type(self), saved_settings(self))
        return json.loads(json.dumps({"name": self.name, **values}, default=to_jsonable))

    @final
    @classmethod
    @cache
    def lane_names(cls) -> tuple[str, ...]:
        """Return the fields that may differ in a pack, besides the seed."""
        hints = get_type_hints(cls, include_extras=True)
        return tuple(f.name for f in fields(cls) if "lane" in getattr(hints[f.name], "__metadata__", ()))

    @final
    def pack_signature(self) -> str:
        """Return a text that is equal for methods that may share a pack."""
        free = {*self.lane_names(), "seed"}
        cls = type(self)
        return json.dumps([cls.__module__, cls.__qualname__, {k: v for k, v in self.recipe().items() if k not in free}])

    @final
    def on_lane(self, values: dict[str, Tensor], names: Sequence[str]) -> Self:
        """Return a copy with the values of a lane; attribute by attribute, which the compiler can trace."""
        lane = object.__new__(type(self))
        for name in names:
            setattr(lane, name, values[name] if name in values else getattr(self, name))
        return lane

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def rebuild_network(self, weights: dict[str, Tensor]) -> nn.Module:
        """Build the network and load the weights."""
        net = self.build(self.shape_)
        try:
            net.load_state_dict(weights)
        except RuntimeError as error:
            text = " ".join(str(error).split()[-30:])
            raise InputError(f"the weights do not fit the settings of {self.name}: {text}") from error
        return net.eval()


def fit_pack(
    pack: Sequence[Neural],
    data: FactorData,
    *,
    checkpoint: Path | None = None,
    note: str = "",
    callback: Callback | None = None,
) -> list[Failure | None]:
    """Train methods of one signature together, each with all its restarts, in place.

    Args:
        pack: Methods that differ only in their seed and in fields annotated `Lane`.
        data: The data that all of them learn from.
        checkpoint: File from which a stopped run resumes, see `training.loop.train`.
        note: Text stored in the checkpoint.
        callback: Called with the `Progress` of all lanes: the models, or all restarts of the first, of the second, ...

    Returns:
        For each method None, or how it failed.

    Example:
        >>> import numpy as np
        >>> from unweave.data.conversion import as_data
        >>> from unweave.methods import BetaVAE
        >>> pack = [BetaVAE(beta=beta, steps=10, layers=(4,)) for beta in (1.0, 4.0)]
        >>> fit_pack(pack, as_data(np.eye(8)))
        [None, None]
    """
    for method in pack:
        method.validate_settings(data)
        data = learn_scaling(method, data)  # the first one scales them for all
    train_lanes = partial(train, data=data, checkpoint=checkpoint, note=note, callback=callback)
    with matmul_precision(pack[0]):
        failures = train_lanes(pack) if pack[0].restarts == 1 else train_restarts(pack, train_lanes)
    for method, failure in zip(pack, failures, strict=True):
        if failure is not None:
            method.reset()  # a diverged network is no model
    return failures
