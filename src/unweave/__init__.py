"""Unweave takes data apart into its independent, interpretable factors, says how well it did, and shows them.

>>> import unweave
>>> codes = unweave.methods.HessianICA(latent_dim=2).fit_transform(images)      # doctest: +SKIP
>>> unweave.metrics.mcc(factors, codes)                                         # doctest: +SKIP

Names are looked up when they are first used, so that `import unweave` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import catalog, datasets, methods, metrics
    from .catalog import load
    from .data import Factor, FactorData, Grid, Mixing, Table, as_data
    from .dataset import Dataset
    from .errors import InputError
    from .method import Method
    from .report import write_report
    from .scoring import metric
    from .study import Run, execute, rows, sweep

__version__ = "0.1.0"

# name -> the module it lives in; "" means that the name is itself a module
_HOME = {
    **dict.fromkeys(("catalog", "datasets", "methods", "metrics"), ""),
    **dict.fromkeys(("Factor", "FactorData", "Grid", "Mixing", "Table", "as_data"), "data"),
    **dict.fromkeys(("Run", "execute", "rows", "sweep"), "study"),
    "Dataset": "dataset",
    "InputError": "errors",
    "Method": "method",
    "load": "catalog",
    "metric": "scoring",
    "write_report": "report",
}
__all__ = [  # noqa: PLE0604 (the table above is the list)
    "__version__",
    *_HOME,
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unweave' has no attribute {name!r}")
    home = _HOME[name]
    if not home:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
