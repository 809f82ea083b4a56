"""Methods trained by gradient descent: say what to build and what to minimize."""

from __future__ import annotations

import copy
import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, final, get_type_hints

import numpy as np
import pandas as pd
import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData, split_rows
from unweave.data.supervision import Plan, single
from unweave.methods.base import FigureName, Method
from unweave.training.adam import Adam
from unweave.training.callbacks import Callback
from unweave.training.loop import Failure, train
from unweave.training.strategies import allow_tf32, matmul_precision
from unweave.utils.errors import InputError, constant_data_error
from unweave.utils.storage import to_jsonable
from unweave.utils.validation import normalize_numbers, resolve_device

Lane = Annotated[float, "lane"]
"""A number that may differ between models of one pack."""

READY = ("n_features_in_", "feature_names_in_", "shape_", "latent_dim_")  # known before training
RENAMED_HOOKS = {
    "stays": "is_cacheable",
    "draws": "sample_noise",
    "rates": "optimizers",
    "conclude": "after_training",
    "merit": "restart_score",
    "applied": "apply_network",
}  # former names, which a subclass must not define any more
AT_ONCE = 2**21  # numbers that go through a network together after training


class Neural(Method):
    """A method that says what to build and what to minimize; the trainer does the rest.

    Write `build` and `loss`, and `encode`. The loss must be a pure function of weights and batch: its randomness comes
    from `sample_noise`, its observations from `plan`; fields annotated `Lane` are tensors there. It is traced once,
    compiled, and run for many models at once, so it must not branch on the values of tensors.
    """

    latent_dim: int = 10
    """how many codes to learn"""
    steps: int = 5_000
    """gradient steps; the large studies of the field take 300,000"""
    batch_size: int = 64
    """observations in a step"""
    lr: Lane = 5e-4
    """Adam's learning rate"""
    clip: float = 0.0
    """largest norm of the gradient of all weights together; 0: as it comes"""
    precision: Literal["single", "tf32", "bf16"] = "tf32"
    """of products on a GPU: 23, 10 or 7 bits of fraction; on a CPU bf16 alone makes a difference"""
    device: str = "auto"
    """'cpu', 'cuda', or 'auto': a GPU where there is one"""

    observations: ClassVar[int] = 1_000  # drawn to see whether there is anything to learn
    restarts: ClassVar[int] = 1  # a method that needs several makes it a field

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for former, current in RENAMED_HOOKS.items():
            if former in vars(cls):
                raise InputError(f"{cls.__name__}.{former} is no longer called: rename it to `{current}`")

    # Yours ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def build(self, shape: tuple[int, ...]) -> nn.Module:
        """The network, for observations of this shape; its parameters' names are what `optimizers` speaks of."""

    @abstractmethod
    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Scalars by name for one batch; the one called 'loss' is minimized.

        The batch holds what `plan` and `sample_noise` name, and 'progress', which runs from 0 to 1.
        """

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        """What n observations' worth of steps will look at; observations alone unless you say otherwise."""
        return single(data, n, rng)

    def is_cacheable(self) -> bool:
        """Whether `plan` names observed points alone, so that these can be rendered once and kept."""
        return type(self).plan is Neural.plan

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        """The randomness that the loss consumes, (n, ...) each, drawn outside of it."""
        return {}

    def prepare(self, data: FactorData) -> None:
        """Learn from the data what building and the loss need: set attributes that end in an underscore.

        Models of one pack share them.
        """

    def check_observations(self, x: Tensor) -> None:
        """Refuse some observations, (n, *shape), that the loss is not made for."""

    def after_training(self, data: FactorData) -> None:
        """Learn from the data what the trained network can tell: set attributes that end in an underscore.

        Both are on the CPU then.
        """

    def restart_score(self) -> float:
        """How good the trained model is, of which the best of several starts is kept."""
        last = self.history_[-max(1, len(self.history_) // 20) :, 1 + self.terms_.index("loss")]
        return -float(last.mean())

    def optimizers(self) -> dict[str, Adam]:
        """How parameters learn, by the prefix of their names; the longest prefix counts."""
        return {"": Adam(self.lr)}

    def figures(self) -> tuple[FigureName, ...]:
        return ("curves", *super().figures())

    # Final ------------------------------------------------------------------------------------------------------

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
        """What earlier training gave."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in READY]:
            delattr(self, name)

    @final
    def make_restarts(self) -> list[Self]:
        """The method itself, or several of it that differ in their seeds, the first with its own."""
        if self.restarts < 1:
            raise InputError(f"restarts={self.restarts}: expected at least 1")
        if self.restarts == 1:
            return [self]
        more = np.random.SeedSequence(self.seed).generate_state(self.restarts - 1).tolist()
        found = [copy.copy(self) for _ in range(self.restarts)]
        for start, seed in zip(found, [self.seed, *more], strict=True):
            start.seed = seed
        return found

    @final
    def keep_best_restart(self, starts: Sequence[Self], failures: Sequence[Failure | None]) -> Failure | None:
        """Become the best of several starts, and remember how good all were; a failure only if all failed."""
        fine = [start for start, failure in zip(starts, failures, strict=True) if failure is None]
        best = max(fine, key=lambda start: start.restart_score(), default=starts[0])
        if best is not self:
            merits = [start.restart_score() if start in fine else None for start in starts]
            self.reset()
            self.__dict__.update({k: v for k, v in vars(best).items() if k.endswith("_")})
            self.restarts_ = [{"seed": start.seed, "merit": m} for start, m in zip(starts, merits, strict=True)]
            known = sorted((m for m in merits if m is not None), reverse=True)
            told = f"The best of {len(starts)} starts was kept: {known[0]:.4g}" if known else "No start was any good"
            others = f", the others from {known[1]:.4g} down to {known[-1]:.4g}" if len(known) > 1 else ""
            self.diagnosis_ = [*getattr(best, "diagnosis_", []), f"{told}{others}."]
        if not fine:
            self.reset()  # what is left of a failed training is not a model
        return None if fine else failures[0]

    @final
    def store_training(self, net: nn.Module, terms: Sequence[str], history: Tensor, how: str) -> None:
        """What training gave."""
        self.net_ = net
        self.terms_ = list(terms)  # names of the loss's terms
        self.history_ = history  # (rows, 1 + terms): step, and the means of all terms since the row before
        self.trained_ = how

    @final
    def check_data(self, data: FactorData) -> None:
        """Refuse settings that cannot work, and data in which nothing varies."""
        for name in ("steps", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: expected at least 1")
        if self.clip < 0:
            raise InputError(f"clip={self.clip}: expected a positive norm, or 0 for none")
        rng = Generator(self.resolve_device()).manual_seed(0)
        points = data.points_or_sample(self.observations, rng, limit=sys.maxsize)
        x = data.render(points[: self.observations])
        self.check_observations(x)
        rest = split_rows(points, self.observations)[1:]
        if bool((x == x[:1]).all()) and all(bool((data.render(part) == x[:1]).all()) for part in rest):
            raise constant_data_error()

    @final
    def resolve_device(self) -> str:
        """'auto' as what it stands for here."""
        return resolve_device(self.device)

    @final
    def apply_network(self, function: Callable[[Any, Tensor], Tensor], x: Tensor) -> Tensor:
        """What a function of the network and some rows gives, in parts; doubles are computed in double precision.

        Many rows go through it on the method's device, and come back.
        """
        parts = split_rows(x, AT_ONCE // max(1, prod(self.shape_)))
        if len(parts) > 1 and torch.cuda.is_available():
            try:
                net = copy.deepcopy(self.net_).to(device := self.resolve_device(), x.dtype)
                with allow_tf32(False):
                    return torch.cat([function(net, part.to(device)).cpu() for part in parts])
            except (RuntimeError, InputError):
                pass  # a device that is full, or not here, or another process's: a CPU can do it too
        net = self.net_ if x.dtype == torch.float32 else copy.deepcopy(self.net_).to(x.dtype)
        return torch.cat([function(net, part) for part in parts])

    @property
    def history(self) -> pd.DataFrame:
        """Every term of the loss over the steps, as a table."""
        return pd.DataFrame(self.history_.numpy(), columns=["step", *self.terms_]).astype({"step": int})

    @final
    def recipe(self) -> dict[str, Any]:
        """Name and settings, as JSON has them."""
        values = normalize_numbers(type(self), self.get_params(deep=False))
        return json.loads(json.dumps({"name": self.name, **values}, default=to_jsonable))

    @final
    @classmethod
    def lane_names(cls) -> tuple[str, ...]:
        """The fields that may differ inside a pack, besides the seed."""
        hints = get_type_hints(cls, include_extras=True)
        return tuple(f.name for f in fields(cls) if "lane" in getattr(hints[f.name], "__metadata__", ()))

    @final
    def signature(self) -> str:
        """Two methods may share a pack exactly when their signatures are equal."""
        free = {*self.lane_names(), "seed"}
        cls = type(self)
        return json.dumps([cls.__module__, cls.__qualname__, {k: v for k, v in self.recipe().items() if k not in free}])

    @final
    def on_lane(self, values: dict[str, Tensor], names: Sequence[str]) -> Self:
        """The same method with a lane's own numbers: attribute by attribute, which the compiler can follow."""
        lane = object.__new__(type(self))
        for name in names:
            setattr(lane, name, values[name] if name in values else getattr(self, name))
        return lane

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def rebuild_network(self, weights: dict[str, Tensor]) -> nn.Module:
        """The network as it was saved."""
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
    """Train methods together, each from all its starts; for each None or how it failed. See `train`."""
    for method in pack:
        method.validate_settings(data)
    starts = [method.make_restarts() for method in pack]
    lanes = [start for group in starts for start in group]
    with matmul_precision(pack[0]):
        found = train(lanes, data, checkpoint=checkpoint, note=note, callback=callback)
    each = iter(found)
    return [
        method.keep_best_restart(group, [next(each) for _ in group]) for method, group in zip(pack, starts, strict=True)
    ]
