"""The folder is the registry: what a package's files define is what there is."""

from __future__ import annotations

import hashlib
import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import InputError


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


def own_source(cls: type) -> str | None:
    """The hash of the code of a user's own class, so that an edited method is another one; None for our own."""
    if cls.__module__.split(".")[0] == __package__:
        return None
    if "own_source_" in vars(cls):  # on another machine, where its file is not
        return str(vars(cls)["own_source_"])
    module = inspect.getmodule(cls)
    file = Path(getattr(module, "__file__", None) or "")
    try:
        code = file.read_bytes() if file.is_file() else inspect.getsource(cls).encode()
    except (OSError, TypeError):
        raise InputError(
            f"the code of {cls.__name__} cannot be read, so its versions could not be told apart: put it in a file"
        ) from None
    return hashlib.sha256(code).hexdigest()
