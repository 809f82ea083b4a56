"""The folder is the registry: what a package's files define is what there is."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any


def contents(package: str, keep: Callable[[Any], bool]) -> dict[str, Any]:
    """Public, finished things defined in the files of a package, by their Python names."""
    found = {}
    for info in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        module = import_module(info.name)
        for name, thing in vars(module).items():
            here = getattr(thing, "__module__", None) == module.__name__
            if here and not name.startswith("_") and keep(thing) and not inspect.isabstract(thing):
                found[name] = thing
    return found
