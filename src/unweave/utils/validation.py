"""What users pass: field values against their annotations, arrays against what can be learned from."""

from __future__ import annotations

import re
import types
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from unweave.utils.errors import InputError, first_line, plural


def check_fields(thing: Any) -> None:
    """Refuse a dataclass whose fields hold what their annotations do not allow."""
    hints = get_type_hints(type(thing), include_extras=True)
    for field in fields(thing):
        value = getattr(thing, field.name)
        if not matches_hint(value, hints[field.name]):
            expected = describe_hint(hints[field.name])
            raise InputError(f"{type(thing).__name__}: {field.name}={value!r}, expected {expected}")


def normalize_numbers(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Settings as a recipe has them: 4 where any number may stand is 4.0, so that both are the same run."""
    # By the words of annotations: of a class that came from another machine, their names cannot be looked up.
    hints = {f.name: f.type if isinstance(f.type, str) else repr(f.type) for f in fields(cls)}
    words = {name: set(re.findall(r"\w+", hint)) for name, hint in hints.items()}
    real = {name for name, found in words.items() if found & {"float", "Lane"} and "int" not in found}
    whole = {k for k, v in values.items() if isinstance(v, int | np.integer) and not isinstance(v, bool)}
    return {k: float(v) if k in real & whole else v for k, v in values.items()}


def matches_hint(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation; kinds of annotation that we do not use fit anything."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return matches_hint(value, args[0])
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
        return whole or (hint is float and isinstance(value, float | np.floating) and bool(np.isfinite(value)))
    if hint is Path:
        return isinstance(value, str | Path)
    return isinstance(value, hint) if isinstance(hint, type) else True


def describe_hint(hint: Any) -> str:
    """An annotation in words: "a whole number or 'auto'"."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return describe_hint(args[0])
    if origin in (Union, types.UnionType):
        return " or ".join(describe_hint(arg) for arg in args)
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin is tuple:
        return f"a tuple, each {describe_hint(args[0])}"
    words = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a text", type(None): "None"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def as_array(x: Any, what: str = "data") -> np.ndarray:
    """Anything array-like as a plain array of real numbers, contiguous and writable; bytes stay bytes."""
    if isinstance(x, Tensor):
        x = (x.float() if x.dtype in (torch.bfloat16, torch.float16) else x).numpy(force=True)
    if hasattr(x, "toarray"):
        raise InputError(f"{what} is a sparse matrix: make it dense first, with .toarray()")
    try:
        array = np.asarray(x)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be made an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} holds {array.dtype}, not real numbers")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    array = array.astype(np.float32) if array.dtype == np.float16 else array
    return np.require(array, requirements=["C", "W"])


def resolve_device(device: str) -> str:
    """A device as torch knows it: 'auto' is a GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device={device!r} cannot be used here ({first_line(error)})") from error
    return device


def out_of_memory(error: BaseException | None) -> bool:
    """Whether it is a device that has no memory left; not everything says so in the same way."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error) or "ALLOC_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def device_lost(error: BaseException) -> bool:
    """Whether it left this process without its GPU: after some errors nothing can be computed until it is restarted."""
    ours = isinstance(error, RuntimeError) and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if not isinstance(error, torch.AcceleratorError) and not ours:
        return False
    try:
        torch.ones(1, device="cuda").sum().item()
    except (torch.OutOfMemoryError, AssertionError):  # it is only full, or there is none
        return False
    except RuntimeError:
        return True
    return False


def check_finite(x: np.ndarray, names: Any = None, *, what: str = "Input X") -> None:
    """Refuse NaN and infinite values, and say where the first one is."""
    if x.dtype.kind != "f":
        return
    bad = ~np.isfinite(x)
    if not bad.any():
        return
    row, *rest = (int(i) for i in np.argwhere(bad)[0])
    kind = "NaN" if np.isnan(x[(row, *rest)]) else "infinity"
    place = f"column {rest[0]}" if len(rest) == 1 else f"position {tuple(rest)}"
    if names is not None and len(rest) == 1:
        place = f"column {names[rest[0]]!r}"
    count = int(bad.sum())
    rows = plural(int(bad.reshape(len(x), -1).any(1).sum()), "row")
    where = f"{'is' if count == 1 else 'are'} NaN or infinite in {rows}"
    raise InputError(
        f"{what} contains {kind}: first in row {row}, {place}; {plural(count, 'value')} {where} "
        "(rows count from 0). Drop those rows or fill the gaps."
    )


def as_classes(y: Any, what: str = "y") -> Any:
    """Labels as they are, whole numbers among floats as whole numbers; real values are refused."""
    if hasattr(y, "columns"):
        y = y.set_axis(names := y.columns.map(str), axis=1)
        if not names.is_unique:
            raise InputError(f"{what} has two columns {names[names.duplicated()][0]!r}: name them apart")
        return y.assign(**{name: as_classes(y[name].to_numpy(), f"y's column {name!r}") for name in names})
    array = np.asarray(y)
    if array.ndim == 0:
        raise InputError(f"y={y!r}: expected one label, or one row of labels, for each observation")
    if array.dtype.kind == "O":
        if pd.isna(array.ravel()).any():
            raise InputError(f"{what} has missing values: leave those rows out, or give them a class of their own")
        array = np.array(array.tolist())  # numbers as numbers, text as text
    if array.dtype.kind == "O":
        raise InputError(f"Unknown label type: {what} holds objects, expected numbers or text")
    if array.dtype.kind != "f":
        return array
    check_finite(array.reshape(len(array), -1), what="Input y")
    if not np.array_equal(array, np.round(array)):
        raise InputError(f"Unknown label type: {what} is real-valued; expected classes, as whole numbers or text")
    return array.astype(np.int64)
