"""What a user can cause and mend: one exception, whose text says what was wrong, what was expected and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class InputError(ValueError):
    """Wrong input. The command line prints its text as one line and exits with code 2."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> InputError:
    """An error that names the nearest known name, e.g. "no method named 'hesian-ica'; did you mean 'hessian-ica'?"."""
    choices = sorted(known)
    near = difflib.get_close_matches(name.lower().replace("_", "-"), choices, 1, cutoff=0.5)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return InputError(f"no {kind} named {name!r}{guess} (there are: {', '.join(choices) or 'none'}{hint})")


def kebab(name: str) -> str:
    """A catalog name: HessianICA -> hessian-ica, DSprites -> dsprites, MPI3DLike -> mpi3d-like, a_score -> a-score."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9][A-Z])(?=[A-Z][a-z])|_", "-", name).lower()


def constant_data_error(source: str = "the data", columns: str = "") -> InputError:
    """Return the error for data in which nothing varies."""
    return InputError(f"every column of {source} is constant{columns}: there are no factors to recover")


def plural(n: int, noun: str) -> str:
    """'1 row', '2 rows'."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def first_line(error: BaseException) -> str:
    """Of what an error says; its name where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
