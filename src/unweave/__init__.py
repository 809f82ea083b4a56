"""Unweave takes data apart into its independent, interpretable factors, says how well it did, and shows them.

>>> import unweave
>>> codes = unweave.methods.HessianICA(latent_dim=2).fit_transform(images)      # doctest: +SKIP
>>> unweave.metrics.mcc(factors, codes)                                         # doctest: +SKIP

Names are looked up when they are first used, so that `import unweave` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import catalog as catalog
    from . import datasets as datasets
    from . import methods as methods
    from . import metrics as metrics
    from .arrays import as_data as as_data
    from .arrays import as_pairs as as_pairs
    from .catalog import load as load
    from .catalog import scorer as scorer
    from .data import (
        Factor as Factor,
    )
    from .data import (
        FactorData as FactorData,
    )
    from .data import (
        Grid as Grid,
    )
    from .data import (
        Mixing as Mixing,
    )
    from .data import (
        Table as Table,
    )
    from .dataset import Dataset as Dataset
    from .datasets.faces import GeneratorManifold as GeneratorManifold
    from .errors import InputError as InputError
    from .explanation import explain as explain
    from .files import OwnData as OwnData
    from .method import Method as Method
    from .neural import Lane as Lane
    from .neural import Neural as Neural
    from .report import write_report as write_report
    from .run import Run as Run
    from .run import rows as rows
    from .scoring import metric as metric
    from .study import execute as execute
    from .study import sweep as sweep

__version__ = "0.1.0"

# name -> the module it lives in; "" means that the name is itself a module
_HOME = {
    **dict.fromkeys(("catalog", "datasets", "methods", "metrics"), ""),
    **dict.fromkeys(("Factor", "FactorData", "Grid", "Mixing", "Table"), "data"),
    "as_data": "arrays",
    "as_pairs": "arrays",
    **dict.fromkeys(("Run", "rows"), "run"),
    **dict.fromkeys(("execute", "sweep"), "study"),
    "Dataset": "dataset",
    "GeneratorManifold": "datasets.faces",
    "InputError": "errors",
    "Lane": "neural",
    "Method": "method",
    "Neural": "neural",
    "load": "catalog",
    "scorer": "catalog",
    "explain": "explanation",
    "OwnData": "files",
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
