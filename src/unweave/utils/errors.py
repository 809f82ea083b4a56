"""The exception for wrong input, and helpers for its messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_LISTED = 8  # names in a text


class InputError(ValueError):
    """Wrong input. The message states what was wrong, what was expected and what to do.

    The command line prints the text as one line and exits with code 2.
    """


def unknown(kind: str, name: str, names: Iterable[str], hint: str = "") -> InputError:
    """Return the error for a name that does not exist; it suggests the most similar of `names`.

    >>> print(unknown("method", "hesian-ica", ["hessian-ica", "pca"]))
    no method named 'hesian-ica'; did you mean 'hessian-ica'? (there are: hessian-ica, pca)
    """
    choices = sorted(names)
    similar = difflib.get_close_matches(name.lower().replace("_", "-"), choices, 1, cutoff=0.5)
    suggestion = f"; did you mean {similar[0]!r}?" if similar else ""
    return InputError(f"no {kind} named {name!r}{suggestion} (there are: {', '.join(choices) or 'none'}{hint})")


def describe_renaming(former: str, current: str) -> str:
    """Return a sentence on a setting or flag that was renamed, or removed if `current` is empty.

    >>> describe_renaming("--through", "--diff-mode")
    '--through is now called --diff-mode'
    """
    return f"{former} is now called {current}" if current else f"{former} was removed"


def refuse_former_names(cls: type, current_names: Mapping[str, str]) -> None:
    """Raise an error if a class defines a method under its former name, which would silently never be called."""
    for former, current in current_names.items():
        if former in vars(cls):
            raise InputError(f"{cls.__name__}.{former} is no longer called: rename it to `{current}`")


def kebab(name: str) -> str:
    """Return the catalog name of a class or function that sets none.

    >>> kebab("HessianICA"), kebab("MPI3DLike"), kebab("a_score")
    ('hessian-ica', 'mpi3d-like', 'a-score')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9][A-Z])(?=[A-Z][a-z])|_", "-", name).lower()


def constant_data_error(source: str = "the data", columns: str = "") -> InputError:
    """Return the error for data in which nothing varies."""
    return InputError(f"every column of {source} is constant{columns}: there are no factors to recover")


def list_names(names: Sequence[object]) -> str:
    """Return the first names, separated by commas, and the number of the others.

    >>> list_names([f"x{i}" for i in range(10)])
    'x0, x1, x2, x3, x4, x5, x6, x7 and 2 more'
    """
    text = ", ".join(map(str, names[:MAX_LISTED]))
    return text if len(names) <= MAX_LISTED else f"{text} and {len(names) - MAX_LISTED} more"


def join_settings(values: Mapping[str, Any]) -> str:
    """Return settings as text.

    >>> join_settings({"beta": 4.0, "seed": 1})
    'beta=4, seed=1'
    """
    return ", ".join(f"{k}={shorten_number(v)}" for k, v in values.items())


def shorten_number(value: Any) -> Any:
    """Return 4 for 4.0; other values are returned unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else value


def plural(n: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text without Python's number of it, or its type where the text is empty.

    >>> first_line(OSError(22, "Invalid argument")), first_line(KeyError())
    ('Invalid argument', 'KeyError')
    """
    return re.sub(r"^\[Errno \d+\] ", "", next(iter(str(error).strip().splitlines()), type(error).__name__))
