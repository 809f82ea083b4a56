"""Validate what users pass: fields against their annotations, arrays, labels and devices."""

from __future__ import annotations

import ast
import re
import types
import warnings
from contextlib import nullcontext
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor

from unweave.utils.errors import InputError, first_line, plural

MAX_CHECKED_ELEMENTS = 2**24  # numbers that are checked at a time
MAX_MAGNITUDES = {4: 1e18, 8: 1e75}  # by the bytes of a number: larger ones have squares or fourth powers that overflow
MAX_INTEGER = 10**18  # beyond it, sums and products leave 64 bits


class TextPattern(NamedTuple):
    """What a text must look like, for annotations: `Annotated[str, TextPattern(...)]`."""

    pattern: str
    """Regular expression of the whole text."""
    example: str
    """A text that matches, for errors."""


def check_fields(thing: Any) -> None:
    """Raise an error for the first field of a dataclass whose value does not match its annotation."""
    hints = get_type_hints(type(thing), include_extras=True)
    for field in fields(thing):
        value = getattr(thing, field.name)
        if not matches_hint(value, hints[field.name]):
            text = f"{type(thing).__name__}: {field.name}={value!r}"
            if isinstance(value, int) and not -MAX_INTEGER < value < MAX_INTEGER:
                raise InputError(f"{text}, expected an integer of at most 18 digits")
            raise InputError(f"{text}, expected {describe_hint(hints[field.name])}")


