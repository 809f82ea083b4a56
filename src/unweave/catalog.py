"""Catalog of methods, datasets and metrics: find them by name, by alias, or in your own file (`mine.py:MyMethod`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from torch import nn

from unweave import datasets as _datasets
from unweave import methods as _methods
from unweave import metrics as _metrics
from unweave.data.dataset import Dataset
from unweave.data.own_data import OwnData
from unweave.methods.base import Method
from unweave.methods.persistence import read_config
from unweave.metrics.contract import Metric, Scorer, variants
from unweave.utils.errors import InputError, kebab, unknown
from unweave.utils.user_files import load_from_file

T = TypeVar("T")


@cache
def methods() -> dict[str, type[Method]]:
    """Return every method by its catalog name."""
    return _by_name(_methods, lambda cls: str(cls.name))


@cache
def datasets() -> dict[str, type[Dataset]]:
    """Return every dataset by its catalog name."""
    return _by_name(_datasets, lambda cls: str(cls.name))


@cache
def metrics() -> dict[str, Metric]:
    """Return every metric by its catalog name."""
    by_name: dict[str, Metric] = _by_name(_metrics, lambda function: kebab(function.__name__))
    return {name: function for name, function in by_name.items() if hasattr(function, "facts")}


def _by_name(package: ModuleType, name_of: Callable[[Any], str]) -> dict[str, Any]:
    """Return the exports of a package by their catalog names, in the order of the names."""
    exports = [getattr(package, export) for export in package.__all__]
    return dict(sorted((name_of(export), export) for export in exports))


def find(kind: Callable[[], Mapping[str, T]], name: str) -> T:
    """Return the entry of a catalog with this name or alias, or `path/to/mine.py:Name` from your own file.

    Args:
        kind: The catalog: `methods`, `datasets` or `metrics`.
        name: Catalog name; `_` and capitals are allowed.

    Example:
        >>> find(methods, "hessian_ica").__name__
        'HessianICA'
    """
    noun = kind.__name__.removesuffix("s")
    if ":" in name:
        return cast(T, _load_from_file(noun, name))
    entries, catalog_name = kind(), kebab(name)
    if catalog_name in entries:
        return entries[catalog_name]
    renamed = next((entry for entry in entries.values() if catalog_name in getattr(entry, "aliases", ())), None)
    if renamed is None:
        raise unknown(noun, name, entries, hint=f"; your own: mine.py:My{noun.capitalize()}")
    warnings.warn(f"{noun} {name!r} is now called {cast(Any, renamed).name!r}", FutureWarning, stacklevel=2)
    return renamed


def find_metrics(names: Iterable[str], *, every: bool = False) -> dict[str, Metric]:
    """Return metrics by their names in tables.

    `dci[gbt]` is one variant; `dci` its default variants, or with `every` all but the slow ones. Your own
    `mine.py:my_score` is called my-score.
    """
    variants_by_name: dict[str, Metric] = {}
    for name in names:
        plain, bracket, variant = name.removesuffix("]").partition("[")
        variants_by_name |= variants(find(metrics, plain), variant if bracket else None, every=every)
    return variants_by_name


def run_metrics(names: Iterable[str]) -> dict[str, Metric]:
    """Return metrics that score one run; an error about another metric names the command that computes it."""
    usable = find_metrics(names)
    for name, each in usable.items():
        if each.facts.truth == "labels":
            text = f"{name} compares a classifier's predictions with labels, which a run does not keep"
            raise InputError(f"{text}: call unweave.metrics.{name.replace('-', '_')} on method.predict(X), X held out")
        if each.facts.truth == "runs":
            raise InputError(f"{name} compares runs with each other: unweave select RUNS")
    return usable


def scorer(name: str) -> Scorer:
    """Return a metric as a scikit-learn scorer; larger is better.

    Its y are the true factors; `local-isometry` and `unsupervised` need none.

    Example:
        >>> import numpy as np, unweave
        >>> x = np.random.default_rng(0).uniform(size=(50, 2))
        >>> score = unweave.scorer("mcc")(unweave.methods.PCA(latent_dim=2).fit(x), x, x)
    """
    plain, _, part = name.partition(".") if ".py:" not in name else (name, "", "")
    chosen = find_metrics([plain])
    if len(chosen) > 1:
        raise InputError(f"{plain} includes the variants {', '.join(chosen)}: name one of them")
    return Scorer(next(iter(chosen.values())), part)


def dataset(data: Dataset | str | Path) -> Dataset:
    """Return a dataset unchanged, or one with default settings by name or path."""
    if isinstance(data, Dataset):
        return data
    cls = find_dataset(str(data))
    return cls(path=Path(data)) if cls is OwnData else cls()


def find_dataset(name: str) -> type[Dataset]:
    """Return the class of a dataset: by catalog name, by `mine.py:MyData`, or `OwnData` for a path of your data."""
    path = Path(name)
    if ".py:" in name:
        return find(datasets, name)
    if kebab(name) not in datasets() and (path.exists() or path.suffix or "/" in name):
        return OwnData
    try:
        return find(datasets, name)
    except InputError as error:
        raise InputError(f"there is no file or folder {name!r} here, and {error}") from None


def load(folder: str | Path, **networks: nn.Module | str) -> Method:
    """Return a saved method, or the method of a run. Only classes of the catalog are loaded; no code is executed.

    Args:
        folder: Folder of the method or the run.
        networks: The `encoder`, `decoder` or `network` of your own that the method was trained with. Their weights are
            loaded; a function `network="mine.py:build"` is executed only because you pass it.
    """
    config = read_config(Path(folder))
    name = str(config["method"])
    cls = next((cls for cls in methods().values() if name in (cls.name, *cls.aliases)), None)
    if config.get("source") is not None or cls is None:
        own = f"{folder} holds a {name!r} that is not of the catalog. If the class is yours, import it and call its"
        raise InputError(f"{own} .load({str(folder)!r}), or `unweave draw` with --method mine.py:MyMethod")
    return cls.load(folder, **networks)


def _load_from_file(noun: str, name: str) -> Any:
    """Return a class or function of a user's file, named `path/to/mine.py:Name`."""
    thing = load_from_file(noun, name, f"mine.py:My{noun.capitalize()}")
    base = {"method": Method, "dataset": Dataset}.get(noun)
    if base is None and not hasattr(thing, "facts"):
        raise InputError(f"{name} is not a metric: mark it with @unweave.metric(paper=...)")
    if base is not None and not (isinstance(thing, type) and issubclass(thing, base)):
        raise InputError(f"{name} is not a {noun}: it must be a subclass of unweave.{base.__name__}")
    missing = sorted(getattr(thing, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"{name} is not finished: write {', '.join(missing)}")
    return thing
