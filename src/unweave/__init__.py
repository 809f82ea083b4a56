"""Unweave finds the independent factors behind data, measures how well they were recovered, and shows them.

Example:
    >>> import unweave
    >>> data = unweave.datasets.SquaresXY(points=500).load()
    >>> codes = unweave.methods.PCA(latent_dim=2).fit_transform(data)
    >>> codes.shape
    (500, 2)

Public names are imported on first use, so that `import unweave` does not import torch.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unweave import catalog, datasets, methods, metrics
    from unweave.catalog import load, scorer
    from unweave.cli.progress import progress_bar
    from unweave.data import attributes
    from unweave.data.containers import Grid, Mixing, Table
    from unweave.data.conversion import as_data, as_pairs
    from unweave.data.core import Factor, FactorData
    from unweave.data.dataset import Dataset
    from unweave.data.features import features
    from unweave.data.lazy import LazyTable
    from unweave.data.own_data import OwnData
    from unweave.datasets.faces import GeneratorManifold
    from unweave.experiments.advice import advise
    from unweave.experiments.run import Run, rows
    from unweave.experiments.study import execute, sweep
    from unweave.methods.base import Method
    from unweave.methods.neural import Lane, Neural
    from unweave.metrics.contract import metric
    from unweave.metrics.explain import explain
    from unweave.report.description import describe
    from unweave.report.explorer.page import explore
    from unweave.report.page import write_report
    from unweave.utils.errors import InputError

__version__ = "0.1.0"

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # how threads of OpenMP wait for each other
if "torch" not in sys.modules and not any(name in os.environ for name in _WAITING):
    # By default they spin for milliseconds, and on busy cores take the time of the thread that they wait for. Now they
    # spin for microseconds (libgomp; others not at all) and sleep. OpenMP reads these variables when torch loads it;
    # other libraries and child processes of this one see them, too.
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}

_MODULES = {  # public name -> the module
    "attributes": "data.attributes",
    "catalog": "catalog",
    "datasets": "datasets",
    "methods": "methods",
    "metrics": "metrics",
}
_HOME = {  # public name -> the module that defines it
    "Dataset": "data.dataset",
    "Factor": "data.core",
    "FactorData": "data.core",
    "GeneratorManifold": "datasets.faces",
    "Grid": "data.containers",
    "InputError": "utils.errors",
    "Lane": "methods.neural",
    "LazyTable": "data.lazy",
    "Method": "methods.base",
    "Mixing": "data.containers",
    "Neural": "methods.neural",
    "OwnData": "data.own_data",
    "Run": "experiments.run",
    "Table": "data.containers",
    "advise": "experiments.advice",
    "as_data": "data.conversion",
    "as_pairs": "data.conversion",
    "describe": "report.description",
    "execute": "experiments.study",
    "explain": "metrics.explain",
    "explore": "report.explorer.page",
    "features": "data.features",
    "load": "catalog",
    "metric": "metrics.contract",
    "progress_bar": "cli.progress",
    "rows": "experiments.run",
    "scorer": "catalog",
    "sweep": "experiments.study",
    "write_report": "report.page",
}
__all__ = [
    "Dataset",
    "Factor",
    "FactorData",
    "GeneratorManifold",
    "Grid",
    "InputError",
    "Lane",
    "LazyTable",
    "Method",
    "Mixing",
    "Neural",
    "OwnData",
    "Run",
    "Table",
    "__version__",
    "advise",
    "as_data",
    "as_pairs",
    "attributes",
    "catalog",
    "datasets",
    "describe",
    "execute",
    "explain",
    "explore",
    "features",
    "load",
    "methods",
    "metric",
    "metrics",
    "progress_bar",
    "rows",
    "scorer",
    "sweep",
    "write_report",
]

if not TYPE_CHECKING:  # type checkers see the imports above alone, and so report misspelled names

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"unweave.{_MODULES[name]}")
        if name not in _HOME:
            raise AttributeError(f"module 'unweave' has no attribute {name!r}")
        value = getattr(import_module(f"unweave.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
