"""Small methods, data and functions that several test modules use."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from unweave import catalog
from unweave.data.arrays import as_data
from unweave.data.core import FactorData
from unweave.methods.neural import Lane, Neural
from unweave.training.callbacks import Callback, Progress
from unweave.training.loop import train

METHODS = catalog.methods()
NETWORKS = [name for name, cls in METHODS.items() if issubclass(cls, Neural)]
SMALL = {
    "latent_dim": 2, "steps": 30, "batch_size": 16, "layers": (8,), "widths": (4, 4), "hidden": (8,), "critic": (8,),
}  # fmt: skip


def small_method(name: str, **settings: Any) -> Any:
    """Return the method of this name with two codes, few steps and a small network."""
    cls: Any = METHODS[name]
    fields = cls.__dataclass_fields__
    return cls(**{k: v for k, v in SMALL.items() if k in fields} | settings)


# Training ------------------------------------------------------------------------------------------------------------

_rng = np.random.default_rng(0)
_Z = _rng.uniform(-1, 1, (200, 2))
X = np.concatenate([_Z, np.sin(2 * _Z), _Z**2], 1).astype(np.float32)  # two factors in six dimensions
DATA = as_data(X, _rng.integers(0, 3, 200))


def validate(pack: list[Any], data: FactorData = DATA) -> list[Any]:
    """Let the methods see the data, as `fit` does before training."""
    for method in pack:
        method.validate_settings(data)
    return pack


def train_all(pack: list[Any], data: FactorData = DATA, **settings: Any) -> list[Any]:
    """Train a pack of which no method may fail."""
    assert train(validate(pack, data), data, **settings) == [None] * len(pack)
    return pack


def flat_weights(method: Any) -> Tensor:
    """Return all weights of a trained network in one vector."""
    return torch.cat([p.flatten() for p in method.net_.parameters()])


class StopTraining(BaseException):
    """Raised in place of a kill."""


def stop_at(step: int) -> Callback:
    """Return a callback that ends training at a step."""

    def callback(progress: Progress) -> None:
        if progress.step >= step:
            raise StopTraining

    return callback


class StepRecorder(Neural):
    """A linear network whose loss has the step and a lane's value as terms."""

    paper = "none"
    value: Lane = 2.0
    """A number that may differ between the lanes."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        return nn.Linear(shape[0], self.latent_dim)

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        t = (batch["progress"] * self.steps).round()
        return {"loss": net(batch["x"]).square().mean(), "t": t, "value": 0 * t + self.value}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net(part), x)


# Commands ------------------------------------------------------------------------------------------------------------

MY_METHOD = str(Path(__file__).parents[1] / "examples" / "my_method.py")
SMALL_SQUARES = ["--data.points", "60", "--data.size", "12", "--data.side", "4"]  # flags of squares-xy


def random_factors(n: int = 80) -> np.ndarray:
    """Return two uniform factors, (n, 2)."""
    return np.random.default_rng(0).uniform(-1, 1, (n, 2))


def write_table(path: str = "my.csv", n: int = 80) -> str:
    """Write a table of three linear mixtures of two factors, and the factors; return its path."""
    z = random_factors(n)
    x = z @ np.array([[1.0, 2, 0.5], [0.3, -1, 2]])
    table = pd.DataFrame(x, columns=["weight", "height", "age"]).assign(left=z[:, 0], right=z[:, 1])
    table.to_csv(path, index=False)
    return path
