"""Small methods, data and functions that several test modules use."""

import gzip
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from unweave import catalog
from unweave.data.conversion import as_data
from unweave.data.core import FactorData
from unweave.datasets import FlatSheet, SwissRoll
from unweave.methods.neural import Lane, Neural
from unweave.training.loop import Callback, Progress, train

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


def remove_manifest(folder: Path) -> None:
    """Turn a run folder into one of an earlier version, whose files can be altered without a complaint."""
    (folder / "manifest.json").unlink()
    env = json.loads((folder / "env.json").read_text())
    (folder / "env.json").write_text(json.dumps({k: v for k, v in env.items() if k != "manifest"}))


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


# Manifolds -----------------------------------------------------------------------------------------------------------


def swiss_roll(n: int, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return a roll in three dimensions, (n, 3), and its two uniform coordinates, length and height, (n, 2)."""
    data: Any = SwissRoll(points=n, seed=seed).load()
    x = data.render(data.sources).numpy()
    return x + noise * np.random.default_rng(7).normal(size=x.shape), data.sources.numpy().astype(float)


def flat_sheet(n: int, d: int, seed: int = 0, width: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return a manifold that is flat but no plane, each factor along a helix of its own, and its factors (n, d)."""
    data: Any = FlatSheet(dimensions=d, points=n, seed=seed, width=max(width, 3 * d)).load()
    return data.render(data.sources).numpy(), data.sources.numpy().astype(float)


# Flows ---------------------------------------------------------------------------------------------------------------

FLOW_SETTINGS: dict[str, Any] = {"blocks": 2, "width": 8, "steps": 20, "batch_size": 60, "device": "cpu"}


def blobs(n: int = 90, classes: int = 3, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return normal observations (n, d) whose means and deviations depend on their class (n,)."""
    rng = np.random.default_rng(seed)
    u = np.arange(n) % classes
    x = rng.standard_normal((n, d)) * (1 + u[:, None] * [1, 0.5, 0, 0][:d]) + u[:, None] * [1, -1, 0, 0][:d]
    return x.astype(np.float32), u


def flow_batch(method: Any, data: FactorData, n: int) -> tuple[Any, dict[str, Tensor]]:
    """Return a network of the method with random weights, and a batch of n observations as in training."""
    method.validate_settings(data)
    method.prepare(data)
    torch.manual_seed(0)
    net = method.build(data.shape)
    for p in net.parameters():
        nn.init.normal_(p, std=0.3)
    rng = torch.Generator().manual_seed(0)
    plan = method.plan(data, n, rng)
    batch = {k: data.render(v).float() for k, v in plan.views.items()} | plan.extras | method.sample_noise(n, rng)
    return net, batch


def idx_file(array: np.ndarray) -> bytes:
    """Return bytes in the IDX format of MNIST, gzipped."""
    return gzip.compress(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes())


def jpeg_file(color: str | tuple[int, int, int], size: tuple[int, int] = (64, 64)) -> bytes:
    """Return a JPEG image of one color."""
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def generator(seed: int = 0) -> torch.Generator:
    """Return a random generator on the CPU."""
    return torch.Generator().manual_seed(seed)
