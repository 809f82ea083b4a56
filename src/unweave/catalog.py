"""What there is, by name: the folders `methods`, `datasets` and `metrics`, and your own `mine.py:MyMethod`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from unweave import datasets as _datasets
from unweave import methods as _methods
from unweave import metrics as _metrics
from unweave.data.dataset import Dataset
from unweave.data.own_data import OwnData
from unweave.methods.base import Method
from unweave.methods.persistence import read_config
from unweave.metrics.contract import Metric, Scorer, variants
from unweave.utils.errors import InputError, kebab, unknown


@cache
def methods() -> dict[str, type[Method]]:
    """Every method by its catalog name."""
    return dict(sorted((cls.name, cls) for cls in _public(_methods, lambda thing: isinstance(thing, type))))


@cache
def datasets() -> dict[str, type[Dataset]]:
    """Every dataset by its catalog name."""
    return dict(sorted((cls.name, cls) for cls in _public(_datasets, lambda thing: isinstance(thing, type))))


@cache
def metrics() -> dict[str, Metric]:
    """Every metric by its catalog name."""
    return dict(sorted((kebab(f.__name__), f) for f in _public(_metrics, lambda thing: hasattr(thing, "facts"))))


def _public(package: ModuleType, keep: Callable[[Any], bool]) -> list[Any]:
    """The exports of a package that are kept."""
    return [thing for name in package.__all__ if keep(thing := getattr(package, name))]


def find(kind: Callable[[], dict[str, Any]], name: str) -> Any:
    """A name from the catalog, or `path/to/mine.py:Name` for your own.

    >>> find(methods, "hessian_ica").__name__
    'HessianICA'
    """
    noun = kind.__name__.removesuffix("s")
    if ":" in name:
        return _own(noun, name)
    known = kind()
    if kebab(name) in known:
        return known[kebab(name)]
    renamed = next((cls for cls in known.values() if kebab(name) in getattr(cls, "aliases", ())), None)
    if renamed is None:
        raise unknown(noun, name, known, hint=f"; your own: mine.py:My{noun.capitalize()}")
    warnings.warn(f"{noun} {name!r} is now called {renamed.name!r}", FutureWarning, stacklevel=2)
    return renamed


def find_metrics(names: Iterable[str], *, every: bool = False) -> dict[str, Metric]:
    """Metrics by the names that tables give them: `dci[gbt]` is one variant, `dci` the default ones, or every one.

    Your own `mine.py:my_score` is called my-score there.
    """
    found: dict[str, Metric] = {}
    for name in names:
        plain, bracket, variant = name.removesuffix("]").partition("[")
        found |= variants(find(metrics, plain), variant if bracket else None, every=every)
    return found


def run_metrics(names: Iterable[str]) -> dict[str, Metric]:
    """Metrics that score one run; others are refused, with the place where they can be had."""
    found = find_metrics(names)
    for name, each in found.items():
        if each.facts.truth == "labels":
            text = f"{name} compares a classifier's predictions with labels, which a run does not keep"
            raise InputError(f"{text}: call unweave.metrics.{name.replace('-', '_')} on method.predict(X), X held out")
        if each.facts.truth == "runs":
            raise InputError(f"{name} compares runs with each other: unweave select RUNS")
    return found


def scorer(name: str) -> Scorer:
    """A metric as a scikit-learn scorer, e.g. GridSearchCV(..., scoring=scorer("dci[trees].disentanglement")).

    Its y are the true factors; `local-isometry` and `unsupervised` need none. Larger is better, as scikit-learn wants
    it.
    """
    plain, _, part = name.partition(".") if ".py:" not in name else (name, "", "")
    found = find_metrics([plain])
    if len(found) > 1:
        raise InputError(f"{plain} stands for {', '.join(found)}: name one of them")
    return Scorer(next(iter(found.values())), part)


def dataset(data: Dataset | str | Path) -> Dataset:
    """A dataset as it is, or with default settings by name or path."""
    if isinstance(data, Dataset):
        return data
    cls = find_dataset(str(data))
    return cls(path=Path(data)) if cls is OwnData else cls()


def find_dataset(name: str) -> type[Dataset]:
    """A dataset's class by catalog name, by `mine.py:MyData`, or by the path of a user's own file or folder."""
    path = Path(name)
    if ".py:" in name:
        return find(datasets, name)
    if kebab(name) not in datasets() and (path.exists() or path.suffix or "/" in name):
        return OwnData
    try:
        return find(datasets, name)
    except InputError as error:
        raise InputError(f"there is no file or folder {name!r} here, and {error}") from None


def load(folder: str | Path) -> Method:
    """A saved method or the method of a run. Only classes of the catalog are looked for, and no code is executed."""
    config = read_config(Path(folder))
    name = str(config["method"])
    cls = next((cls for cls in methods().values() if name in (cls.name, *cls.aliases)), None)
    if config["source"] is not None or cls is None:
        own = f"{folder} holds a {name!r} that is not of the catalog. If the class is yours, import it and call its"
        raise InputError(f"{own} .load({str(folder)!r}), or `unweave draw` with --method mine.py:MyMethod")
    return cls.load(folder)


def _own(noun: str, name: str) -> Any:
    """A class or function out of a user's file."""
    file, attribute = name.rsplit(":", 1)
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{name!r}: no Python file {file!r}; expected path/to/mine.py:My{noun.capitalize()}")
    module = execute_file(path.resolve(), path.stat().st_mtime_ns)
    if not hasattr(module, attribute):
        have = [k for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
        raise unknown(f"{noun} in {file}", attribute, have)
    thing = getattr(module, attribute)
    expected = {"method": Method, "dataset": Dataset}.get(noun)
    if expected is None and not hasattr(thing, "facts"):
        raise InputError(f"{name} is not a metric: mark it with @unweave.metric(paper=...)")
    if expected is not None and not (isinstance(thing, type) and issubclass(thing, expected)):
        raise InputError(f"{name} is not a {noun}: it must be a subclass of unweave.{expected.__name__}")
    missing = sorted(getattr(thing, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"{name} is not finished: write {', '.join(missing)}")
    return thing


@cache
def execute_file(path: Path, _changed: int) -> Any:
    """A user's file as a module; executed once, and again when it has changed."""
    name = f"unweave_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    # Registered before it runs: dataclasses, and later worker processes, look the module up by name.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import files beside it, as a script may
    cloudpickle.register_pickle_by_value(module)  # worker processes of n_jobs cannot import it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        place = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        raise InputError(f"{path} cannot be run: {place}{type(error).__name__}: {error}") from error
    return module
