"""Frozen features: the outputs of a trained model, computed once, as data for any method."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Generator, Tensor, nn

from unweave.data.containers import Table
from unweave.data.conversion import as_data
from unweave.data.core import Factor, split_rows
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError, first_line
from unweave.utils.tables import TABLE_WRITERS, write_table
from unweave.utils.validation import check_finite

OUTPUT_NAMES = ("image_embeds", "pooler_output", "last_hidden_state")  # of Hugging Face models, best first


def features(
    model: Callable[[Tensor], Any],
    data: Any,
    *,
    transform: Callable[[Tensor], Tensor] | None = None,
    batch_size: int = 64,
    samples: int = 10_000,
    out: str | Path | None = None,
) -> Table:
    """Apply a trained model once, without gradients, and return its outputs as a table for any method.

    Factors and names of rows are those of the data. A module is in evaluation mode meanwhile, and computes where its
    weights are.

    Args:
        model: A module (timm, torchvision, Hugging Face, your own), or any function (n, *shape) -> (n, m).
        data: An array (n, ...), a `FactorData`, or a `Dataset`; images are floats in [0, 1], channels first.
        transform: Changes a batch (n, *shape) before the model sees it: size, channels, scale.
        batch_size: Observations at a time.
        samples: Observations to draw where the data are a generator or a larger grid; of your own rows all are used.
        out: A .csv or .parquet file to write the features to, with the factors and the names of rows.

    Example:
        >>> trunk = nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.ReLU())
        >>> features(trunk, np.zeros((8, 1, 4, 4), dtype=np.uint8)).x.shape
        torch.Size([8, 5])
    """
    if batch_size < 1 or samples < 1:
        raise InputError(f"batch_size={batch_size}, samples={samples}: expected at least 1")
    if out is not None and Path(out).suffix.lower() not in TABLE_WRITERS:
        raise InputError(f"{out}: features are written as {' or '.join(TABLE_WRITERS)}")
    data = as_data(data.load() if isinstance(data, Dataset) else data)
    points = data.points_or_sample(samples, Generator().manual_seed(0))
    with _evaluating(model) as like, torch.no_grad():
        parts = [_apply(model, data.render(rows).float(), transform, like) for rows in split_rows(points, batch_size)]
    x = torch.cat(parts)
    check_finite(x.numpy(), what="the output of the model")
    table = Table(x, data.labels(points), data.factors)
    table.feature_names = tuple(f"feature{i + 1}" for i in range(x.shape[1]))
    table.row_names = data.row_names if data.all_points(samples) is not None else None
    table.row_key = data.row_key
    if out is not None:
        _write(table, Path(out))
    return table


def as_features(output: Any) -> Tensor:
    """Return the output of a model as one row of features per observation, (n, m).

    A tensor is flattened. Of an object or dict as Hugging Face models return it, the projected or pooled embedding is
    taken, or else the mean of the last hidden state over its positions; of a tuple, the first entry.
    """
    if isinstance(output, Tensor):
        return output.flatten(1) if output.ndim > 1 else output
    if isinstance(output, tuple | list) and output:
        return as_features(output[0])
    for name in OUTPUT_NAMES:
        value = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
        if isinstance(value, Tensor):
            return as_features(_pool(value) if name == "last_hidden_state" else value)
    names = ", ".join(OUTPUT_NAMES)
    raise InputError(f"the model returned {type(output).__name__}: expected a tensor (n, m), or an output with {names}")


def _pool(state: Tensor) -> Tensor:
    """Return the mean over positions: of tokens (n, positions, m), or of pixels (n, m, h, w)."""
    return state.mean(1) if state.ndim == 3 else state.flatten(2).mean(2) if state.ndim > 3 else state


@contextlib.contextmanager
def _evaluating(model: Callable[[Tensor], Any]) -> Iterator[Tensor]:
    """Put a module, or the module that a method belongs to, into evaluation mode; yield one of its weights."""
    module = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    modes = {part: part.training for part in module.modules()} if isinstance(module, nn.Module) else {}
    weights = module.parameters() if isinstance(module, nn.Module) else iter(())
    for part in modes:
        part.training = False
    try:
        yield next((w for w in weights if w.is_floating_point()), torch.zeros(()))
    finally:
        for part, mode in modes.items():
            part.training = mode


def _apply(
    model: Callable[[Tensor], Any], x: Tensor, transform: Callable[[Tensor], Tensor] | None, like: Tensor
) -> Tensor:
    """Return the features of a batch on the CPU, (n, m)."""
    try:
        x = transform(x) if transform is not None else x
        values = as_features(model(x.to(like.device, like.dtype)))
    except InputError:
        raise
    except Exception as error:  # whatever a user's model raises
        text = f"the model cannot take observations of shape {tuple(x.shape)}: {first_line(error)}"
        raise InputError(f"{text}. Change size, channels or scale by transform=...") from error
    if values.ndim != 2 or len(values) != len(x):
        raise InputError(f"the model maps {tuple(x.shape)} to {tuple(values.shape)}: expected ({len(x)}, m)")
    return values.float().cpu()


def _write(table: Table, path: Path) -> None:
    columns: dict[str, Any] = {table.row_key: list(table.row_names)} if table.row_names is not None else {}
    columns |= dict(zip(table.feature_names, table.x.numpy().T, strict=True))
    columns |= {factor.name: _values(factor, table.c[:, j].numpy()) for j, factor in enumerate(table.factors)}
    write_table(pd.DataFrame(columns), path)


def _values(factor: Factor, c: np.ndarray) -> list[Any]:
    """Return the values of a factor: names or numbers of a discrete one, real numbers otherwise."""
    if factor.size is None:
        return c.tolist()
    levels = c.astype(int).tolist()
    return [factor.values[k] for k in levels] if factor.values else levels
