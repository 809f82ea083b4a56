"""Classes and functions in users' own Python files, named `path/to/mine.py:Name`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from unweave.utils.errors import InputError, unknown


def load_from_file(noun: str, name: str, example: str) -> Any:
    """Execute a user's file and return what `name`, `path/to/mine.py:Name`, is there.

    Args:
        noun: What it is, for errors: "method", "network", ...
        name: Path of the file and the name in it.
        example: A correct name, for errors.
    """
    file, _, attribute = name.rpartition(":")
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{name!r}: no Python file {file!r}; expected path/to/{example}")
    module = execute_file(path.resolve(), path.stat().st_mtime_ns)
    if not hasattr(module, attribute):
        names = [k for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
        raise unknown(f"{noun} in {file}", attribute, names)
    return getattr(module, attribute)


@cache
def execute_file(path: Path, _modified: int) -> ModuleType:
    """Execute a user's file and return it as a module; it is executed again only if it was modified."""
    name = f"unweave_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    # Registered before it runs: dataclasses and worker processes look up the module by name.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import files beside it, as a script may
    cloudpickle.register_pickle_by_value(module)  # worker processes of n_jobs cannot import it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, SystemExit):
            text = f"{path} ends the program by sys.exit({error.code!r})"
            raise InputError(f"{text}: expected a file that defines something, as `import` does") from error
        place = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        raise InputError(f"{path} cannot be run: {place}{type(error).__name__}: {error}") from error
    return module