def normalize_numbers(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Return settings with 4 as 4.0 in fields for real numbers, so that both give the same recipe."""
    whole = {k for k, v in values.items() if isinstance(v, int | np.integer) and not isinstance(v, bool)}
    return {k: float(v) if k in real_fields(cls) & whole else v for k, v in values.items()}


@cache
def real_fields(cls: type) -> frozenset[str]:
    """Return the fields of a dataclass whose annotation has float but not int."""
    try:
        hints = get_type_hints(cls)
        names = {field.name: _type_names(hints[field.name]) for field in fields(cls)}
    except (NameError, AttributeError):
        # The class was sent from another machine by cloudpickle. Its module does not exist here, so the names in its
        # annotations cannot be looked up. Their syntax still shows which types they name.
        names = {field.name: _names_in_text(str(field.type)) for field in fields(cls)}
    return frozenset(name for name, types_ in names.items() if types_ & {"float", "Lane"} and "int" not in types_)


def _type_names(hint: Any) -> set[str]:
    """Return the names of all types in an annotation: float | None -> {"float", "NoneType"}."""
    parts = [part for part in get_args(hint) if get_origin(hint) is not Literal]
    return set().union(*map(_type_names, parts)) if parts else {getattr(hint, "__name__", "")}


def _names_in_text(hint: str) -> set[str]:
    """Return the names in the text of an annotation: "float | None" -> {"float"}."""
    return {node.id for node in ast.walk(ast.parse(hint, mode="eval")) if isinstance(node, ast.Name)}


def matches_hint(value: Any, hint: Any) -> bool:
    """Return whether a value matches an annotation; kinds of annotation that we do not use match anything."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        patterns = [extra.pattern for extra in args[1:] if isinstance(extra, TextPattern)]
        return matches_hint(value, args[0]) and all(re.fullmatch(pattern, value) for pattern in patterns)
    if origin in (Union, types.UnionType):
        return any(matches_hint(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if origin is tuple:
        inner = args[:1] * len(value) if isinstance(value, tuple | list) and args[-1:] == (...,) else args
        return isinstance(value, tuple | list) and len(value) == len(inner) and all(map(matches_hint, value, inner))
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint in (int, float):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        whole = whole and -MAX_INTEGER < value < MAX_INTEGER
        return bool(whole) or (hint is float and isinstance(value, float | np.floating) and bool(np.isfinite(value)))
    if hint is Path:
        return isinstance(value, str | Path)
    return isinstance(value, hint) if isinstance(hint, type) else True


def describe_hint(hint: Any) -> str:
    """Return an annotation in words.

    >>> describe_hint(int | Literal["auto"])
    "an integer or 'auto'"
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        examples = [f"text such as {extra.example!r}" for extra in args[1:] if isinstance(extra, TextPattern)]
        return examples[0] if examples else describe_hint(args[0])
    if origin in (Union, types.UnionType):
        return " or ".join(describe_hint(arg) for arg in args)
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin is tuple:
        return f"a tuple, each {describe_hint(args[0])}"
    words = {int: "an integer", float: "a finite number", bool: "True or False", str: "a string", type(None): "None"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def as_array(x: Any, what: str = "data") -> np.ndarray:
    """Return anything array-like as a numpy array of real numbers, contiguous and writable; bytes stay bytes."""
    if isinstance(x, Tensor):
        x = (x.float() if x.dtype in (torch.bfloat16, torch.float16) else x).numpy(force=True)
    if hasattr(x, "toarray"):
        raise InputError(f"{what} is a sparse matrix: make it dense first, with .toarray()")
    check_no_text(x, what)
    try:
        array = np.asarray(x)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be converted to an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} holds {array.dtype}, not real numbers")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    array = array.astype(np.float32) if array.dtype == np.float16 else array
    array = array.astype(np.float64) if array.dtype.kind == "f" and array.itemsize > 8 else array  # long double
    return np.require(array, requirements=["C", "W"])


def check_no_text(x: Any, what: str) -> None:
    """Raise an error for columns of a DataFrame that hold text or dates; text that reads as a number is accepted."""
    if not isinstance(x, pd.DataFrame):
        return
    first_values = {x.columns[j]: _first_text(x.iloc[:, j]) for j in range(x.shape[1])}
    names = [name for name, value in first_values.items() if value is not None]
    if not names:
        return
    value = first_values[names[0]]
    kind = "text" if isinstance(value, str) else "dates"
    others = f" (other columns without numbers: {', '.join(map(repr, names[1:]))})" if names[1:] else ""
    raise InputError(
        f"{what} has {kind} in the column {names[0]!r}, first {str(value)!r}{others}: expected numbers. "
        f"Leave it out with X.drop(columns={names!r}), or pass a label as y"
    )


def _first_text(column: pd.Series) -> Any:
    """Return the first value that is a date, or text and no number; None if there is none."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.iloc[0] if len(column) else None
    if pd.api.types.is_numeric_dtype(column):
        return None
    return next((value for value in column if isinstance(value, str) and not _is_number(value)), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def validate_observations(estimator: BaseEstimator, X: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Convert to an array of finite floats, or of bytes for images.

    Without the `shape` of the observations that the estimator learned from, it is fitted: names of features are stored.
    """
    is_fitting = shape is None
    is_tensor = isinstance(X, Tensor)
    check_no_text(X, "Input X")
    if is_tensor:
        X = as_array(X, "Input X")
    with warnings.catch_warnings() if is_tensor else nullcontext():
        if is_tensor:  # it never has names
            warnings.filterwarnings("ignore", "X does not have valid feature names")
        x = validate_data(
            estimator, X, reset=is_fitting, dtype="numeric", allow_nd=True, ensure_all_finite=False,
            ensure_min_samples=2 if is_fitting else 1, accept_sparse=False,
        )  # fmt: skip
    if x.dtype == np.uint8 and x.ndim > 2:
        x = np.ascontiguousarray(x)  # a quarter of the memory of floats
    else:
        x = as_array(x, "Input X")
        x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
        check_finite(x, getattr(estimator, "feature_names_in_", None))
    if shape is not None and x.shape[1:] != shape:
        text = f"{type(estimator).__name__} learned from observations of shape {shape}"
        raise InputError(f"{text}: expected these, got {x.shape[1:]}")
    return x


def resolve_device(device: str) -> str:
    """Return the device for torch; 'auto' is the GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:  # torch has no query that covers every kind of device; an empty tensor costs nothing
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device={device!r} cannot be used here ({first_line(error)})") from error
    return device


def is_device_lost(error: BaseException) -> bool:
    """Return whether this process lost its GPU: after some errors it computes nothing until the process restarts."""
    possible = isinstance(error, RuntimeError) and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if not isinstance(error, torch.AcceleratorError) and not possible:
        return False
    try:
        torch.ones(1, device="cuda").sum().item()
    except (torch.OutOfMemoryError, AssertionError):  # it is only full, or there is no GPU
        return False
    except RuntimeError:
        return True
    return False


def check_finite(x: np.ndarray, names: Any = None, *, what: str = "Input X") -> None:
    """Raise an error for NaN, infinite and huge values that names the position of the first one; in parts, for a map.

    Huge values are those whose squares (in single precision) or fourth powers (in double precision) overflow.
    """
    if x.dtype.kind != "f":
        return
    x = np.atleast_1d(x)
    limit = MAX_MAGNITUDES.get(x.dtype.itemsize, np.inf)
    size = max(1, MAX_CHECKED_ELEMENTS // max(1, x[:1].size))
    first, count, invalid_rows = None, 0, 0
    for start in range(0, len(x), size):
        part = np.asarray(x[start : start + size])
        invalid = ~(np.abs(part) < limit)
        if invalid.any():
            count += int(invalid.sum())
            invalid_rows += int(invalid.reshape(len(part), -1).any(1).sum())
            if first is None:
                row, *rest = (int(i) for i in np.argwhere(invalid)[0])
                first = start + row, rest, float(part[(row, *rest)])
    if first is not None:
        raise _invalid_number_error(what, *first, (count, invalid_rows), limit, names)


def _invalid_number_error(
    what: str, row: int, rest: list[int], value: float, counts: tuple[int, int], limit: float, names: Any
) -> InputError:
    """Return the error for numbers that nothing can be computed with; `value` is the first of them."""
    place = f"column {rest[0]}" if len(rest) == 1 else f"position {tuple(rest)}"
    if names is not None and len(rest) == 1:
        place = f"column {names[rest[0]]!r}"
    values, rows = plural(counts[0], "value"), plural(counts[1], "row")
    verb = "is" if counts[0] == 1 else "are"
    kind, problem = "NaN" if np.isnan(value) else "infinity", "NaN or infinite"
    advice = "Drop those rows or fill the gaps"
    if np.isfinite(value):
        kind, problem = f"{value:.3g}", f"not below {limit:g}, whose powers can be computed with,"
        advice = "Divide the column by a constant, or drop those rows"
    return InputError(
        f"{what} contains {kind}: first in row {row}, {place}; {values} {verb} {problem} in {rows} "
        f"(rows count from 0). {advice}."
    )


def as_classes(y: Any, what: str = "y") -> Any:
    """Return class labels; integral floats become integers, other real values raise an error."""
    if hasattr(y, "columns"):
        y = y.set_axis(names := y.columns.map(str), axis=1)
        if not names.is_unique:
            raise InputError(f"{what} has two columns {names[names.duplicated()][0]!r}: rename one")
        return y.assign(**{name: as_classes(y[name].to_numpy(), f"y's column {name!r}") for name in names})
    array = np.asarray(y)
    if array.ndim == 0:
        raise InputError(f"y={y!r}: expected one label, or one row of labels, for each observation")
    if array.dtype.kind == "O":
        if pd.isna(array.ravel()).any():
            raise InputError(f"{what} has missing values: leave those rows out, or give them a class of their own")
        array = np.array(array.tolist())  # infers a type: numbers or text
    if array.dtype.kind == "O":
        raise InputError(f"Unknown label type: {what} holds objects, expected numbers or text")
    if array.dtype.kind != "f":
        return array
    check_finite(array.reshape(len(array), -1), what="Input y")
    if not np.array_equal(array, np.round(array)):
        raise InputError(f"Unknown label type: {what} is real-valued; expected classes, as integers or strings")
    return array.astype(np.int64)
