"""Commands and Python calls that fit a method, as text to copy."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.data.own_data import OwnData
from unweave.utils.errors import kebab


def fit_command(method: str, settings: Mapping[str, Any], dataset: Dataset) -> str:
    """Return the command that fits a method to a dataset.

    Example:
        >>> from unweave.datasets import SquaresXY
        >>> fit_command("pca", {"latent_dim": 3}, SquaresXY(points=100))
        'unweave fit pca squares-xy --latent-dim 3 --data.points 100'
    """
    changed = {
        field.name: getattr(dataset, field.name)
        for field in fields(dataset)  # type: ignore[arg-type]
        if field.name != "path" and field.default is not MISSING and getattr(dataset, field.name) != field.default
    }
    flags = [*write_flags(settings), *write_flags(changed, "data.")]
    return " ".join(["unweave fit", method, shlex.quote(dataset_word(dataset)), *flags])


def dataset_word(dataset: Dataset) -> str:
    """Return what names a dataset on the command line: a path, a catalog name, or mine.py:MyData."""
    if isinstance(dataset, OwnData):
        return str(dataset.path)
    cls = type(dataset)
    if catalog.datasets().get(cls.name) is cls:
        return cls.name
    return f"{inspect.getsourcefile(cls)}:{cls.__name__}"


def write_flags(settings: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return settings as flags; those that are None are left out.

    >>> write_flags({"drop_constant": True, "factors": ("a", "b c"), "table": None}, "data.")
    ['--data.drop-constant', "--data.factors a 'b c'"]
    """
    flags = []
    for name, value in settings.items():
        flag = kebab(name)
        if isinstance(value, bool):
            flags.append(f"--{prefix}{'' if value else 'no-'}{flag}")
        elif isinstance(value, tuple | list):
            flags.append(" ".join([f"--{prefix}{flag}", *(shlex.quote(str(v)) for v in value)]))
        elif value is not None:
            flags.append(f"--{prefix}{flag} {shlex.quote(str(value))}")
    return flags


def fit_call(method: str, settings: Mapping[str, Any], arguments: str) -> str:
    """Return the Python call that fits a method.

    >>> fit_call("gin", {"standardize": True}, "X, y")
    'unweave.methods.GIN(standardize=True).fit(X, y)'
    """
    values = ", ".join(
        f"{name}={str(value) if isinstance(value, Path) else value!r}" for name, value in settings.items()
    )
    return f"unweave.methods.{catalog.methods()[method].__name__}({values}).fit({arguments})"
